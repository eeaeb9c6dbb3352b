// SPDX-License-Identifier: Apache-2.0
// Arrays of any layout for tests of kernels, with element access by row-major number.
#pragma once

#include <gtest/gtest.h>
#include <tbb/global_control.h>

#include <algorithm>
#include <complex>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "palimpsest/base/view.hpp"
#include "palimpsest/copy/strided_copy.hpp"

namespace palimpsest::testing {

using Random = std::mt19937_64;

inline index_t uniform(Random& random, index_t low, index_t high) {
  return std::uniform_int_distribution<index_t>(low, high)(random);
}

/// An array that owns its memory, 64-byte aligned and filled with a pattern.
class Array {
 public:
  static constexpr unsigned char kPattern = 0x5A;

  /// Row-major.
  Array(DType dtype, Extents extents) : Array(dtype, extents, contiguous_strides(extents)) {}
  /// `shift`: offset of the first element from the aligned start, in elements.
  Array(DType dtype, Extents extents, Strides strides, index_t shift = 0)
      : dtype_(dtype), extents_(std::move(extents)), strides_(std::move(strides)) {
    const ReachedRange range = reached_range(extents_, strides_);
    first_ = shift - range.low;
    size_ = static_cast<std::size_t>(first_ + std::max<index_t>(range.high, 1)) * item_size(dtype);
    memory_.reset(static_cast<unsigned char*>(::operator new (size_, std::align_val_t{64})));
    fill_pattern();
  }
  Array(const Array& other) : Array(other.dtype_, other.extents_, other.strides_) {
    size_ = other.size_;
    first_ = other.first_;
    memory_.reset(static_cast<unsigned char*>(::operator new (size_, std::align_val_t{64})));
    std::memcpy(memory_.get(), other.memory_.get(), size_);
  }
  Array(Array&&) = default;

  DType dtype() const { return dtype_; }
  const Extents& extents() const { return extents_; }
  const Strides& strides() const { return strides_; }
  index_t count() const { return element_count(extents_); }
  std::size_t bytes() const { return size_; }
  const unsigned char* memory() const { return memory_.get(); }

  ConstView view() const { return {address(0), dtype_, extents_, strides_}; }
  MutableView mutable_view() { return {address(0), dtype_, extents_, strides_}; }

  /// The address of element i (row-major number).
  void* address(index_t i) const {
    index_t offset = first_;
    for (std::size_t axis = extents_.size(); axis-- > 0;) {
      if (extents_[axis] == 0) return memory_.get();
      offset += i % extents_[axis] * strides_[axis];
      i /= extents_[axis];
    }
    return memory_.get() + offset * static_cast<index_t>(item_size(dtype_));
  }
  template <class T>
  T get(index_t i) const {
    EXPECT_EQ(dtype_of<T>, dtype_);
    T value;
    std::memcpy(&value, address(i), sizeof(T));
    return value;
  }
  template <class T>
  void set(index_t i, T value) {
    EXPECT_EQ(dtype_of<T>, dtype_);
    std::memcpy(address(i), &value, sizeof(T));
  }
  /// The element converted to complex128.
  std::complex<double> value(index_t i) const {
    std::complex<double> result;
    copy_row_between(dtype_, DType::complex128)(static_cast<const std::byte*>(address(i)), 0,
                                                reinterpret_cast<std::byte*>(&result), 0, 1);
    return result;
  }
  void set_value(index_t i, std::complex<double> value) {
    copy_row_between(DType::complex128, dtype_)(reinterpret_cast<const std::byte*>(&value), 0,
                                                static_cast<std::byte*>(address(i)), 0, 1);
  }
  void fill_pattern() { std::memset(memory_.get(), kPattern, size_); }
  /// Fills with multiples of 1/4 in [-range, range]; unsigned ones are not negative. Sums and
  /// products of a few are exact in all dtypes.
  void fill(Random& random, index_t range = 8) {
    const bool whole = !is_inexact(dtype_);
    const auto draw = [&] {
      const index_t low = is_unsigned(dtype_) || is_bool(dtype_) ? 0 : -range;
      return whole ? static_cast<double>(uniform(random, low, range))
                   : static_cast<double>(uniform(random, 4 * low, 4 * range)) / 4;
    };
    for (index_t i = 0; i < count(); ++i) {
      const double re = draw();
      set_value(i, {re, is_complex(dtype_) ? draw() : 0});
    }
  }
  /// Standard normal numbers.
  void fill_normal(Random& random) {
    std::normal_distribution<double> normal;
    for (index_t i = 0; i < count(); ++i) {
      const double re = normal(random);
      set_value(i, {re, is_complex(dtype_) ? normal(random) : 0});
    }
  }
  /// Do all bytes outside the elements still have the pattern?
  bool gaps_are_intact() const {
    std::vector<bool> used(size_, false);
    for (index_t i = 0; i < count(); ++i) {
      const auto at = static_cast<const unsigned char*>(address(i)) - memory_.get();
      std::fill_n(used.begin() + at, item_size(dtype_), true);
    }
    for (std::size_t i = 0; i < size_; ++i) {
      if (!used[i] && memory_.get()[i] != kPattern) return false;
    }
    return true;
  }

 private:
  struct Free {
    void operator()(unsigned char* p) const { ::operator delete (p, std::align_val_t{64}); }
  };
  DType dtype_;
  Extents extents_;
  Strides strides_;
  index_t first_ = 0;
  std::size_t size_ = 0;
  std::unique_ptr<unsigned char, Free> memory_;
};

/// Up to max_rank axes of up to max_extent elements, about `budget` elements at most.
inline Extents random_extents(Random& random, index_t max_rank, index_t max_extent,
                              index_t budget = 4096) {
  Extents extents(static_cast<std::size_t>(uniform(random, 0, max_rank)));
  index_t n = 1;
  for (index_t& extent : extents) {
    extent = uniform(random, 1, std::max<index_t>(1, std::min(max_extent, budget / n)));
    n *= extent;
  }
  std::shuffle(extents.begin(), extents.end(), random);
  return extents;
}

/// Permuted axes, gaps, negative steps, and zero ones if `broadcast`.
inline Strides random_strides(Random& random, const Extents& extents, bool broadcast) {
  std::vector<std::size_t> order(extents.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (uniform(random, 0, 1) == 0) std::shuffle(order.begin(), order.end(), random);
  Strides strides(extents.size());
  index_t step = uniform(random, 0, 3) == 0 ? 2 : 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    const std::size_t axis = order[i];
    if (broadcast && uniform(random, 0, 3) == 0) {
      strides[axis] = 0;
      continue;
    }
    strides[axis] = uniform(random, 0, 3) == 0 ? -step : step;
    step *= std::max<index_t>(extents[axis], 1);
    if (uniform(random, 0, 4) == 0) step += uniform(random, 1, 3);
  }
  return strides;
}

inline Array random_array(Random& random, DType dtype, const Extents& extents, bool broadcast) {
  Array array(dtype, extents, random_strides(random, extents, broadcast),
              uniform(random, 0, 3) == 0 ? 1 : 0);
  array.fill(random);
  return array;
}

inline DType random_dtype(Random& random) {
  return static_cast<DType>(uniform(random, 0, kDTypeCount - 1));
}

/// Runs `f` with one thread and with several; f returns bytes, which must be equal.
template <class F>
void expect_same_on_threads(F&& f) {
  const auto run = [&](std::size_t threads) {
    const tbb::global_control control(tbb::global_control::max_allowed_parallelism, threads);
    return f();
  };
  const auto one = run(1);
  for (int repeat = 0; repeat < 3; ++repeat) EXPECT_TRUE(one == run(4));
}

/// All elements as bytes, row-major.
inline std::vector<unsigned char> elements(const Array& array) {
  std::vector<unsigned char> bytes;
  for (index_t i = 0; i < array.count(); ++i) {
    const auto* at = static_cast<const unsigned char*>(array.address(i));
    bytes.insert(bytes.end(), at, at + item_size(array.dtype()));
  }
  return bytes;
}

}  // namespace palimpsest::testing
