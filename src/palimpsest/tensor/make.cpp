// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/device_copy.hpp"
#include "palimpsest/tensor/layout.hpp"

namespace palimpsest {
namespace {

// ShapeError if elements would lie so many bytes in front of or behind an address that no memory
// can be there.
void check_reach(const void* data, index_t before, index_t behind, const Extents& shape,
                 const Strides& strides) {
  constexpr index_t kFarthest = index_t{1} << 57;  // the reach of five levels of page tables
  const auto address = static_cast<index_t>(reinterpret_cast<std::uintptr_t>(data));
  if (address >= before && behind <= kFarthest - address) return;
  throw ShapeError("[Tensor.from_blob] elements outside of all memory: got shape " +
                   to_string(shape) + " with strides " + to_string(strides) +
                   ", expected strides that reach less far");
}

}  // namespace

Tensor Tensor::empty(Extents shape, DType dtype, Device device, std::string_view name) {
  check_layout(shape, shape, "Tensor.empty");
  const index_t bytes = byte_count(shape, dtype);
  Strides strides = contiguous_strides(shape);
  return {Storage::allocate(static_cast<std::size_t>(bytes), device, name),
          dtype,
          device.is_host(),
          shape,
          strides,
          0};
}

Tensor Tensor::zeros(Extents shape, DType dtype, Device device) {
  Tensor t = empty(std::move(shape), dtype, device);
  // All bits zero is the number zero in every dtype.
  fill_bytes_on(device, t.raw_overwrite_data(), std::byte{}, static_cast<std::size_t>(t.nbytes()));
  return t;
}

Tensor Tensor::ones(Extents shape, DType dtype, Device device) {
  return empty(std::move(shape), dtype, device).fill(1.0);
}

template <class T>
Tensor Tensor::full(Extents shape, T value, Device device) {
  return empty(std::move(shape), dtype_of<T>, device).fill(value);
}

Tensor Tensor::arange(index_t n, DType dtype, Device device) {
  if (n < 0) {
    throw ValueError("[Tensor.arange] count: got " + std::to_string(n) + ", expected at least 0");
  }
  if (!device.is_host()) return arange(n, dtype).to(device);
  Tensor t = empty({n}, DType::int64, device);
  auto* const data = t.mutable_data<std::int64_t>();
  for (index_t i = 0; i < n; ++i) data[i] = i;
  return t.to(dtype);
}

Tensor Tensor::linspace(double first, double last, index_t n, DType dtype, Device device) {
  if (n < 0) {
    throw ValueError("[Tensor.linspace] count: got " + std::to_string(n) + ", expected at least 0");
  }
  if (!device.is_host()) return linspace(first, last, n, dtype).to(device);
  Tensor t = empty({n}, DType::float64, device);
  const auto steps = static_cast<double>(n - 1);
  index_t i = 0;
  for (double& x : std::span(t.mutable_data<double>(), static_cast<std::size_t>(n))) {
    x = i == 0       ? first
        : i == n - 1 ? last
                     : first + (last - first) * (static_cast<double>(i) / steps);
    ++i;
  }
  return t.to(dtype);
}

Tensor Tensor::eye(index_t n, DType dtype, Device device) {
  Tensor t = zeros({n, n}, dtype, device);
  t.diagonal().fill(1.0);
  return t;
}

template <class T>
Tensor Tensor::from(const std::vector<T>& values, std::optional<Extents> shape, Device device) {
  const auto count = static_cast<index_t>(values.size());
  if (!device.is_host()) return from(values, std::move(shape)).to(device);
  Tensor t = empty(shape ? infer_extent(*shape, count, "Tensor.from") : Extents{count}, dtype_of<T>,
                   device);
  T* data = t.mutable_data<T>();
  for (const T value : values) *data++ = value;
  return t;
}

template <class T>
Tensor Tensor::scalar(T value, Device device) {
  return full<T>({}, value, device);
}

Tensor Tensor::from_blob(void* data, DType dtype, Extents shape, Strides strides,
                         std::function<void()> deleter, bool writable, Device device) {
  // Everything that can fail comes before the storage exists: its end would run the deleter.
  check_layout(shape, strides, "Tensor.from_blob");
  byte_count(shape, dtype);  // OverflowError
  drop_far_strides(shape, strides);
  const ReachedRange range = reached_range(shape, strides);
  const auto item = static_cast<index_t>(item_size(dtype));
  const index_t bytes = checked_multiply(range.high - range.low, item);
  const index_t lead = checked_multiply(-range.low, item);
  if (bytes > 0 && data == nullptr) {
    throw ValueError("[Tensor.from_blob] got no memory, expected " + std::to_string(bytes) +
                     " bytes");
  }
  if (bytes > 0) {
    check_reach(data, lead, bytes - lead, shape, strides);
    check_alignment(data, dtype, "Tensor.from_blob");
  }
  Tensor t;
  t.storage_ =
      Storage::from_foreign(static_cast<std::byte*>(data) - lead, static_cast<std::size_t>(bytes),
                            device, writable, std::move(deleter));
  t.dtype_ = dtype;
  t.is_plain_ = device.is_host() && palimpsest::is_contiguous(shape, strides);
  t.shape_ = std::move(shape);
  t.strides_ = std::move(strides);
  t.offset_ = -range.low;
  return t;
}

Tensor Tensor::random_normal(Extents shape, DType dtype, RandomKey key, Device device) {
  if (!device.is_host()) return random_normal(std::move(shape), dtype, key).to(device);
  Tensor t = empty(std::move(shape), dtype, device);
  palimpsest::random_normal(key, t.mutable_view());
  return t;
}

Tensor Tensor::random_uniform(Extents shape, DType dtype, RandomKey key, Device device) {
  if (!device.is_host()) return random_uniform(std::move(shape), dtype, key).to(device);
  Tensor t = empty(std::move(shape), dtype, device);
  palimpsest::random_uniform(key, t.mutable_view());
  return t;
}

#define PALIMPSEST_INSTANTIATE(Type, Name)                                                      \
  template Tensor Tensor::full<Type>(Extents, Type, Device);                                    \
  template Tensor Tensor::from<Type>(const std::vector<Type>&, std::optional<Extents>, Device); \
  template Tensor Tensor::scalar<Type>(Type, Device);
PALIMPSEST_FOR_EACH_DTYPE(PALIMPSEST_INSTANTIATE)
#undef PALIMPSEST_INSTANTIATE

}  // namespace palimpsest
