// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/named/dims.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

/// Constant of an operator, known while its graph is built: a bool, an integer, a real or complex
/// number, a string, Dims, a device, a tensor, a list of these, or nothing. A value.
class Attribute {
 public:
  using List = std::vector<Attribute>;
  enum class Kind : std::uint8_t {
    absent,
    boolean,
    integer,
    real,
    complex,
    string,
    dims,
    device,
    tensor,
    list,
  };

  Attribute() = default;
  Attribute(bool value) : value_(value) {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) Attribute(T value) : value_(static_cast<index_t>(value)) {}
  template <std::floating_point T>
  Attribute(T value) : value_(static_cast<double>(value)) {}
  Attribute(std::complex<double> value) : value_(value) {}
  Attribute(std::string value) : value_(std::move(value)) {}
  Attribute(const char* value) : value_(std::string(value)) {}
  Attribute(Dims value) : value_(std::move(value)) {}
  Attribute(Device value) : value_(value) {}
  Attribute(Tensor value) : value_(std::move(value)) {}
  Attribute(List values) : value_(std::move(values)) {}
  /// A list of integers.
  explicit Attribute(std::span<const index_t> values);

  Kind kind() const { return static_cast<Kind>(value_.index()); }
  bool absent() const { return kind() == Kind::absent; }
  bool is_tensor() const { return std::holds_alternative<Tensor>(value_); }
  bool is_list() const { return std::holds_alternative<List>(value_); }
  // The value; TypeError when it is of another kind. A real number is also a complex one, an
  // integer also a real one.
  bool as_bool() const;
  index_t as_integer() const;
  double as_real() const;
  std::complex<double> as_complex() const;
  const std::string& as_string() const;
  const Dims& as_dims() const;
  Device as_device() const;
  /// The given tensor itself, with the storages that it shares.
  const Tensor& as_tensor() const;
  const List& as_list() const;
  /// A list of integers.
  Extents as_integers() const;

  std::string str() const;
  /// Same kind and value; tensors by their elements.
  friend bool operator==(const Attribute& a, const Attribute& b);

 private:
  template <class T>
  const T& get(const char* kind) const;

  std::variant<std::monostate, bool, index_t, double, std::complex<double>, std::string, Dims,
               Device, Tensor, List>
      value_;
};

}  // namespace palimpsest
