// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/tensor/tensor.hpp"

#include <algorithm>

#include "palimpsest/tensor/layout.hpp"

namespace palimpsest {
namespace {

// Below this a dense copy of a sparse view is not worth other strides.
constexpr std::size_t kCompactFromBytes = 4096;

}  // namespace

void check_layout(std::span<const index_t> shape, std::span<const index_t> strides,
                  std::string_view who) {
  const auto prefix = [who] { return "[" + std::string(who) + "] "; };
  if (shape.size() > kMaxRank) {
    throw ShapeError(prefix() + "too many axes: got " + std::to_string(shape.size()) +
                     ", expected at most " + std::to_string(kMaxRank));
  }
  if (shape.size() != strides.size()) {
    throw ShapeError(prefix() + "one stride per axis is needed: got shape " + to_string(shape) +
                     " and strides " + to_string(strides));
  }
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] < 0) {
      throw ShapeError(prefix() + "negative extent on axis " + std::to_string(axis) + ": got " +
                       to_string(shape));
    }
  }
}

void drop_far_strides(std::span<const index_t> shape, Strides& strides) {
  constexpr index_t kFarthest = index_t{1} << 48;  // elements: sums over all axes fit in bytes
  const bool is_empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (!is_empty && shape[axis] != 1) continue;
    index_t reach;
    const index_t extent = std::max<index_t>(shape[axis], 1);
    if (__builtin_mul_overflow(strides[axis], extent, &reach) || reach > kFarthest ||
        reach < -kFarthest) {
      strides[axis] = 0;
    }
  }
}

void check_alignment(const void* address, DType dtype, std::string_view who) {
  const std::size_t alignment =
      visit_dtype(dtype, [](auto tag) { return alignof(typename decltype(tag)::type); });
  if (reinterpret_cast<std::uintptr_t>(address) % alignment != 0) {
    throw ValueError("[" + std::string(who) + "] misaligned memory for " +
                     std::string(name_of(dtype)) + ": got an address that is not a multiple of " +
                     std::to_string(alignment) + ". Try clone() of the bytes first.");
  }
}

void check_conversion(DType from, DType to, std::string_view who) {
  if (is_complex(from) && !is_complex(to) && !is_bool(to)) {
    throw DTypeError("[" + std::string(who) + "] imaginary parts would be lost: got " +
                     std::string(name_of(from)) + ", expected a real dtype to convert to " +
                     std::string(name_of(to)) + ". Try view_as_real().");
  }
}

void check_on_host(const Tensor& t, std::string_view who) {
  if (t.device().is_host()) return;
  throw DeviceError("[" + std::string(who) + "] the host cannot reach " + t.device().str() +
                    ". Try to(Device{}).");
}

ConstView addresses_of(const Tensor& t) {
  return {t.raw_data(), t.dtype(), t.shape(), t.strides()};
}

ByteLayout byte_layout(const Tensor& t) {
  const std::size_t item = item_size(t.dtype());
  const auto step = static_cast<index_t>(item);
  ByteLayout layout{t.offset() * step, t.shape(), t.strides(), static_cast<int>(item)};
  // Strides along axes without neighbours mean nothing and need not fit in bytes.
  for (std::size_t axis = 0; axis < t.rank(); ++axis) {
    const bool has_neighbours = layout.shape[axis] > 1;
    layout.strides[axis] = has_neighbours ? checked_multiply(layout.strides[axis], step) : 0;
  }
  return layout;
}

Tensor::Tensor(Storage storage, DType dtype, Extents shape, Strides strides, index_t offset)
    : storage_(std::move(storage)),
      dtype_(dtype),
      shape_(std::move(shape)),
      strides_(std::move(strides)),
      offset_(offset) {
  check_defined();
  check_layout(shape_, strides_, "Tensor");
  byte_count(shape_, dtype_);  // OverflowError
  drop_far_strides(shape_, strides_);
  const auto capacity = static_cast<index_t>(storage_.nbytes() / item_size(dtype_));
  const ReachedRange range = reached_range(shape_, strides_);
  if (checked_add(offset_, range.low) < 0 || checked_add(offset_, range.high) > capacity) {
    throw AliasError("[Tensor] view reaches outside its storage: got shape " + to_string(shape_) +
                     ", strides " + to_string(strides_) + ", offset " + std::to_string(offset_) +
                     ", expected elements 0 .. " + std::to_string(capacity) + " of " +
                     std::string(name_of(dtype_)));
  }
  if (range.high > range.low) check_alignment(storage_.data(), dtype_, "Tensor");
  is_plain_ = device().is_host() && is_contiguous();
}

Tensor Tensor::view_with(DType dtype, const Extents& shape, const Strides& strides,
                         index_t offset) const {
  return {storage_, dtype, is_plain_, shape, strides, offset};
}

void Tensor::throw_undefined() { throw ValueError("[Tensor] undefined: got an empty handle"); }

index_t Tensor::shape(index_t axis) const {
  return shape()[static_cast<std::size_t>(normalize_axis(axis, rank(), "Tensor.shape"))];
}

bool Tensor::is_contiguous() const {
  check_defined();
  return palimpsest::is_contiguous(shape_, strides_);
}

bool Tensor::is_shared() const { return storage_.is_shared(); }

void Tensor::check_access(DType dtype) const {
  check_defined();
  if (dtype != dtype_) {
    throw DTypeError("[Tensor.data] element type: got " + std::string(name_of(dtype_)) +
                     ", expected " + std::string(name_of(dtype)) + ". Try to() or bitcast().");
  }
  check_on_host(*this, "Tensor.data");
}

void Tensor::check_writable(std::string_view who) const {
  if (is_plain_ || is_contiguous() || !has_internal_overlap(*this)) return;
  throw AliasError("[" + std::string(who) + "] elements overlap one another: got shape " +
                   to_string(shape_) + " with strides " + to_string(strides_) +
                   ". Try clone() first.");
}

const void* Tensor::raw_data() const {
  return storage_.data() + offset_ * static_cast<index_t>(item_size(dtype_));
}

void* Tensor::raw_mutable_data() {
  check_writable("Tensor.mutable_data");
  return storage_.mutable_data() + offset_ * static_cast<index_t>(item_size(dtype_));
}

void* Tensor::raw_overwrite_data() {
  check_writable("Tensor.overwrite_data");
  // Without overlap, as many bytes as the storage has are all of them.
  const bool is_everything = static_cast<std::size_t>(nbytes()) == storage_.nbytes();
  std::byte* const data = is_everything ? storage_.overwrite_data() : storage_.mutable_data();
  return data + offset_ * static_cast<index_t>(item_size(dtype_));
}

ConstView Tensor::view_of() const {
  if (!is_plain_) check_on_host(*this, "Tensor.view_of");
  return addresses_of(*this);
}

void Tensor::compact_for_write(bool overwrite) {
  const std::size_t available = storage_.nbytes();
  if (available < kCompactFromBytes || 2 * static_cast<std::size_t>(nbytes()) >= available) return;
  if (storage_.writable_data() != nullptr || storage_.use_count() > 1) return;
  if (!storage_.materialize_densely(byte_layout(*this), overwrite)) return;
  strides_ = contiguous_strides(shape_);
  offset_ = 0;
}

MutableView Tensor::mutable_view() {
  if (!is_plain_) check_on_host(*this, "Tensor.mutable_view");
  check_writable("Tensor.mutable_view");
  compact_for_write(false);
  return {raw_mutable_data(), dtype_, shape_, strides_};
}

bool shares_storage(const Tensor& a, const Tensor& b) {
  return a.defined() && a.storage().is(b.storage());
}

}  // namespace palimpsest
