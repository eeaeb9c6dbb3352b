// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/device_copy.hpp"
#include "palimpsest/tensor/layout.hpp"

namespace palimpsest {
namespace {

// A new dense tensor with the same elements.
Tensor copied_to(const Tensor& t, DType dtype, Device device) {
  Tensor copy = Tensor::empty(t.shape(), dtype, device);
  copy_elements_on(t.device(), addresses_of(t), device,
                   {copy.raw_overwrite_data(), dtype, copy.shape(), copy.strides()});
  return copy;
}

bool has_same_elements(const Tensor& a, const Tensor& b) {
  return shares_storage(a, b) && a.dtype() == b.dtype() && a.offset() == b.offset() &&
         a.strides() == b.strides();
}

}  // namespace

Tensor Tensor::lazy_clone() const {
  check_defined();
  const ReachedRange range = reached_range(shape_, strides_);
  const std::size_t item = item_size(dtype_);
  const bool is_empty = range.high == range.low;
  const auto first = is_empty ? 0 : static_cast<std::size_t>(offset_ + range.low) * item;
  const auto bytes = static_cast<std::size_t>(range.high - range.low) * item;
  return {storage_.lazy_clone(first, bytes), dtype_, is_plain_, shape_, strides_, -range.low};
}

Tensor Tensor::clone() const { return copied_to(*this, dtype(), device()); }

Tensor Tensor::contiguous() const { return is_contiguous() ? lazy_clone() : clone(); }

Tensor Tensor::reshape(Extents shape) const {
  Extents wanted = infer_extent(std::move(shape), numel(), "Tensor.reshape");
  check_layout(wanted, wanted, "Tensor.reshape");
  Strides strides;
  const bool is_view = view_strides(shape_, strides_, wanted, strides);
  return (is_view ? lazy_clone() : clone()).view(std::move(wanted));
}

Tensor Tensor::to(DType dtype) const {
  if (dtype == dtype_) return lazy_clone();
  check_conversion(dtype_, dtype, "Tensor.to");
  return copied_to(*this, dtype, device());
}

Tensor Tensor::to(Device device) const {
  if (device == this->device()) return lazy_clone();
  return copied_to(*this, dtype_, device);
}

Tensor on_host(const Tensor& t) { return t.device().is_host() ? t : t.to(Device{}); }

Tensor& Tensor::copy_from(const Tensor& source) {
  check_writable("Tensor.copy_from");
  check_conversion(source.dtype(), dtype_, "Tensor.copy_from");
  if (source.device() != device()) {
    throw DeviceError("[Tensor.copy_from] devices differ: got " + source.device().str() +
                      ", expected " + device().str() + ". Try to() first.");
  }
  Tensor elements;
  try {
    elements = source.expand(shape_);
  } catch (const ShapeError&) {
    throw ShapeError("[Tensor.copy_from] shapes do not fit: got " + to_string(source.shape()) +
                     ", expected to broadcast to " + to_string(shape_));
  }
  if (numel() == 0 || has_same_elements(elements, *this)) return *this;
  if (overlaps(elements, *this)) elements = source.clone().expand(shape_);
  compact_for_write(true);
  // The old bytes may be lost only if the source is not among them. The destination comes first:
  // materializing it moves a source that shares its storage.
  void* const data = shares_storage(elements, *this) ? raw_mutable_data() : raw_overwrite_data();
  copy_elements_on(device(), addresses_of(elements), device(),
                   MutableView{data, dtype_, shape_, strides_});
  return *this;
}

}  // namespace palimpsest
