// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "palimpsest/base/api.hpp"
#include "palimpsest/device/device.hpp"
#include "palimpsest/memory/block.hpp"
#include "palimpsest/memory/copy_stats.hpp"
#include "palimpsest/memory/cow_protocol.hpp"

namespace PALIMPSEST_API palimpsest {

struct ByteLayout;

enum class StorageState : std::uint8_t {
  owned,              ///< the only reference to its data
  shared,             ///< shares its data with lazy clones; a write gets data of its own first
  foreign_read_only,  ///< shows memory that must not be written; a write copies it first
  foreign_writable,   ///< shows memory that others may write; never cloned lazily
  pinned,             ///< owned, with a promised address; never cloned lazily
};
std::string_view name_of(StorageState state);

/// Untyped bytes on one device, shared by tensors. Two tensors alias iff they share a Storage.
///
/// Aliases  copying a Storage makes another handle on the same one. lazy_clone() makes a new
///          Storage, which shares data until either of the two is written.
/// Threads  const members may be called concurrently, also while other Storages that share the data
///          are written, cloned or dropped. A write needs that no other thread uses this Storage.
/// Cost     copying a handle allocates nothing
class Storage {
 public:
  /// No storage: everything but defined(), is() and use_count() throws ValueError.
  Storage() = default;
  Storage(const Storage& other) noexcept : impl_(other.impl_) {
    if (impl_ != nullptr) cow::add_use(impl_->uses);
  }
  Storage(Storage&& other) noexcept : impl_(std::exchange(other.impl_, nullptr)) {}
  Storage& operator=(const Storage& other) noexcept {
    Storage(other).swap(*this);
    return *this;
  }
  Storage& operator=(Storage&& other) noexcept {
    Storage(std::move(other)).swap(*this);
    return *this;
  }
  ~Storage() {
    if (impl_ != nullptr) drop();
  }
  void swap(Storage& other) noexcept { std::swap(impl_, other.impl_); }

  /// Uninitialized bytes of our own. OutOfMemory.
  static Storage allocate(std::size_t bytes, Device device = {}, std::string_view name = {});
  /// Memory of another owner, used in place. The deleter (may be empty, must not throw) runs with
  /// the last reference to the memory. If that is dropped by deleters within deleters, it runs soon
  /// after. If this throws it does not run.
  static Storage from_foreign(void* data, std::size_t bytes, Device device, bool writable,
                              std::function<void()> deleter = {});
  /// A part of a file, mapped read-only; writes go to a copy in memory, never to the file.
  ///
  /// Errors   IoError: the file cannot be opened or mapped, or is shorter than offset + bytes
  static Storage from_file(const std::string& path, std::size_t offset, std::size_t bytes);
  /// Zeroed memory that several processes can use at once: foreign writable. It has no name and is
  /// gone with its last user. IoError.
  static Storage shared_memory(std::size_t bytes);
  /// Maps the memory of another process, or that of this one once more. The descriptor comes from
  /// shared_descriptor(), by fork or over a Unix socket; the caller keeps it.
  ///
  /// Errors   IoError: not a descriptor of shared memory
  static Storage attach_shared_memory(int descriptor);
  /// Names shared memory within this process while this Storage lives; else ValueError.
  int shared_descriptor() const;

  bool defined() const { return impl_ != nullptr; }
  /// True for the same Storage, not merely the same data.
  bool is(const Storage& other) const { return impl_ == other.impl_; }
  /// True if both refer to one block: the same Storage, or lazy clones of one another.
  bool shares_data(const Storage& other) const;
  /// Tells Storages apart while they live.
  std::uint64_t id() const { return reinterpret_cast<std::uintptr_t>(&impl()); }
  /// A number of the block: equal if and only if shares_data().
  std::uint64_t data_id() const { return reinterpret_cast<std::uintptr_t>(impl().block.header()); }
  /// Number of handles on this Storage.
  std::size_t use_count() const;
  /// Claims this Storage for a holder, such as a container or the frame of a function, so that two
  /// of them do not hold one Storage that a user lends to both. Each claim is given up once.
  void claim() { impl().claims.fetch_add(1, std::memory_order_acq_rel); }
  void give_up_claim() { impl().claims.fetch_sub(1, std::memory_order_acq_rel); }
  /// False, and no claim, if there is one.
  bool claim_if_free() {
    std::uint8_t none = 0;
    return impl().claims.compare_exchange_strong(none, 1, std::memory_order_acq_rel);
  }
  bool is_claimed() const { return impl().claims.load(std::memory_order_acquire) > 0; }
  /// Number of Storages that share the data, this one included.
  std::size_t references() const { return impl().block.references(); }
  /// True if the data are shared with a lazy clone at present.
  bool is_shared() const { return references() > 1; }
  StorageState state() const;
  /// True if others may write the data: clones are copies.
  bool is_cloned_eagerly() const {
    return impl().kind == BlockKind::foreign_writable || cow::is_pinned(impl().pins);
  }
  /// Notes for good that others may write these read-only foreign data, for example through
  /// another array.
  void expect_writes_of_others() { cow::raise_pin(impl().pins); }
  /// Address of the bytes if they may be written where they are, as mutable_data() returns it; else
  /// null.
  std::byte* writable_data() {
    return impl_ != nullptr && impl_->block.is_sole() ? impl_->data : nullptr;
  }
  std::size_t nbytes() const { return impl().bytes; }
  Device device() const { return impl().block.device(); }

  /// Valid until this Storage is written or gone, independent of its lazy clones.
  const std::byte* data() const { return impl().data; }
  /// The data for writing. First makes shared or read-only data its own.
  ///
  /// Errors   OutOfMemory; the state is then unchanged
  /// Cost     one load and one branch when owned; at most one copy, none for the last of several
  std::byte* mutable_data() {
    Impl& impl = this->impl();
    if (!impl.block.is_sole()) [[unlikely]]
      materialize();
    return impl.data;
  }
  /// For a writer that is going to set every byte: as mutable_data, but copies nothing; the old
  /// bytes may be lost.
  std::byte* overwrite_data() {
    Impl& impl = this->impl();
    if (!impl.block.is_sole()) [[unlikely]]
      replace();
    return impl.data;
  }

  /// For the only view of this Storage, if it is sparse: where mutable_data() would copy (and, with
  /// `overwrite`, overwrite_data() would not), gets room for the elements of the view alone, which
  /// then lie there densely in row-major order. False if nothing had to be copied: then nothing
  /// has changed but that this Storage is written in place.
  ///
  /// Errors   OutOfMemory, and then nothing has changed; AliasError: a view outside this Storage
  bool materialize_densely(const ByteLayout& view, bool overwrite);

  /// A new Storage with the same bytes (or a range of them), that shares the data until one of the
  /// two is written. Foreign writable and pinned data are copied at once.
  ///
  /// Errors   ValueError: the range is not inside this Storage
  /// Cost     O(1), independent of the size
  Storage lazy_clone() const;
  Storage lazy_clone(std::size_t byte_offset, std::size_t bytes) const;

  /// Keeps the address of the data for as long as the pin lives, for writers that cannot know about
  /// copy-on-write. Materializes first: a write, also as far as other threads are concerned. Clones
  /// that are made before it is over are complete and independent, those made while a pin lives are
  /// copies.
  class Pin;
  Pin pin();
  /// Another pin if there is one already, else empty: a read, which never moves the data.
  std::optional<Pin> join_pin() const;

 private:
  struct Impl {
    static void* operator new(std::size_t bytes);
    static void operator delete(void* memory) noexcept;

    std::atomic<std::size_t> uses{1};
    mutable std::atomic<std::uint32_t> pins{0};  // readers may join one
    // The block's, kept here so that a lazy clone touches the block's word and nothing else there.
    BlockKind kind = BlockKind::owned;
    std::atomic<std::uint8_t> claims{0};
    std::byte* data;    // start of the extent inside the block
    std::size_t bytes;  // of the extent
    Block block;
  };

  explicit Storage(Impl* impl) : impl_(impl) {}
  static Storage over(Block block);
  const Impl& impl() const {
    if (impl_ == nullptr) [[unlikely]]
      throw_undefined();
    return *impl_;
  }
  Impl& impl() {
    if (impl_ == nullptr) [[unlikely]]
      throw_undefined();
    return *impl_;
  }
  [[noreturn]] static void throw_undefined();
  void drop() noexcept;
  void materialize();
  void replace();
  [[noreturn]] void throw_outside(std::size_t byte_offset, std::size_t bytes) const;
  Storage eager_clone(std::size_t byte_offset, std::size_t bytes) const;
  template <class Copy>
  bool run_materialize(Copy& copy, bool overwrite);

  Impl* impl_ = nullptr;
};

/// See Storage::pin(). Move-only; keeps the Storage alive.
class Storage::Pin {
 public:
  Pin(Pin&& other) noexcept : storage_(std::move(other.storage_)) {}
  Pin& operator=(Pin&& other) noexcept;
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;
  ~Pin();

  /// The address as it was when the pin was made.
  std::byte* data() const { return storage_.impl_->data; }

 private:
  friend class Storage;
  explicit Pin(Storage storage) : storage_(std::move(storage)) {}

  Storage storage_;
};

}  // namespace palimpsest
