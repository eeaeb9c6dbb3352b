// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/run/debug_value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "palimpsest/copy/strided_copy.hpp"

namespace palimpsest {
namespace {

constexpr index_t kShownElements = 8;

// Copies of bools would convert values other than 0 and 1; bytes are copied as they are.
DType raw(DType dtype) { return is_bool(dtype) ? DType::uint8 : dtype; }

// Element i of dense data as up to two doubles.
struct Scalar {
  double re = 0, im = 0;
  bool is_finite() const { return std::isfinite(re) && std::isfinite(im); }
  double magnitude() const { return std::hypot(re, im); }
  std::string str(DType dtype) const {
    return is_complex(dtype) ? fmt::format("{}{:+}j", re, im) : fmt::format("{}", re);
  }
};

template <class T>
Scalar number(const T& x) {
  return {static_cast<double>(x), 0};
}
template <class T>
Scalar number(const std::complex<T>& x) {
  return {static_cast<double>(x.real()), static_cast<double>(x.imag())};
}

template <class Visit>
void for_each_number(const DebugValue& v, Visit visit) {
  visit_dtype(raw(v.dtype()), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto* const elements = reinterpret_cast<const T*>(v.data());
    const index_t n = v.numel();
    for (index_t i = 0; i < n; ++i) visit(i, number(elements[i]));
  });
}

double rounding_of(DType dtype) {
  return real_of(dtype) == DType::float32 ? std::numeric_limits<float>::epsilon()
                                          : std::numeric_limits<double>::epsilon();
}

Extents place_of(index_t i, const Extents& extents) {
  Extents index(extents.size(), 0);
  for (std::size_t k = extents.size(); k-- > 0;) {
    index[k] = i % extents[k];
    i /= extents[k];
  }
  return index;
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

DebugValue DebugValue::read(const ConstView& view) {
  auto data = std::make_shared<Data>();
  data->dtype = view.dtype;
  data->extents = Extents(view.extents.begin(), view.extents.end());
  data->strides = contiguous_strides(data->extents);
  data->bytes.resize(static_cast<std::size_t>(byte_count(data->extents, view.dtype)));
  if (!data->bytes.empty()) {
    const DType type = raw(view.dtype);
    strided_copy({view.data, type, view.extents, view.strides},
                 {data->bytes.data(), type, data->extents, data->strides});
  }
  DebugValue value;
  value.data_ = std::move(data);
  return value;
}

index_t DebugValue::numel() const { return element_count(data_->extents); }

void DebugValue::write(const MutableView& target) const {
  if (bytes() == 0) return;
  ConstView source = view();
  source.dtype = raw(source.dtype);
  strided_copy(source, {target.data, raw(target.dtype), target.extents, target.strides});
}

bool DebugValue::same_bits(const DebugValue& other) const {
  if (data_ == other.data_) return true;
  return dtype() == other.dtype() && extents() == other.extents() &&
         (bytes() == 0 || std::memcmp(data(), other.data(), bytes()) == 0);
}

std::string DebugValue::str() const {
  std::string text = fmt::format("{} {}", name_of(dtype()), to_string(extents()));
  const index_t n = numel();
  if (n == 0) return text;
  double min = std::numeric_limits<double>::infinity(), max = -min, sum = 0;
  index_t not_finite = 0;
  std::string elements;
  for_each_number(*this, [&](index_t i, const Scalar& x) {
    const double here = is_complex(dtype()) ? x.magnitude() : x.re;
    if (i < kShownElements) elements += (i > 0 ? ", " : "") + x.str(dtype());
    if (!x.is_finite()) {
      ++not_finite;
      return;
    }
    min = std::min(min, here);
    max = std::max(max, here);
    sum += here;
  });
  const char* const of = is_complex(dtype()) ? " (absolute values)" : "";
  if (not_finite < n) {
    text += fmt::format(": min {}, max {}, mean {}{}", min, max,
                        sum / static_cast<double>(n - not_finite), of);
  }
  text += fmt::format(", {} of {} not finite = [{}{}]", not_finite, n, elements,
                      n > kShownElements ? ", ..." : "");
  return text;
}

double scale_of(const DebugValue& v) {
  double largest = 0;
  for_each_number(v, [&](index_t, const Scalar& x) {
    if (x.is_finite()) largest = std::max(largest, x.magnitude());
  });
  return largest;
}

std::string Difference::str() const {
  if (!comparable) return "they differ in dtype or shape";
  return fmt::format(
      "{} elements differ, the first at {}: {} and {}; largest difference {}, relative {}; allowed "
      "{}",
      differing, to_string(index), first, second, largest_absolute, largest_relative, allowed);
}

Difference compare(const DebugValue& a, const DebugValue& b, const Tolerance& tolerance) {
  Difference result;
  result.comparable = a.dtype() == b.dtype() && a.extents() == b.extents();
  result.is_within = result.comparable;
  if (!result.comparable || a.same_bits(b)) return result;
  const bool bitwise = tolerance.roundings == 0 || !is_inexact(a.dtype());
  const double scale = std::max({tolerance.scale, scale_of(a), scale_of(b)});
  result.allowed = bitwise ? 0 : tolerance.roundings * rounding_of(a.dtype()) * scale;
  std::vector<Scalar> others;
  others.reserve(static_cast<std::size_t>(b.numel()));
  for_each_number(b, [&](index_t, const Scalar& x) { others.push_back(x); });
  const std::size_t item = item_size(a.dtype());
  for_each_number(a, [&](index_t i, const Scalar& x) {
    const Scalar& y = others[static_cast<std::size_t>(i)];
    const std::size_t at = static_cast<std::size_t>(i) * item;
    if (std::memcmp(a.data() + at, b.data() + at, item) == 0) return;
    const bool has_nan = std::isnan(x.re) || std::isnan(x.im);
    if ((!bitwise || has_nan) && same(x.re, y.re) && same(x.im, y.im)) return;
    const double apart = std::hypot(x.re - y.re, x.im - y.im);
    const bool comparable = x.is_finite() && y.is_finite();
    if (comparable) {
      const double size = std::max(x.magnitude(), y.magnitude());
      result.largest_absolute = std::max(result.largest_absolute, apart);
      if (size > 0) result.largest_relative = std::max(result.largest_relative, apart / size);
    }
    if (!bitwise && comparable && apart <= result.allowed) return;
    if (++result.differing > 1) return;
    result.is_within = false;
    result.index = place_of(i, a.extents());
    result.first = x.str(a.dtype());
    result.second = y.str(a.dtype());
  });
  return result;
}

Span span_of(const Layout& layout) {
  index_t lowest = 0, highest = 0;
  for (std::size_t k = 0; k < layout.extents.size(); ++k) {
    if (layout.extents[k] == 0) return {};
    const index_t reach = layout.strides[k] * (layout.extents[k] - 1);
    (reach < 0 ? lowest : highest) += reach;
  }
  const auto item = static_cast<index_t>(item_size(layout.dtype));
  return {static_cast<std::size_t>((highest - lowest + 1) * item), -lowest * item};
}

MutableView view_at(std::byte* first, const Layout& layout) {
  return {first,
          layout.dtype,
          {layout.extents.data(), layout.extents.size()},
          {layout.strides.data(), layout.strides.size()}};
}

}  // namespace palimpsest
