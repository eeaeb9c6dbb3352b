// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "palimpsest/base/api.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

/// The structures of DLPack 1.x, laid out as its specification says, so that a pointer to one may
/// be exchanged with any library that speaks it.
namespace dlpack {

inline constexpr std::uint32_t kMajorVersion = 1;
inline constexpr std::uint32_t kMinorVersion = 0;

enum DeviceKind : std::int32_t { kCpu = 1, kCuda = 2, kCudaHost = 3, kOpenCl = 4 };
enum TypeCode : std::uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kComplex = 5, kBool = 6 };
enum Flags : std::uint64_t { kReadOnly = 1, kIsCopied = 2 };

struct Version {
  std::uint32_t major, minor;
};

struct Device {
  std::int32_t kind;
  std::int32_t index;
};

struct DataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct TensorView {
  void* data;
  Device device;
  std::int32_t rank;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  ///< in elements; null for dense row-major
  std::uint64_t byte_offset;
};

/// The form before 1.0: cannot say that it is read-only. "dltensor" in Python.
struct ManagedTensor {
  TensorView view;
  void* context;
  void (*deleter)(ManagedTensor* me);
};

/// "dltensor_versioned" in Python.
struct ManagedTensorVersioned {
  Version version;
  void* context;
  void (*deleter)(ManagedTensorVersioned* me);
  std::uint64_t flags;
  TensorView view;
};

}  // namespace dlpack

/// Stream of CUDA where the receiver of an export uses its memory: 1 is the legacy one, 2 that of
/// the thread; none: the legacy one; -1: it asks for no order. Memory of
/// OpenCL stays in this process, and the host's needs no order: they have no streams.
using DlpackStream = std::optional<std::int64_t>;
/// The stream that a producer of memory of a device has to be told; none: it needs none.
DlpackStream stream_for_dlpack(palimpsest::Device device);

/// Hands a tensor to another library for reading, without a copy. The receiver calls the deleter
/// once.
///
/// Aliases  a lazy clone, which shows no later write; data that cannot be cloned lazily (pinned,
///          foreign writable) are an alias with a fixed address
/// Threads  a read: safe beside clones, exports and other reads of the same tensor. The deleter may
///          be called by any thread.
/// Errors   DeviceError: a memory space of the host other than cpu:0; ValueError "stream: got"
/// Cost     no wait of the host: the receiver's stream waits for the elements, and later work on
///          them for what the receiver enqueued before it called the deleter
dlpack::ManagedTensorVersioned* to_dlpack(const Tensor& t, DlpackStream stream = {});

/// Rights of the receiver of an export.
enum class DlpackAccess : std::uint8_t {
  automatic,  ///< write if the data are in one tensor's hands, read if they are shared
  read_only,  ///< as to_dlpack(const Tensor&)
  writable,   ///< shared and read-only data are copied first
};

/// The same for receivers that may write.
///
/// Aliases  writable: an alias like a view; until the deleter is called the data stay where they
///          are, and lazy clones of them are copies
/// Threads  **a write**, unless the access is read_only: no other thread may use the same Storage
///          meanwhile. The deleter may be called by any thread.
/// Errors   those above; AliasError: `writable`, and elements overlap one another;
///          OutOfMemory: `writable`, and shared data could not be copied
dlpack::ManagedTensorVersioned* to_dlpack(Tensor& t, DlpackAccess access, DlpackStream stream = {});
/// Does as `writable`, for receivers of the form before 1.0, which nothing tells that they may not
/// write.
dlpack::ManagedTensor* to_unversioned_dlpack(Tensor& t, DlpackStream stream = {});

/// Shows the memory of another library without a copy; calls the deleter with the last reference to
/// it; on an accelerator later, after the commands that use it. The argument is the caller's if
/// this throws.
///
/// Aliases  read-only: foreign read-only, so that the first write copies; a copy if it is an alias
///          that to_dlpack() made of data that others may write; else foreign writable
/// Errors   NotSupported: another major version, device, or element type than ours; memory of
///          OpenCL that is not of this library. DeviceError: the device is not here
///          ShapeError, ValueError: a rank, extent, stride or address that no tensor can have
Tensor from_dlpack(dlpack::ManagedTensorVersioned* managed);
Tensor from_dlpack(dlpack::ManagedTensor* managed);

}  // namespace palimpsest
