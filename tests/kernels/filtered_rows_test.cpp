// SPDX-License-Identifier: Apache-2.0
// Stencils computed when read give the bits of stored stencils.
#include "palimpsest/kernels/arrays/filtered_rows.hpp"

#include <cstring>

#include "kernels/arrays.hpp"

namespace palimpsest::testing {
namespace {

Array random_values(Random& random, DType dtype, const Extents& extents, const Strides& strides) {
  Array array(dtype, extents, strides);
  array.fill_normal(random);
  return array;
}

Stencil random_stencil(Random& random, std::size_t rank) {
  Stencil s;
  s.axis = static_cast<std::size_t>(uniform(random, 0, static_cast<index_t>(rank) - 1));
  const auto n_taps = uniform(random, 1, 4);
  std::normal_distribution<double> normal;
  for (index_t m = 0; m < n_taps; ++m) s.taps.push_back(normal(random));
  s.offset = uniform(random, -5, 5);
  s.edge = static_cast<StencilEdge>(uniform(random, 0, 4));
  return s;
}

TEST(FilteredRows, HaveTheBitsOfStencilsThatAreStored) {
  Random random(77);
  for (int trial = 0; trial < 3000; ++trial) {
    Extents extents = random_extents(random, 4, 9, 400);
    if (extents.empty()) extents = {uniform(random, 1, 40)};
    constexpr std::array kDTypes{DType::float32, DType::float64, DType::complex64,
                                 DType::complex128};
    const DType dtype = kDTypes[static_cast<std::size_t>(uniform(random, 0, 3))];
    const Stencil s = random_stencil(random, extents.size());
    const Array x = random_values(random, dtype, extents, contiguous_strides(extents));
    // The same values in another layout.
    Array strided(dtype, extents, random_strides(random, extents, false));
    for (index_t i = 0; i < x.count(); ++i) strided.set_value(i, x.value(i));
    for (const bool is_adjoint : {false, true}) {
      Array expected(dtype, extents);
      (is_adjoint ? run_stencil_adjoint : run_stencil)(s, x.view(), expected.mutable_view(), 0);
      for (const Array* const from : {&x, &std::as_const(strided)}) {
        const FilteredRows rows(s, is_adjoint, from->view());
        const index_t first = uniform(random, 0, x.count() - 1);
        const index_t n = uniform(random, 1, x.count() - first);
        Array made(dtype, {n + 1});
        rows.read(first, n, static_cast<std::byte*>(made.address(0)));
        ASSERT_EQ(std::memcmp(made.address(0), expected.address(first),
                              static_cast<std::size_t>(n) * item_size(dtype)),
                  0)
            << "trial " << trial << " adjoint " << is_adjoint << " elements " << first << " to "
            << first + n;
        // Nothing is written behind them.
        ASSERT_EQ(*static_cast<const unsigned char*>(made.address(n)), Array::kPattern);
      }
    }
  }
}

}  // namespace
}  // namespace palimpsest::testing
