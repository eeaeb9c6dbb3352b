// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/random.hpp"

#include <Random123/philox.h>

#include <array>
#include <cmath>
#include <numbers>

namespace palimpsest {
namespace {

using Words = std::array<std::uint64_t, 2>;

Words words_of(RandomKey key, std::uint64_t i) {
  const auto low = [](std::uint64_t word) { return static_cast<std::uint32_t>(word); };
  const auto high = [](std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); };
  const r123::Philox4x32::ctr_type counter = {{low(i), high(i), low(key.stream), high(key.stream)}};
  const r123::Philox4x32::key_type seed = {{low(key.seed), high(key.seed)}};
  const auto bits = r123::Philox4x32{}(counter, seed);
  const auto join = [](std::uint64_t a, std::uint64_t b) { return a | (b << 32); };
  return {join(bits[0], bits[1]), join(bits[2], bits[3])};
}

// The leading bits as a number in [0, 1), exact in T.
template <class T>
T unit_interval(std::uint64_t word) {
  constexpr int kBits = std::numeric_limits<T>::digits;
  return static_cast<T>(word >> (64 - kBits)) / static_cast<T>(std::uint64_t{1} << kBits);
}

struct Normal {
  template <class T>
  static T draw(RandomKey key, std::uint64_t i) {
    const Words words = words_of(key, i);
    // 1 - u lies in (0, 1], so the logarithm is finite.
    const double radius = std::sqrt(-2.0 * std::log(1.0 - unit_interval<double>(words[0])));
    const double angle = 2.0 * std::numbers::pi * unit_interval<double>(words[1]);
    if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(radius * std::cos(angle));
    } else {
      using Real = typename T::value_type;
      const double scale = radius / std::numbers::sqrt2;
      return T(static_cast<Real>(scale * std::cos(angle)),
               static_cast<Real>(scale * std::sin(angle)));
    }
  }
};

struct Uniform {
  template <class T>
  static T draw(RandomKey key, std::uint64_t i) {
    const Words words = words_of(key, i);
    if constexpr (std::is_floating_point_v<T>) {
      return unit_interval<T>(words[0]);
    } else {
      using Real = typename T::value_type;
      return T(unit_interval<Real>(words[0]), unit_interval<Real>(words[1]));
    }
  }
};

template <class Distribution, class T>
void fill_rows(RandomKey key, const MutableView& out, std::uint64_t first) {
  const index_t count = element_count(out.extents);
  if (count == 0) return;
  auto* at = static_cast<T*>(out.data);
  const index_t row = out.rank() == 0 ? 1 : out.extents.back();
  const index_t step = out.rank() == 0 ? 0 : out.strides.back();
  std::array<index_t, kMaxRank> position{};
  std::uint64_t i = first;
  for (index_t done = 0; done < count; done += row) {
    for (index_t k = 0; k < row; ++k) at[k * step] = Distribution::template draw<T>(key, i++);
    if (out.rank() == 0) return;
    for (std::size_t axis = out.rank() - 1; axis-- > 0;) {
      at += out.strides[axis];
      if (++position[axis] < out.extents[axis]) break;
      at -= out.extents[axis] * out.strides[axis];
      position[axis] = 0;
    }
  }
}

}  // namespace

void random_normal(RandomKey key, const MutableView& out, std::uint64_t first) {
  visit_inexact(out.dtype, "random_normal", [&](auto tag) {
    fill_rows<Normal, typename decltype(tag)::type>(key, out, first);
  });
}

void random_uniform(RandomKey key, const MutableView& out, std::uint64_t first) {
  visit_inexact(out.dtype, "random_uniform", [&](auto tag) {
    fill_rows<Uniform, typename decltype(tag)::type>(key, out, first);
  });
}

std::uint64_t random_bits(RandomKey key, std::uint64_t i) { return words_of(key, i)[0]; }

}  // namespace palimpsest
