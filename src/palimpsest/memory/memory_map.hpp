// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/device/device.hpp"
#include "palimpsest/memory/byte_layout.hpp"
#include "palimpsest/memory/storage.hpp"

namespace PALIMPSEST_API palimpsest {

/// Copies a set of views so that they share memory among them exactly as they did before.
///
/// Register all views with add(), then call one of lazy_copy(), copy() and to() once, then ask
/// map() for counterparts. The views of one storage become views of one new storage with the bytes
/// that they use. If more than half of these bytes lie in gaps, copy() and to() leave the gaps out.
/// Storages that are lazy clones of one another stay so. Offsets keep their value modulo 64.
///
/// Aliases  copies share no writable memory with their sources; to() leaves storages on the device
///          where they are
/// Errors   ValueError: a wrong order of calls, a view that was not registered
///          AliasError: a view outside its storage
///          OutOfMemory: the state is unchanged, and the call may be tried again
class MemoryMap {
 public:
  /// With `compact`, copy() and to() also store a single view densely if it fills less than half of
  /// its extent and shares with no other: its strides change.
  explicit MemoryMap(bool compact = false);
  MemoryMap(MemoryMap&&) noexcept;
  MemoryMap& operator=(MemoryMap&&) noexcept;
  ~MemoryMap();

  void add(const Storage& storage, const ByteLayout& view);
  /// Shares all data until either side is written.
  void lazy_copy();
  /// Copies all data now, each byte once, bytes of no view as zero.
  void copy();
  /// Copies the storages that are not on `device`; the others map to themselves.
  void to(Device device);
  /// Copies and gives up its sources. After all allocations `prepare` runs; map() answers then,
  /// although nothing is copied yet. Then each source is released as soon as its bytes are copied.
  /// An exception of prepare leaves the map unchanged.
  void move_to(Device device, const std::function<void()>& prepare);
  /// True if the copies are made.
  bool is_done() const;
  /// The counterpart of a view that was added.
  std::pair<Storage, ByteLayout> map(const Storage& storage, const ByteLayout& view) const;

  struct Group {
    std::uint64_t storage = 0;  ///< Storage::id()
    Device device;
    std::int64_t used = 0;    ///< bytes in the parts that its views reach
    std::int64_t span = 0;    ///< bytes from the first of them to the last
    std::int64_t buffer = 0;  ///< bytes allocated for it; lazy clones count with the first of them
    int views = 0;
  };
  /// A group per storage, in the order of their first views.
  std::vector<Group> groups() const;
  /// Bytes that copy() would allocate; afterwards, bytes that it did allocate.
  std::int64_t bytes() const;
  /// Object that another layer keeps with the map.
  std::shared_ptr<void>& companion() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace palimpsest
