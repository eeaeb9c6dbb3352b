// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/variable.hpp"

namespace PALIMPSEST_API palimpsest {

template <class T>
inline constexpr bool is_std_complex = false;
template <class T>
inline constexpr bool is_std_complex<std::complex<T>> = true;
/// A C++ number: an integer, a floating or a complex number, or a bool.
template <class T>
concept Number = std::is_arithmetic_v<T> || is_std_complex<T>;

template <class T>
concept StandsForVariable = !std::is_same_v<T, Variable> && requires(const T& v) {
  v.operator const Variable&();
};

class Results;

/// Argument in place of a tensor: a Tensor, the result of a call, a number, or numbers as a vector
/// or in braces. Braces make a tensor of one axis: `s.set_value({1.0, 2.0})` has two elements,
/// `s.set_value({1.0})` one.
///
/// Numbers are weak: they become the wanted dtype if each of them survives exactly. By themselves
/// integers are int64 (uint64 if unsigned), floating and complex numbers keep their precision. A
/// Variable is accepted by the compiler, and refused with a TypeError where the value is used.
class Value {
 public:
  Value() = default;
  Value(const Tensor& tensor) : tensor_(tensor) {}
  Value(Tensor&& tensor) : tensor_(std::move(tensor)) {}
  /// TypeError if a call gave several results.
  Value(const Results& result);
  Value(Results&& result);
  template <Number T>
  Value(T number) : tensor_(Tensor::scalar(widened(number))), is_weak_(true) {}
  template <Number T>
  Value(const std::vector<T>& numbers) : tensor_(listed(numbers)), is_weak_(true) {}
  template <Number T>
  Value(std::initializer_list<T> numbers) : Value(std::vector<T>(numbers)) {}
  Value(const Variable& variable) : variable_(variable) {}
  /// Numbers of any number of axes, that are weak like those above.
  static Value weak(Tensor numbers) {
    Value value(std::move(numbers));
    value.is_weak_ = true;
    return value;
  }
  /// Types that stand for a variable, such as SharedVariable.
  template <class T>
  requires StandsForVariable<T> Value(const T& v) : variable_(static_cast<const Variable&>(v)) {}

  bool defined() const { return variable_.defined() || tensor_.defined(); }
  bool is_variable() const { return variable_.defined(); }
  const Variable& variable() const { return variable_; }
  const Tensor& tensor() const { return tensor_; }
  /// True if it consists of C++ numbers.
  bool is_weak() const { return is_weak_; }

 private:
  template <class T>
  static auto widened(T number) {
    if constexpr (std::is_same_v<T, bool> || std::is_floating_point_v<T> || is_std_complex<T>) {
      return number;
    } else if constexpr (std::is_signed_v<T>) {
      return static_cast<std::int64_t>(number);
    } else {
      return static_cast<std::uint64_t>(number);
    }
  }
  template <class T>
  static Tensor listed(const std::vector<T>& numbers) {
    if constexpr (std::is_same_v<T, bool>) {
      Tensor list = Tensor::zeros({static_cast<index_t>(numbers.size())}, DType::bool_);
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        list.set<bool>({static_cast<index_t>(i)}, numbers[i]);
      }
      return list;
    } else {
      std::vector<decltype(widened(T{}))> wide;
      for (T number : numbers) wide.push_back(widened(number));
      return Tensor::from(wide);
    }
  }

  Tensor tensor_;
  Variable variable_;
  bool is_weak_ = false;
};

/// Strictness of the conversion of a value.
struct FilterOptions {
  /// Exact dtype, shape and device; nothing is converted or moved.
  bool strict = false;
  /// Conversions that lose values: allowed, forbidden, or (unset) only a floating number for a
  /// float32 where that is the default float.
  std::optional<bool> allow_downcast = {};
};

/// The value as a tensor of the type: the given one if it fits, else a converted or moved copy.
///
/// Errors  TypeError: a Variable, or not a tensor; DTypeError: a conversion that is not exact, or
///         (strict) another dtype; OverflowError: a number out of range; ShapeError: another rank
///         or extent; DeviceError: strict and elsewhere. Texts begin with `[who] `
Tensor filter(const TensorType& type, const Value& value, const FilterOptions& options,
              std::string_view who);
/// True if filter() returns this tensor itself.
inline bool passes_unchanged(const TensorType& type, const Tensor& tensor) {
  return tensor.dtype() == type.dtype && tensor.device() == type.device &&
         type.admits(tensor.shape());
}

}  // namespace palimpsest
