// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/arrays/random.hpp"

#include <algorithm>
#include <cassert>

#include "palimpsest/kernels/arrays/strided_loop.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"

namespace palimpsest {
namespace {

constexpr index_t kGrain = 4096;  // numbers per task: with fewer a second thread does not pay

RandomKey derived(RandomKey key, std::uint64_t i, RandomKey salt) {
  return {random_bits({key.seed ^ salt.seed, key.stream}, i),
          random_bits({key.seed ^ salt.stream, key.stream}, i)};
}

// The upper half of a 128-bit product.
std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t a0 = a & 0xFFFFFFFFU, a1 = a >> 32, b0 = b & 0xFFFFFFFFU, b1 = b >> 32;
  const std::uint64_t middle = a1 * b0 + ((a0 * b0) >> 32);
  return a1 * b1 + (middle >> 32) + (((middle & 0xFFFFFFFFU) + a0 * b1) >> 32);
}

// Computes out[i] = draw(i), truncated to the element size.
template <class T, class Draw>
void fill_words(const MutableView& out, const Draw& draw) {
  StridedLoop<1> loop;
  loop.set_extents(out.extents);
  loop.add_operand(out.data, out.strides, sizeof(T));
  loop.squeeze();
  loop.merge(0, loop.rank);
  parallel_ranges(loop.count(), kGrain, [&](index_t begin, index_t end) {
    for (index_t i = begin; i < end; ++i) {
      *reinterpret_cast<T*>(loop.data[0] + loop.offset(0, 0, loop.rank, i)) =
          static_cast<T>(draw(static_cast<std::uint64_t>(i)));
    }
  });
}

template <class Draw>
void fill_integers(const MutableView& out, const Draw& draw) {
  assert(is_integer(out.dtype));
  switch (item_size(out.dtype)) {
    case 1:
      return fill_words<std::uint8_t>(out, draw);
    case 2:
      return fill_words<std::uint16_t>(out, draw);
    case 4:
      return fill_words<std::uint32_t>(out, draw);
    default:
      return fill_words<std::uint64_t>(out, draw);
  }
}

// Cuts slabs along the first axis that has more than one element.
void fill_numbers(RandomKind kind, RandomKey key, const MutableView& out) {
  const auto fill = kind == RandomKind::normal ? random_normal : random_uniform;
  std::size_t axis = 0;
  while (axis < out.rank() && out.extents[axis] == 1) ++axis;
  if (axis >= out.rank()) return fill(key, out, 0);
  const index_t n = out.extents[axis], count = element_count(out.extents);
  if (count == 0) return;
  const index_t slab = count / n;
  const index_t step = out.strides[axis] * static_cast<index_t>(item_size(out.dtype));
  parallel_ranges(n, kGrain / slab + 1, [&](index_t begin, index_t end) {
    Extents extents(out.extents);
    extents[axis] = end - begin;
    fill(key, {static_cast<std::byte*>(out.data) + begin * step, out.dtype, extents, out.strides},
         static_cast<std::uint64_t>(begin * slab));
  });
}

}  // namespace

void run_random(RandomKind kind, RandomKey key, const MutableView& out) {
  if (kind != RandomKind::bits) return fill_numbers(kind, key, out);
  fill_integers(out, [key](std::uint64_t i) { return random_bits(key, i); });
}

void run_random_integers(RandomKey key, std::uint64_t low, std::uint64_t range,
                         const MutableView& out) {
  fill_integers(out, [=](std::uint64_t i) {
    const std::uint64_t bits = random_bits(key, i);
    return low + (range == 0 ? bits : multiply_high(bits, range));
  });
}

RandomKey child_key(RandomKey key, std::uint64_t i) { return derived(key, i, kChildSalt); }
RandomKey next_key(RandomKey key) { return derived(key, 0, kNextSalt); }

}  // namespace palimpsest
