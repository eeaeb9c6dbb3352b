// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "palimpsest/copy/strided_copy.hpp"
#include "palimpsest/memory/device_copy.hpp"
#include "palimpsest/tensor/layout.hpp"

namespace palimpsest {
namespace {

// The view of one element of a full index.
Tensor element_at(const Tensor& t, std::initializer_list<index_t> index, std::string_view who) {
  if (index.size() != t.rank()) {
    throw ShapeError("[" + std::string(who) + "] one index per axis is needed: got " +
                     to_string(std::span<const index_t>(index.begin(), index.size())) +
                     " for shape " + to_string(t.shape()));
  }
  Tensor element = t;
  std::size_t axis = 0;
  for (const index_t i : index) {
    const index_t n = t.shape()[axis];
    if (i < -n || i >= n) {
      throw ShapeError("[" + std::string(who) + "] axis " + std::to_string(axis) +
                       ": index out of range: got " + std::to_string(i) + ", expected " +
                       std::to_string(-n) + " .. " + std::to_string(n - 1));
    }
    element = element.select(0, i);
    ++axis;
  }
  return element;
}

}  // namespace

void Tensor::read_element(void* value, DType dtype, std::string_view who) const {
  check_conversion(dtype_, dtype, who);
  copy_elements_on(device(), {raw_data(), dtype_, {}, {}}, {}, {value, dtype, {}, {}});
}

void Tensor::fill_with(const void* value, DType dtype) {
  check_writable("Tensor.fill");
  check_conversion(dtype, dtype_, "Tensor.fill");
  if (numel() == 0) return;  // and shared data stay shared
  alignas(16) std::array<std::byte, 16> element;
  strided_copy(ConstView{value, dtype, {}, {}}, MutableView{element.data(), dtype_, {}, {}});
  compact_for_write(true);
  void* const data = raw_overwrite_data();
  fill_elements_on(element.data(), device(), MutableView{data, dtype_, shape_, strides_});
}

template <class T>
T Tensor::item() const {
  if (numel() != 1) {
    throw ShapeError("[Tensor.item] got shape " + to_string(shape_) +
                     ", expected one element. Try at({...}).");
  }
  T value;
  read_element(&value, dtype_of<T>, "Tensor.item");
  return value;
}

template <class T>
T Tensor::at(std::initializer_list<index_t> index) const {
  check_on_host(*this, "Tensor.at");
  T value;
  element_at(*this, index, "Tensor.at").read_element(&value, dtype_of<T>, "Tensor.at");
  return value;
}

template <class T>
void Tensor::set(std::initializer_list<index_t> index, T value) {
  check_on_host(*this, "Tensor.set");
  check_writable("Tensor.set");
  check_conversion(dtype_of<T>, dtype_, "Tensor.set");
  // All that can be wrong comes before the strides may change.
  element_at(*this, index, "Tensor.set");
  compact_for_write(false);
  element_at(*this, index, "Tensor.set").fill_with(&value, dtype_of<T>);
}

template <class T>
Tensor& Tensor::fill(T value) {
  fill_with(&value, dtype_of<T>);
  return *this;
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  check_defined();
  check_conversion(dtype_, dtype_of<T>, "Tensor.to_vector");
  const auto count = static_cast<std::size_t>(numel());
  const Strides strides = contiguous_strides(shape_);
  if constexpr (std::is_same_v<T, bool>) {
    // std::vector<bool> has no elements to point to.
    std::vector<std::uint8_t> bytes(count);
    copy_elements_on(device(), addresses_of(*this), {},
                     {bytes.data(), DType::bool_, shape_, strides});
    return {bytes.begin(), bytes.end()};
  } else {
    std::vector<T> values(count);
    copy_elements_on(device(), addresses_of(*this), {},
                     {values.data(), dtype_of<T>, shape_, strides});
    return values;
  }
}

#define PALIMPSEST_INSTANTIATE(Type, Name)                               \
  template Type Tensor::item<Type>() const;                              \
  template Type Tensor::at<Type>(std::initializer_list<index_t>) const;  \
  template void Tensor::set<Type>(std::initializer_list<index_t>, Type); \
  template Tensor& Tensor::fill<Type>(Type);                             \
  template std::vector<Type> Tensor::to_vector<Type>() const;
PALIMPSEST_FOR_EACH_DTYPE(PALIMPSEST_INSTANTIATE)
#undef PALIMPSEST_INSTANTIATE

}  // namespace palimpsest
