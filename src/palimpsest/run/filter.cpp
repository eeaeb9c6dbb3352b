// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "palimpsest/base/config.hpp"
#include "palimpsest/run/value.hpp"

namespace palimpsest {
namespace {

enum class Survival { exact, inexact, out_of_range };

// Wide enough for every integer dtype.
__extension__ using Wide = __int128;

template <class To>
Survival integer_as(Wide value) {
  if constexpr (is_std_complex<To>) {
    return integer_as<typename To::value_type>(value);
  } else if constexpr (std::is_floating_point_v<To>) {
    return static_cast<Wide>(static_cast<To>(value)) == value ? Survival::exact : Survival::inexact;
  } else {
    const bool fits = value >= static_cast<Wide>(std::numeric_limits<To>::min()) &&
                      value <= static_cast<Wide>(std::numeric_limits<To>::max());
    return fits ? Survival::exact : Survival::out_of_range;
  }
}

template <class To>
Survival real_as(double value) {
  if constexpr (is_std_complex<To>) {
    return real_as<typename To::value_type>(value);
  } else if constexpr (std::is_floating_point_v<To>) {
    if (!std::isfinite(value)) return Survival::exact;
    if (std::abs(value) > static_cast<double>(std::numeric_limits<To>::max())) {
      return Survival::out_of_range;
    }
    const bool same = static_cast<double>(static_cast<To>(value)) == value;
    return same ? Survival::exact : Survival::inexact;
  } else {
    if (std::isnan(value)) return Survival::inexact;
    // The largest integer plus one is a power of two, so the bound is exact.
    const double end = std::ldexp(1.0, std::numeric_limits<To>::digits);
    const double low = std::is_signed_v<To> ? -end : 0.0;
    if (value >= end || value < low) return Survival::out_of_range;
    return std::trunc(value) == value ? Survival::exact : Survival::inexact;
  }
}

template <class To, class From>
Survival number_as(From value) {
  if constexpr (is_std_complex<From>) {
    if constexpr (is_std_complex<To>) {
      const Survival re = real_as<To>(value.real());
      return re == Survival::exact ? real_as<To>(value.imag()) : re;
    }
    return Survival::inexact;
  } else if constexpr (std::is_floating_point_v<From>) {
    return real_as<To>(static_cast<double>(value));
  } else {
    return integer_as<To>(static_cast<Wide>(value));
  }
}

// The worst result of converting the numbers to `to`.
Survival survival(const Tensor& numbers, DType to) {
  return visit_dtype(numbers.dtype(), [&](auto from_tag) {
    using From = typename decltype(from_tag)::type;
    return visit_dtype(to, [&](auto to_tag) {
      using To = typename decltype(to_tag)::type;
      Survival worst = Survival::exact;
      const auto* data = numbers.data<From>();
      for (index_t i = 0; i < numbers.numel(); ++i) {
        worst = std::max(worst, number_as<To>(data[i]));
      }
      return worst;
    });
  });
}

std::string bracketed(std::string_view who) { return "[" + std::string(who) + "] "; }

[[noreturn]] void throw_dtype(DType got, DType expected, std::string_view who,
                              std::string_view advice) {
  throw DTypeError(bracketed(who) + "dtype: got " + std::string(name_of(got)) + ", expected " +
                   std::string(name_of(expected)) + ". Try " + std::string(advice));
}

bool may_round(const Tensor& numbers, DType to, const FilterOptions& options) {
  if (options.allow_downcast) return *options.allow_downcast;
  return is_floating(numbers.dtype()) && to == DType::float32 &&
         config().default_float == DType::float32;
}

Tensor converted_numbers(const Tensor& numbers, DType to, const FilterOptions& options,
                         std::string_view who) {
  if (is_complex(numbers.dtype()) && !is_complex(to)) {
    throw_dtype(numbers.dtype(), to, who, "the real part");
  }
  const Survival worst = survival(numbers, to);
  if (worst == Survival::exact || may_round(numbers, to, options)) return numbers.to(to);
  if (worst == Survival::out_of_range) {
    throw OverflowError(bracketed(who) + "number out of range: got " + to_string(numbers) +
                        ", expected " + std::string(name_of(to)) + ". Try allow_downcast = true");
  }
  throw DTypeError(bracketed(who) + "number that does not survive: got " + to_string(numbers) +
                   ", expected " + std::string(name_of(to)) + ". Try allow_downcast = true");
}

Tensor converted(const Tensor& tensor, DType to, const FilterOptions& options,
                 std::string_view who) {
  const DType from = tensor.dtype();
  if (is_complex(from) && !is_complex(to)) throw_dtype(from, to, who, "the real part");
  if (!converts_exactly(from, to) && !options.allow_downcast.value_or(false)) {
    throw_dtype(from, to, who, "to(dtype) or allow_downcast = true");
  }
  return tensor.to(to);
}

}  // namespace

Tensor filter(const TensorType& type, const Value& value, const FilterOptions& options,
              std::string_view who) {
  if (value.is_variable()) {
    throw TypeError(bracketed(who) + "got the Variable " + value.variable().str() +
                    ", expected a value of " + type.str() + ". Try to evaluate it first");
  }
  if (!value.tensor().defined()) {
    throw TypeError(bracketed(who) + "got an undefined tensor, expected " + type.str());
  }
  Tensor result = value.tensor();
  if (!type.admits(result.shape())) {
    throw ShapeError(bracketed(who) + "shape: got " + to_string(result.shape()) + ", expected " +
                     type.str());
  }
  if (result.dtype() != type.dtype) {
    if (options.strict)
      throw_dtype(result.dtype(), type.dtype, who, "to(dtype), or strict = false");
    result = value.is_weak() ? converted_numbers(result, type.dtype, options, who)
                             : converted(result, type.dtype, options, who);
  }
  if (result.device() != type.device) {
    if (options.strict) {
      throw DeviceError(bracketed(who) + "device: got " + result.device().str() + ", expected " +
                        type.device.str() + ". Try to(device), or strict = false");
    }
    result = result.to(type.device);
  }
  return result;
}

}  // namespace palimpsest
