// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/core/attribute.hpp"

#include <sstream>

namespace palimpsest {
namespace {

constexpr const char* kKinds[] = {"absent", "bool", "integer", "real",   "complex",
                                  "string", "Dims", "device",  "tensor", "list"};

}  // namespace

Attribute::Attribute(std::span<const index_t> values)
    : value_(List(values.begin(), values.end())) {}

template <class T>
const T& Attribute::get(const char* kind) const {
  if (const T* found = std::get_if<T>(&value_)) return *found;
  throw TypeError(std::string("[attribute] got ") + kKinds[value_.index()] + " " + str() +
                  ", expected " + kind);
}

bool Attribute::as_bool() const { return get<bool>("bool"); }
index_t Attribute::as_integer() const { return get<index_t>("integer"); }
double Attribute::as_real() const {
  if (const index_t* integer = std::get_if<index_t>(&value_)) return static_cast<double>(*integer);
  return get<double>("real");
}
std::complex<double> Attribute::as_complex() const {
  const bool is_complex = std::holds_alternative<std::complex<double>>(value_);
  return is_complex ? std::get<std::complex<double>>(value_) : as_real();
}
const std::string& Attribute::as_string() const { return get<std::string>("string"); }
const Dims& Attribute::as_dims() const { return get<Dims>("Dims"); }
Device Attribute::as_device() const { return get<Device>("device"); }
const Tensor& Attribute::as_tensor() const { return get<Tensor>("tensor"); }
const Attribute::List& Attribute::as_list() const { return get<List>("list"); }

Extents Attribute::as_integers() const {
  Extents result;
  for (const Attribute& a : as_list()) result.push_back(a.as_integer());
  return result;
}

std::string Attribute::str() const {
  std::ostringstream text;
  std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          text << "absent";
        } else if constexpr (std::is_same_v<T, bool>) {
          text << (value ? "true" : "false");
        } else if constexpr (std::is_same_v<T, Device>) {
          text << value.str();
        } else if constexpr (std::is_same_v<T, List>) {
          text << '[';
          for (std::size_t i = 0; i < value.size(); ++i) {
            text << (i > 0 ? ", " : "") << value[i].str();
          }
          text << ']';
        } else {
          text << value;
        }
      },
      value_);
  return text.str();
}

PALIMPSEST_API bool operator==(const Attribute& a, const Attribute& b) {
  const Tensor* tensor = std::get_if<Tensor>(&a.value_);
  const Tensor* other = std::get_if<Tensor>(&b.value_);
  if (tensor || other) return tensor && other && equal(*tensor, *other);
  if (a.value_.index() != b.value_.index()) return false;
  return std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, Tensor>) {
          return true;  // compared above
        } else {
          return value == std::get<T>(b.value_);
        }
      },
      a.value_);
}

}  // namespace palimpsest
