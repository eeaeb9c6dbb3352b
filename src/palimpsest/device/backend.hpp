// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "palimpsest/base/shape.hpp"

// The interface between the library and one kind of accelerator.
namespace palimpsest {

/// A place in the queue of a device. Later ones are larger.
using Mark = std::uint64_t;

/// Fixed properties of a device.
struct DeviceFacts {
  std::string name;                      ///< as the driver tells it
  std::string driver;                    ///< name and version
  std::string isa;                       ///< target of compilations: "opencl-c 1.2" or "sm_90"
  std::string options;                   ///< of compilations
  std::uint64_t memory_bytes = 0;        ///< in all
  std::uint64_t largest_allocation = 0;  ///< of one call of obtain()
  std::uint64_t cache_bytes = 0;         ///< of the last cache level
  std::uint64_t local_bytes = 0;         ///< memory that one group of items shares
  int groups = 1;                        ///< that run at the same time
  bool has_float64 = false;
  /// Drivers of processors compile a kernel once more at its first launch, for its number of items,
  /// and keep the results in files of their own.
  bool compiles_late = false;
};

/// The source of kernels, in the language of device/text/, without prelude.
struct KernelText {
  std::string name;  ///< for messages and for the file of PALIMPSEST_KERNELS
  std::string text;
  std::vector<std::string> kernels;  ///< names of the entry points
};

/// Compiled kernels. Refers to its backend, which must live longer.
class LoadedKernels {
 public:
  virtual ~LoadedKernels() = default;
  /// The bytes that DeviceBackend::load() takes instead of compiling.
  virtual std::vector<std::byte> binary() const = 0;
};
using KernelProgram = std::shared_ptr<const LoadedKernels>;

/// Argument of a kernel, of 8 bytes.
struct KernelArgument {
  enum class Kind : std::uint8_t { address, integer, real };
  Kind kind = Kind::integer;
  union {
    std::byte* address;  ///< anywhere within an allocation; passed as its start and a byte offset
    std::int64_t integer = 0;
    double real;
  };

  static KernelArgument of(const void* p) {
    KernelArgument a;
    a.kind = Kind::address;
    a.address = static_cast<std::byte*>(const_cast<void*>(p));
    return a;
  }
  static KernelArgument of(std::int64_t i) {
    KernelArgument a;
    a.integer = i;
    return a;
  }
  static KernelArgument of(double x) {
    KernelArgument a;
    a.kind = Kind::real;
    a.real = x;
    return a;
  }
};

/// Run of a kernel: groups[0] x groups[1] x groups[2] groups of `items` items. An address
/// argument takes two parameters of the kernel, the start of its allocation and the offset.
struct Launch {
  const LoadedKernels* program = nullptr;
  std::size_t kernel = 0;  ///< position in KernelText::kernels
  std::array<index_t, 3> groups{1, 1, 1};
  int items = 1;
  std::span<const KernelArgument> arguments = {};
  /// The step that it is part of, for errors, as `step 12 (Fft) of A/Chain[1]`; may be null.
  std::shared_ptr<const std::string> step = nullptr;
};

/// A launch of a recording: it runs when those at the positions `after`, all before its own, have.
struct RecordedLaunch {
  Launch launch;
  std::vector<KernelArgument> arguments;  ///< in place of launch.arguments
  std::vector<std::size_t> after;
};

/// Launches of a backend, which must live longer, with their arguments.
class Recording {
 public:
  virtual ~Recording() = default;
  /// Enqueues all launches as one command.
  virtual void enqueue() = 0;
};

/// All that a kind of accelerator must offer: memory, one in-order queue of work to which all
/// threads enqueue, and compiled kernels. A call that enqueues returns at once, unless more than
/// 1,024 commands are in flight.
///
/// Threads  every member may be called concurrently
/// Errors   DeviceError "lost after", with the step of the launch: an earlier command failed; every
///          later call says so.
///          DeviceError "forked": in a child of fork(), where obtain() gives null and what is given
///          back stays. InternalError: wrong addresses, numbers of parameters or items
class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;

  virtual const DeviceFacts& facts() const = 0;

  /// Memory of the device, aligned to 64; null if there is none. Addresses of different allocations
  /// never overlap one another or memory of the host. The host must not read or write there.
  virtual std::byte* obtain(std::size_t bytes) noexcept = 0;
  /// Frees what obtain() returned, once all that is enqueued has run. Never waits.
  virtual void give_back(std::byte* first, std::size_t bytes) noexcept = 0;
  /// Memory of the host that copies may read and write at any time; null if there is none. Its
  /// owner gives it back, or writes it again, when the copies that use it have run.
  virtual std::byte* obtain_staging(std::size_t bytes) noexcept = 0;
  virtual void give_back_staging(std::byte* first, std::size_t bytes) noexcept = 0;

  /// Compiles the text, or takes the kernels of `binary` where it is not empty.
  ///
  /// Errors   DeviceError "does not compile on", with the compiler's first error; a binary of
  ///          another driver or device
  virtual KernelProgram load(const KernelText& text, std::span<const std::byte> binary) = 0;
  /// Enqueues a run of a kernel. The first one of each waits for it where drivers compile then.
  virtual void launch(const Launch& launch) = 0;
  /// Prepares launches to be enqueued again and again; null if the driver cannot, or not now.
  virtual std::unique_ptr<Recording> record(std::span<const RecordedLaunch>) { return nullptr; }
  /// Between memory of the device and staging memory, or within the device. Ranges of one copy do
  /// not overlap.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual void fill(void* to, std::uint8_t byte, std::size_t bytes) = 0;

  /// The place behind all that has been enqueued.
  virtual Mark mark() = 0;
  virtual bool passed(Mark mark) = 0;
  /// Returns when the queue has passed the mark. Calls the interrupt check while it waits.
  virtual void wait_on_host(Mark mark) = 0;

  /// True for an address within memory of obtain(), or of another owner.
  virtual bool owns(const void* address) const noexcept = 0;

  // -- exchange with other libraries of the process -----------------------------------------------
  /// Lets commands use memory of another owner. The function returned gives it up: `deleter` runs
  /// some time after the commands enqueued so far, which nobody waits for. Memory of obtain() needs
  /// no more than its deleter.
  ///
  /// Errors   NotSupported: the driver cannot use memory of other libraries
  virtual std::function<void()> adopt(std::byte* first, std::size_t bytes,
                                      std::function<void()> deleter);
  /// The queue as a stream of the driver; null if others cannot use it.
  virtual void* stream() const { return nullptr; }
  /// Later commands run behind those that a stream of the driver has now.
  virtual void wait_for_stream(void*) {}
  /// Later work of a stream of the driver runs behind the commands enqueued so far.
  virtual void let_stream_wait(void*) {}
};

}  // namespace palimpsest
