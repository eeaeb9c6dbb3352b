// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/tensor/dlpack.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "palimpsest/base/error.hpp"
#include "palimpsest/device/devices.hpp"
#include "palimpsest/memory/claimed_ranges.hpp"
#include "palimpsest/tensor/layout.hpp"
#include "palimpsest/tensor/reach.hpp"

namespace palimpsest {
namespace {

// Sizes on 64-bit platforms. They are the agreement with other libraries.
static_assert(sizeof(void*) == 8);
static_assert(sizeof(dlpack::TensorView) == 48 && sizeof(dlpack::ManagedTensor) == 64);
static_assert(sizeof(dlpack::ManagedTensorVersioned) == 80);
static_assert(offsetof(dlpack::TensorView, dtype) == 20);
static_assert(offsetof(dlpack::ManagedTensorVersioned, view) == 32);
static_assert(std::is_standard_layout_v<dlpack::ManagedTensorVersioned>);

dlpack::DataType type_of(DType dtype) {
  const auto bits = static_cast<std::uint8_t>(8 * item_size(dtype));
  if (is_bool(dtype)) return {dlpack::kBool, bits, 1};
  if (is_complex(dtype)) return {dlpack::kComplex, bits, 1};
  if (is_floating(dtype)) return {dlpack::kFloat, bits, 1};
  return {is_unsigned(dtype) ? dlpack::kUInt : dlpack::kInt, bits, 1};
}

DType dtype_from(const dlpack::DataType& type) {
  for (int k = 0; k < kDTypeCount; ++k) {
    const auto dtype = static_cast<DType>(k);
    const dlpack::DataType ours = type_of(dtype);
    if (type.code == ours.code && type.bits == ours.bits && type.lanes == 1) return dtype;
  }
  throw NotSupported("[from_dlpack] element type: got code " + std::to_string(type.code) + ", " +
                     std::to_string(type.bits) + " bits, " + std::to_string(type.lanes) +
                     " lanes, expected one lane of bool, int8..int64, uint8..uint64, float32/64 "
                     "or complex64/128");
}

dlpack::Device exported_device(Device device) {
  if (device.type == DeviceType::cuda) return {dlpack::kCuda, device.index};
  if (device.type == DeviceType::opencl) return {dlpack::kOpenCl, device.index};
  if (device == Device{}) return {dlpack::kCpu, 0};
  throw DeviceError("[to_dlpack] a memory space that DLPack has no name for: got " + device.str() +
                    ", expected cpu or an accelerator. Try to(Device{}).");
}

Device imported_device(const dlpack::Device& device) {
  if (device.kind == dlpack::kCpu || device.kind == dlpack::kCudaHost) return {};
  const bool is_away = device.kind == dlpack::kCuda || device.kind == dlpack::kOpenCl;
  if (is_away && device.index >= 0 && device.index < 32768) {
    return {device.kind == dlpack::kCuda ? DeviceType::cuda : DeviceType::opencl,
            static_cast<std::int16_t>(device.index)};
  }
  throw NotSupported("[from_dlpack] device: got kind " + std::to_string(device.kind) + ", index " +
                     std::to_string(device.index) +
                     ", expected memory of the host, of CUDA or of OpenCL");
}

// The stream of the receiver that is to wait, and to be waited for; none: no order is needed.
std::optional<void*> receiving_stream(Device device, DlpackStream stream) {
  constexpr std::int64_t kLegacy = 1, kNoOrder = -1;
  const bool is_cuda = device.type == DeviceType::cuda;
  const bool is_right = is_cuda ? !stream || *stream > 0 || *stream == kNoOrder
                                : !stream || (!device.is_host() && *stream == kNoOrder);
  if (!is_right) {
    throw ValueError("[to_dlpack] stream: got " + std::to_string(*stream) + ", expected " +
                     (is_cuda ? "-1, 1, 2 or the address of a stream" : "none on ") +
                     (is_cuda ? "" : device.str()));
  }
  if (!is_cuda || stream == kNoOrder) return {};
  return reinterpret_cast<void*>(stream.value_or(kLegacy));
}

// Keeps the memory of the receiver's pointer. For a writable one the pin keeps the address; for a
// read-only one `tensor` is a lazy clone that is never written, so that its data never move.
template <class Managed>
struct Export {
  Managed managed{};
  Tensor tensor;
  std::optional<Storage::Pin> pin;
  std::optional<WritableExport> writable;
  Extents shape;
  Strides strides;
  std::optional<void*> stream;  // of the receiver, which waits for the elements

  static void end(Managed* me) {
    const std::unique_ptr<Export> ended(static_cast<Export*>(me->context));
    if (!ended->stream) return;
    try {
      backend_of(ended->tensor.device()).wait_for_stream(*ended->stream);
    } catch (const Error&) {  // lost: no command will run
    }
  }
};

// The parts of the structure that say where the elements of made->tensor lie.
template <class Managed>
void describe(Export<Managed>& made, dlpack::Device device) {
  const Tensor& t = made.tensor;
  made.shape = t.shape();
  made.strides = t.strides();
  Managed& managed = made.managed;
  managed.context = &made;
  managed.deleter = Export<Managed>::end;
  managed.view.data = const_cast<void*>(t.raw_data());
  managed.view.device = device;
  managed.view.rank = static_cast<std::int32_t>(t.rank());
  managed.view.dtype = type_of(t.dtype());
  managed.view.shape = made.shape.data();
  managed.view.strides = made.strides.data();
  if (made.stream) backend_of(t.device()).let_stream_wait(*made.stream);
}

template <class Managed>
std::unique_ptr<Export<Managed>> make_writable_export(Tensor& t, DlpackStream stream) {
  const dlpack::Device device = exported_device(t.device());
  const std::optional<void*> receiver = receiving_stream(t.device(), stream);
  if (!t.is_contiguous() && has_internal_overlap(t)) {
    throw AliasError("[to_dlpack] elements overlap one another: got shape " + to_string(t.shape()) +
                     " with strides " + to_string(t.strides()) +
                     ", expected distinct ones to be written. Try clone(), or read-only access.");
  }
  auto made = std::make_unique<Export<Managed>>();
  made->pin = t.storage().pin();
  made->tensor = t;
  made->writable.emplace(made->tensor.storage());
  made->stream = receiver;
  describe(*made, device);
  return made;
}

// True if the data can be written in place, without a copy.
bool is_writable_in_place(const Tensor& t) {
  const StorageState state = t.storage().state();
  const bool stays = state == StorageState::owned || state == StorageState::pinned ||
                     state == StorageState::foreign_writable;
  return stays && (t.is_contiguous() || !has_internal_overlap(t));
}

// True for a read-only export of ours of data that cannot be cloned lazily: others may write them.
bool shows_writes(const dlpack::ManagedTensorVersioned& managed) {
  using Ours = Export<dlpack::ManagedTensorVersioned>;
  if (managed.deleter != Ours::end) return false;
  return static_cast<const Ours*>(managed.context)->tensor.storage().is_cloned_eagerly();
}

// `end` gives the memory back.
Tensor show(const dlpack::TensorView& view, bool writable, std::function<void()> end) {
  const DType dtype = dtype_from(view.dtype);
  const Device device = imported_device(view.device);
  const auto rank = static_cast<std::size_t>(view.rank);
  if (view.rank < 0 || rank > kMaxRank || (rank > 0 && view.shape == nullptr)) {
    throw ShapeError("[from_dlpack] number of axes: got " + std::to_string(view.rank) +
                     ", expected 0 .. " + std::to_string(kMaxRank) + " and their extents");
  }
  const Extents shape(view.shape, view.shape + rank);
  check_layout(shape, shape, "from_dlpack");
  const Strides strides = view.strides == nullptr ? contiguous_strides(shape)
                                                  : Strides(view.strides, view.strides + rank);
  auto* data = static_cast<std::byte*>(view.data);
  if (data != nullptr) {
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    if (view.byte_offset > std::uint64_t{PTRDIFF_MAX} - address) {
      throw ValueError("[from_dlpack] byte offset: got " + std::to_string(view.byte_offset) +
                       ", expected one that leads to memory");
    }
    data += view.byte_offset;
  }
  if (element_count(shape) > 0) {
    if (data == nullptr) {
      throw ValueError("[from_dlpack] got no memory, expected elements of shape " +
                       to_string(shape));
    }
    check_alignment(data, dtype, "from_dlpack");
  }
  if (!device.is_host() && element_count(shape) > 0) {
    const ReachedRange range = reached_range(shape, strides);
    const auto item = static_cast<index_t>(item_size(dtype));
    end = backend_of(device).adopt(data + range.low * item,
                                   static_cast<std::size_t>((range.high - range.low) * item),
                                   std::move(end));
  }
  return Tensor::from_blob(data, dtype, shape, strides, std::move(end), writable, device);
}

}  // namespace

DlpackStream stream_for_dlpack(palimpsest::Device device) {
  if (device.type != DeviceType::cuda) return {};
  return reinterpret_cast<std::int64_t>(backend_of(device).stream());
}

dlpack::ManagedTensorVersioned* to_dlpack(const Tensor& t, DlpackStream stream) {
  const dlpack::Device device = exported_device(t.device());
  auto made = std::make_unique<Export<dlpack::ManagedTensorVersioned>>();
  made->stream = receiving_stream(t.device(), stream);
  // A tensor that cannot be cloned lazily is shown where it is. Foreign memory stays there by
  // itself.
  made->pin = t.storage().join_pin();
  const bool stays = made->pin || t.storage().state() == StorageState::foreign_writable;
  made->tensor = stays ? t : t.lazy_clone();
  describe(*made, device);
  made->managed.version = {dlpack::kMajorVersion, dlpack::kMinorVersion};
  made->managed.flags = dlpack::kReadOnly;
  return &made.release()->managed;
}

dlpack::ManagedTensorVersioned* to_dlpack(Tensor& t, DlpackAccess access, DlpackStream stream) {
  const bool writable = access == DlpackAccess::writable ||
                        (access == DlpackAccess::automatic && is_writable_in_place(t));
  if (!writable) return to_dlpack(std::as_const(t), stream);
  auto made = make_writable_export<dlpack::ManagedTensorVersioned>(t, stream);
  made->managed.version = {dlpack::kMajorVersion, dlpack::kMinorVersion};
  return &made.release()->managed;
}

dlpack::ManagedTensor* to_unversioned_dlpack(Tensor& t, DlpackStream stream) {
  return &make_writable_export<dlpack::ManagedTensor>(t, stream).release()->managed;
}

Tensor from_dlpack(dlpack::ManagedTensorVersioned* managed) {
  if (managed->version.major != dlpack::kMajorVersion) {
    throw NotSupported("[from_dlpack] version: got " + std::to_string(managed->version.major) +
                       "." + std::to_string(managed->version.minor) + ", expected 1.x");
  }
  const bool writable = (managed->flags & dlpack::kReadOnly) == 0;
  if (!writable && shows_writes(*managed)) {
    Tensor copy = show(managed->view, false, {}).clone();
    managed->deleter(managed);
    return copy;
  }
  return show(managed->view, writable, [managed] {
    if (managed->deleter != nullptr) managed->deleter(managed);
  });
}

Tensor from_dlpack(dlpack::ManagedTensor* managed) {
  return show(managed->view, true, [managed] {
    if (managed->deleter != nullptr) managed->deleter(managed);
  });
}

}  // namespace palimpsest
