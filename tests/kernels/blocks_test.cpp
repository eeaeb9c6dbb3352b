// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/arrays/blocks.hpp"

#include "kernels/arrays.hpp"
#include "support/cache_size.hpp"

namespace palimpsest::testing {
namespace {

// The last axes of `array` in blocks: (batch.., array..) and (batch.., m.., p..).
struct Case {
  Extents batch, array, blocks, within, stride;

  Extents of_array() const {
    Extents e = batch;
    for (const index_t n : array) e.push_back(n);
    return e;
  }
  Extents of_blocks() const {
    Extents e = batch;
    for (const index_t n : blocks) e.push_back(n);
    for (const index_t n : within) e.push_back(n);
    return e;
  }
  // The row-major number in the array of element i of the blocks.
  index_t place(index_t i) const {
    const std::size_t D = array.size();
    index_t number = 0, factor = 1;
    Extents p(D), m(D);
    for (std::size_t d = D; d-- > 0; i /= within[d]) p[d] = i % within[d];
    for (std::size_t d = D; d-- > 0; i /= blocks[d]) m[d] = i % blocks[d];
    for (std::size_t d = D; d-- > 0; factor *= array[d])
      number += (m[d] * stride[d] + p[d]) * factor;
    return number + i * factor;
  }
};

Case random_case(Random& random, index_t most) {
  Case c;
  if (uniform(random, 0, 2) == 0) c.batch.push_back(uniform(random, 1, 3));
  const index_t D = uniform(random, 1, 3);
  for (index_t d = 0; d < D; ++d) {
    const index_t lengths[] = {1, 2, 3, 4, 5, 6, 8, 16};
    const index_t n = lengths[uniform(random, 0, D < 3 ? 7 : 5)];
    const index_t strides[] = {n, n, (n + 1) / 2, uniform(random, 1, n + 2)};
    c.within.push_back(n);
    c.stride.push_back(strides[uniform(random, 0, 3)]);
    c.blocks.push_back(uniform(random, 1, most));
    c.array.push_back((c.blocks.back() - 1) * c.stride.back() + n +
                      (uniform(random, 0, 2) == 0 ? uniform(random, 0, 9) : 0));
  }
  return c;
}

template <class T>
void expect_both_ways(const Case& c, Array x, Array y) {
  const DType dtype = dtype_of<T>;
  run_array_to_blocks(x.view(), c.stride, y.mutable_view());
  for (index_t i = 0; i < y.count(); ++i) ASSERT_EQ(y.get<T>(i), x.get<T>(c.place(i))) << i;
  ASSERT_TRUE(y.gaps_are_intact());

  // The sum in the order of the blocks, exact to the last bit.
  Array sum(dtype, x.extents());
  for (index_t i = 0; i < sum.count(); ++i) sum.set(i, T(0));
  std::vector<bool> is_there(static_cast<std::size_t>(sum.count()));
  for (index_t i = 0; i < y.count(); ++i) {
    const index_t place = c.place(i);
    const bool there = is_there[static_cast<std::size_t>(place)];
    sum.set<T>(place, there ? sum.get<T>(place) + y.get<T>(i) : y.get<T>(i));
    is_there[static_cast<std::size_t>(place)] = true;
  }
  x.fill_pattern();
  run_blocks_to_array(y.view(), c.stride, x.mutable_view());
  for (index_t i = 0; i < x.count(); ++i) ASSERT_EQ(x.get<T>(i), sum.get<T>(i)) << i;
  ASSERT_TRUE(x.gaps_are_intact());
}

void expect_both_ways(const Case& c, DType dtype, Random& random, bool is_dense) {
  const Extents array = c.of_array(), blocks = c.of_blocks();
  Array x = is_dense ? Array(dtype, array) : random_array(random, dtype, array, false);
  const Array y = is_dense ? Array(dtype, blocks) : random_array(random, dtype, blocks, false);
  x.fill_normal(random);
  visit_inexact(dtype, "test", [&](auto tag) {
    expect_both_ways<typename decltype(tag)::type>(c, std::move(x), y);
  });
}

constexpr DType kDtypes[] = {DType::float32, DType::float64, DType::complex64, DType::complex128};

TEST(Blocks, OfAnyLayoutAreTakenAndAddedUpInOrder) {
  Random random(71);
  for (int trial = 0; trial < 2000; ++trial) {
    const Case c = random_case(random, 5);
    set_streaming_bytes(uniform(random, 0, 1));
    expect_both_ways(c, kDtypes[uniform(random, 0, 3)], random, uniform(random, 0, 1) == 0);
    set_streaming_bytes(0);
  }
}

TEST(Blocks, ThatFillLinesAreStreamed) {
  // Rows of whole cache lines, blocks without overlap, with and without elements between them.
  Random random(72);
  for (const DType dtype : kDtypes) {
    for (const index_t n : {4, 8, 16, 32}) {
      for (const index_t step : {n, 2 * n}) {
        const Case c{
            {}, {5 * step + 1, 7 * step + 16 - 7 * step % 16}, {5, 7}, {n, n}, {step, step}};
        set_streaming_bytes(1);
        expect_both_ways(c, dtype, random, true);
        set_streaming_bytes(0);
      }
    }
  }
}

TEST(Blocks, SlabsOfThreadsShareNoElement) {
  Random random(73);
  for (const index_t stride : {3, 6, 8}) {
    const Case plane{{2}, {45 * stride + 6, 60 * stride + 6}, {46, 61}, {6, 6}, {stride, stride}};
    const Case line{{}, {30000 * stride + 6}, {30001}, {6}, {stride}};
    for (const DType dtype : {DType::float64, DType::complex64}) {
      expect_both_ways(plane, dtype, random, true);
      expect_both_ways(line, dtype, random, true);
    }
  }
}

}  // namespace
}  // namespace palimpsest::testing
