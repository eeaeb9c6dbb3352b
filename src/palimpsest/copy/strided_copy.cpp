// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/copy/strided_copy.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "palimpsest/base/cache_size.hpp"
#include "palimpsest/copy/integer_rows.hpp"
#include "palimpsest/copy/stream_store.hpp"
#include "palimpsest/copy/transpose.hpp"
#include "palimpsest/copy/transpose_lines.hpp"

namespace palimpsest {
namespace {

// An axis of a copy; strides in bytes.
struct Axis {
  index_t extent, from, to;
};
using Loop = SmallVector<Axis, kMaxRank>;

// Copies or fills n elements along one axis; strides in bytes.
using Row = void (*)(const std::byte* x, index_t from, std::byte* y, index_t to, index_t n);

// Elements of a tile on both axes of a transposition: two tiles of 16-byte elements fit a first
// level cache.
constexpr index_t kTile = 32;
// Bytes between elements of the source that are gathered one by one, unless they are columns of a
// dense matrix that is transposed in registers.
constexpr index_t kNearStep = 32;
// Bytes from which on a row is worth to be streamed by itself.
constexpr index_t kStreamedRow = 512;

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

// Any byte but 0 is true: a bool seen through a bitcast may be neither 0 nor 1.
template <>
bool load<bool>(const std::byte* at) {
  return *at != std::byte{0};
}

template <class T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

template <class T>
inline constexpr bool is_complex_type = false;
template <class T>
inline constexpr bool is_complex_type<std::complex<T>> = true;

// The integer part modulo 2^64; 0 for infinities and NaN. C++ leaves casts out of range undefined.
std::uint64_t wrap_to_bits(double value) {
  constexpr double kHalf = 9223372036854775808.0;  // 2^63
  if (value > -kHalf && value < kHalf) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  }
  if (!std::isfinite(value)) return 0;
  const double rest = std::fmod(value, 2 * kHalf);  // exact, since the divisor is a power of two
  const auto magnitude = static_cast<std::uint64_t>(std::abs(rest));
  return rest < 0 ? 0 - magnitude : magnitude;
}

template <class To, class From>
To convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From{};
  } else if constexpr (is_complex_type<To>) {
    using Real = typename To::value_type;
    if constexpr (is_complex_type<From>) {
      return To(static_cast<Real>(value.real()), static_cast<Real>(value.imag()));
    } else {
      return To(static_cast<Real>(value), Real{});
    }
  } else if constexpr (is_complex_type<From>) {
    return convert<To>(value.real());
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return static_cast<To>(wrap_to_bits(static_cast<double>(value)));
  } else {
    return static_cast<To>(value);
  }
}

template <class From, class To>
void convert_dense(const std::byte* x, std::byte* y, index_t n) {
  for (index_t i = 0; i < n; ++i) {
    store(y + i * index_t{sizeof(To)}, convert<To>(load<From>(x + i * index_t{sizeof(From)})));
  }
}

// Without branches compilers make vectors of this loop: a complex64 takes 0.25 ns. Comparisons of
// complex numbers take 1.3, or 5 where their branches are not predicted.
template <class Part>
void nonzero_dense(const std::byte* x, std::byte* y, index_t n) {
  constexpr index_t kPart{sizeof(Part)};
  for (index_t i = 0; i < n; ++i) {
    const int real = load<Part>(x + 2 * i * kPart) != Part{} ? 1 : 0;
    const int imag = load<Part>(x + (2 * i + 1) * kPart) != Part{} ? 1 : 0;
    store(y + i, (real | imag) != 0);
  }
}

template <class From, class To>
void convert_row(const std::byte* x, index_t from, std::byte* y, index_t to, index_t n) {
  if (from == sizeof(From) && to == sizeof(To)) {
    if constexpr (is_complex_type<From> && std::is_same_v<To, bool>) {
      nonzero_dense<typename From::value_type>(x, y, n);
      return;
    }
    if constexpr (is_complex_type<From> && is_complex_type<To>) {
      // Converts parts one by one: compilers vectorize this loop.
      using FromPart = typename From::value_type;
      using ToPart = typename To::value_type;
      convert_row<FromPart, ToPart>(x, sizeof(FromPart), y, sizeof(ToPart), 2 * n);
      return;
    }
    if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> &&
                  !std::is_same_v<To, bool>) {
      integer_row(sizeof(From), sizeof(To))(x, y, n, convert_dense<From, To>);
      return;
    }
    convert_dense<From, To>(x, y, n);
    return;
  }
  for (index_t i = 0; i < n; ++i) store(y + i * to, convert<To>(load<From>(x + i * from)));
}

template <std::size_t Bytes>
void copy_row(const std::byte* x, index_t from, std::byte* y, index_t to, index_t n) {
  constexpr index_t kBytes{Bytes};
  if (from == kBytes && to == kBytes) {
    std::memcpy(y, x, static_cast<std::size_t>(n) * Bytes);
    return;
  }
  if (from == -kBytes && to == kBytes) {  // a step that the compiler knows becomes vectors
    for (index_t i = 0; i < n; ++i) std::memcpy(y + i * kBytes, x - i * kBytes, Bytes);
    return;
  }
  if (from == 0 && to == kBytes) {
    std::array<std::byte, Bytes> element;
    std::memcpy(element.data(), x, Bytes);
    for (index_t i = 0; i < n; ++i) std::memcpy(y + i * kBytes, element.data(), Bytes);
    return;
  }
  for (index_t i = 0; i < n; ++i) std::memcpy(y + i * to, x + i * from, Bytes);
}

Row copy_row_of(std::size_t bytes) {
  switch (bytes) {
    case 1:
      return copy_row<1>;
    case 2:
      return copy_row<2>;
    case 4:
      return copy_row<4>;
    case 8:
      return copy_row<8>;
    default:
      return copy_row<16>;
  }
}

Row row_of(DType from, DType to) {
  if (from == to) return copy_row_of(item_size(to));
  return visit_dtype(from, [to](auto from_tag) {
    return visit_dtype(to, [](auto to_tag) -> Row {
      return convert_row<typename decltype(from_tag)::type, typename decltype(to_tag)::type>;
    });
  });
}

// Axes of more than one element, outermost first by the strides of the destination, which all
// become positive; neighbours that are evenly spaced on both sides become one.
Loop make_loop(const ConstView& x, const MutableView& out, const std::byte*& from, std::byte*& to) {
  const auto x_item = static_cast<index_t>(item_size(x.dtype));
  const auto out_item = static_cast<index_t>(item_size(out.dtype));
  Loop axes;
  for (std::size_t i = 0; i < out.rank(); ++i) {
    if (out.extents[i] == 1) continue;  // its strides mean nothing, and their products may not fit
    Axis axis{out.extents[i], x.strides[i] * x_item, out.strides[i] * out_item};
    if (axis.to < 0) {
      from += (axis.extent - 1) * axis.from;
      to += (axis.extent - 1) * axis.to;
      axis.from = -axis.from;
      axis.to = -axis.to;
    }
    axes.push_back(axis);
  }
  // Insertion sort: stable, and unlike std::stable_sort it does not allocate.
  for (std::size_t i = 1; i < axes.size(); ++i) {
    for (std::size_t j = i; j > 0 && axes[j - 1].to < axes[j].to; --j) {
      std::swap(axes[j - 1], axes[j]);
    }
  }
  Loop merged;
  for (const Axis& axis : axes) {
    if (!merged.empty() && merged.back().from == axis.from * axis.extent &&
        merged.back().to == axis.to * axis.extent) {
      merged.back() = {merged.back().extent * axis.extent, axis.from, axis.to};
    } else {
      merged.push_back(axis);
    }
  }
  return merged;
}

// Prepares tiles if the innermost axis jumps in the source while another axis walks through it
// densely. Moves that axis to the place before the last and returns true; else returns false.
bool arrange_tiles(Loop& axes, index_t item, bool is_plain) {
  if (axes.size() < 2) return false;
  std::size_t best = axes.size() - 1;
  for (std::size_t i = 0; i + 1 < axes.size(); ++i) {
    if (axes[i].from != 0 && std::abs(axes[i].from) < std::abs(axes[best].from)) best = i;
  }
  if (best == axes.size() - 1) return false;
  const index_t step = axes.back().from, columns = axes[best].extent;
  const bool in_registers = is_plain && axes[best].from == item && axes.back().to == item &&
                            step == columns * item &&
                            columns_of_lines(static_cast<std::size_t>(item)) > 0;
  if (std::abs(step) < kNearStep && !in_registers) return false;
  std::rotate(axes.begin() + best, axes.begin() + best + 1, axes.end() - 1);
  return true;
}

void run_tiles(Row row, const Axis& outer, const Axis& inner, const std::byte* x, std::byte* y) {
  for (index_t j0 = 0; j0 < outer.extent; j0 += kTile) {
    const index_t j1 = std::min(j0 + kTile, outer.extent);
    for (index_t i0 = 0; i0 < inner.extent; i0 += kTile) {
      const index_t n = std::min(kTile, inner.extent - i0);
      for (index_t j = j0; j < j1; ++j) {
        row(x + j * outer.from + i0 * inner.from, inner.from, y + j * outer.to + i0 * inner.to,
            inner.to, n);
      }
    }
  }
}

// Lines of a transposition, of a copy of so many bytes, that find room in the last cache are stored
// there, unless they compete for places in those before it.
bool is_streamed(const Transposition& t, index_t total_bytes) {
  constexpr index_t kRoom = 4;
  return total_bytes >= (rows_collide(t) ? 1 : kRoom) * line_streaming_bytes();
}

// Transposes a matrix whose rows are dense on both sides, along different axes. Returns false for
// any other array.
bool run_transpose(const Axis& outer, const Axis& inner, const std::byte* x, std::byte* y,
                   std::size_t item, index_t total_bytes) {
  const auto bytes = static_cast<index_t>(item);
  if (inner.to != bytes || std::abs(outer.from) != bytes) return false;
  Transposition t{x, y, inner.from, outer.to, inner.extent, outer.extent};
  t.streamed = is_streamed(t, total_bytes);
  if (outer.from < 0) {  // rows of x backwards: those of y, from the last one
    t.x += (outer.extent - 1) * outer.from;
    t.y += (outer.extent - 1) * outer.to;
    t.y_row = -outer.to;
  }
  switch (item) {
    case 4:
      transpose<4>(t);
      return true;
    case 8:
      transpose<8>(t);
      return true;
    case 16:
      transpose<16>(t);
      return true;
    default:
      return false;
  }
}

void run_loop(Loop axes, Row row, const std::byte* x, std::byte* y, std::size_t item, bool is_plain,
              index_t total_bytes) {
  const auto bytes = static_cast<index_t>(item);
  if (axes.empty()) {
    row(x, bytes, y, bytes, 1);
    return;
  }
  const bool tiled = arrange_tiles(axes, bytes, is_plain);
  const std::size_t n_outer = axes.size() - (tiled ? 2 : 1);
  const Axis inner = axes.back();
  const bool streams_rows = is_plain && inner.from == bytes && inner.to == bytes &&
                            inner.extent * bytes >= kStreamedRow &&
                            total_bytes >= streaming_bytes();
  const index_t gap = n_outer > 0 ? axes[n_outer - 1].from - inner.extent * inner.from : 0;
  std::array<index_t, kMaxRank> position{};
  for (;;) {
    if (tiled && is_plain && run_transpose(axes[n_outer], inner, x, y, item, total_bytes)) {
      // done
    } else if (tiled) {
      run_tiles(row, axes[n_outer], inner, x, y);
    } else if (streams_rows) {
      stream_row(y, x, inner.extent * bytes, gap);
    } else {
      row(x, inner.from, y, inner.to, inner.extent);
    }
    std::size_t axis = n_outer;
    for (;; --axis) {
      if (axis == 0) {
        if (streams_rows) finish_streams();
        return;
      }
      const Axis& a = axes[axis - 1];
      x += a.from;
      y += a.to;
      if (++position[axis - 1] < a.extent) break;
      x -= a.extent * a.from;
      y -= a.extent * a.to;
      position[axis - 1] = 0;
    }
  }
}

bool has_elements(std::span<const index_t> extents) {
  return std::find(extents.begin(), extents.end(), 0) == extents.end();
}

}  // namespace

CopyRow copy_row_between(DType from, DType to) { return row_of(from, to); }

void strided_copy(const ConstView& x, const MutableView& out) {
  strided_copy_piece(x, out,
                     element_count(out.extents) * static_cast<index_t>(item_size(out.dtype)));
}

void strided_copy_piece(const ConstView& x, const MutableView& out, index_t total_bytes) {
  assert(x.rank() == out.rank() && out.rank() <= kMaxRank);
  assert(std::equal(x.extents.begin(), x.extents.end(), out.extents.begin()));
  if (!has_elements(out.extents)) return;
  if (x.data == out.data && x.dtype == out.dtype) return;  // the very same elements
  const auto* from = static_cast<const std::byte*>(x.data);
  auto* to = static_cast<std::byte*>(out.data);
  Loop axes = make_loop(x, out, from, to);
  run_loop(std::move(axes), row_of(x.dtype, out.dtype), from, to, item_size(out.dtype),
           x.dtype == out.dtype, total_bytes);
}

void strided_fill(const void* value, const MutableView& out) {
  assert(out.rank() <= kMaxRank);
  if (!has_elements(out.extents)) return;
  // A copy of one element with strides of 0. The element is copied first, because it may lie inside
  // the destination.
  alignas(16) std::array<std::byte, 16> element;
  const std::size_t item = item_size(out.dtype);
  std::memcpy(element.data(), value, item);
  const Strides still(out.rank());
  const ConstView x{element.data(), out.dtype, out.extents, still};
  const std::byte* from = element.data();
  auto* to = static_cast<std::byte*>(out.data);
  Loop axes = make_loop(x, out, from, to);
  run_loop(std::move(axes), copy_row_of(item), from, to, item, true, 0);
}

}  // namespace palimpsest
