// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/recon/value_checks.hpp"

#include <fmt/format.h>

#include <array>
#include <complex>

#include "palimpsest/base/error.hpp"
#include "palimpsest/imaging/recon/place.hpp"
#include "palimpsest/kernels/reduce/reduce_all.hpp"

namespace palimpsest {

Extents index_of(index_t element, const Extents& shape) {
  Extents index = shape;
  for (std::size_t axis = index.size(); axis-- > 0;) {
    index[axis] = element % shape[axis];
    element /= shape[axis];
  }
  return index;
}

namespace {

void add_not_finite(const Tensor& x, index_t at, NotFinite& sum) {
  if (x.rank() > 1) {
    const index_t n = x.shape(0), part = n > 0 ? x.numel() / n : 0;
    for (index_t i = 0; i < n; ++i) add_not_finite(x.select(0, i), at + i * part, sum);
    if (x.rank() == 2) release_pages(x);
    return;
  }
  const Tensor line = x.to(DType::complex128).contiguous();
  const auto* v = line.data<std::complex<double>>();
  for (index_t i = 0, end = line.numel(); i < end; ++i) {
    if (std::isfinite(v[i].real()) && std::isfinite(v[i].imag())) continue;
    if (sum.count++ == 0) sum.first = at + i;
  }
}

}  // namespace

NotFinite count_not_finite(const Tensor& x) {
  NotFinite sum;
  add_not_finite(x, 0, sum);
  return sum;
}

void expect_finite(const char* who, const char* what, const Tensor& x) {
  if (all_finite(x)) return;
  const NotFinite bad = count_not_finite(x);
  throw ValueError(
      fmt::format("[{}] {} holds NaN or infinite values: got {} of them, the first at {}", who,
                  what, bad.count, to_string(index_of(bad.first, x.shape()))));
}

void add_nonzero(const ConstView& x, Tensor& found) {
  ElementwiseProgram program;
  const int old = program.input(DType::bool_), value = program.input(x.dtype);
  program.output(program.apply(ScalarOp::logical_or, {old, program.cast(value, DType::bool_)}));
  const MutableView to{found.raw_mutable_data(), DType::bool_, found.shape(), found.strides()};
  run_with_threads(static_cast<int>(config().threads.value_or(0)), [&] {
    run_elementwise(program, std::array<ConstView, 2>{to, x}, std::array{to});
  });
}

}  // namespace palimpsest
