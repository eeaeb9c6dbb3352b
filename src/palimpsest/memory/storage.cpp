// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/storage.hpp"

#include <algorithm>
#include <cstring>

#include "palimpsest/base/error.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/memory/cow_protocol.hpp"
#include "palimpsest/memory/parking.hpp"
#include "palimpsest/memory/thread_local_state.hpp"

namespace palimpsest {
namespace {

// Between two pieces a copy looks whether it has become needless.
constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

// What cow::materialize does for one Storage: copies its extent out of a shared block.
class CopyOut {
 public:
  CopyOut(const std::byte* source, std::size_t bytes, BlockHeader& old)
      : source_(source), bytes_(bytes), old_(old) {}

  void allocate() { copy_ = Allocator::of(old_.device).allocate(bytes_); }
  bool copy_chunk() {
    if (done_ == bytes_) return false;
    const std::size_t n = std::min(kChunkBytes, bytes_ - done_);
    std::memcpy(copy_.data() + done_, source_ + done_, n);
    done_ += n;
    return true;
  }
  void discard() noexcept { copy_ = Block(); }
  void free_old() noexcept { old_.free(&old_); }
  void wait(const std::atomic<std::uint64_t>& word, std::uint64_t seen) { park(word, seen); }
  void wake(const void* word) noexcept { unpark(word); }

  Block take() { return std::move(copy_); }

 private:
  const std::byte* source_;
  std::size_t bytes_;
  std::size_t done_ = 0;
  BlockHeader& old_;
  Block copy_;
};

}  // namespace

CopyCounts CopyStats::process() { return all_counts(); }

CopyCounts CopyStats::counts() const {
  CopyCounts now = process();
  now.lazy_clones -= start_.lazy_clones;
  now.lazy_bytes -= start_.lazy_bytes;
  now.copies -= start_.copies;
  now.copied_bytes -= start_.copied_bytes;
  now.take_overs -= start_.take_overs;
  now.overwrites -= start_.overwrites;
  now.eager_copies -= start_.eager_copies;
  now.eager_copied_bytes -= start_.eager_copied_bytes;
  return now;
}

std::string_view name_of(StorageState state) {
  switch (state) {
    case StorageState::owned:
      return "owned";
    case StorageState::shared:
      return "shared";
    case StorageState::foreign_read_only:
      return "foreign read-only";
    case StorageState::foreign_writable:
      return "foreign writable";
    case StorageState::pinned:
      return "pinned";
  }
  throw InternalError("[StorageState] not a state");
}

void Storage::throw_undefined() {
  throw ValueError("[Storage] there is none: got an empty handle");
}

Storage Storage::over(Block block) {
  std::byte* const data = block.data();
  const std::size_t bytes = block.bytes();
  return Storage(new Impl{.data = data, .bytes = bytes, .block = std::move(block)});
}

Storage Storage::allocate(std::size_t bytes, Device device, std::string_view name) {
  return over(Allocator::of(device).allocate(bytes, name));
}

Storage Storage::from_foreign(void* data, std::size_t bytes, Device device, bool writable,
                              std::function<void()> deleter) {
  // The handle comes first: once the block exists nothing may fail, or the deleter would run.
  Storage storage(new Impl{.data = static_cast<std::byte*>(data), .bytes = bytes, .block = {}});
  storage.impl_->block = Block::foreign(data, bytes, device, writable, std::move(deleter));
  return storage;
}

void* Storage::Impl::operator new(std::size_t bytes) {
  static_assert(sizeof(Impl) <= kPooledBytes);
  static_cast<void>(bytes);
  return take_pooled();
}

void Storage::Impl::operator delete(void* memory) noexcept { give_back_pooled(memory); }

void Storage::drop() noexcept {
  Impl* const impl = std::exchange(impl_, nullptr);
  // The only handle: nobody can make another one meanwhile.
  if (impl->uses.load(std::memory_order_acquire) == 1 ||
      impl->uses.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    delete impl;
  }
}

std::size_t Storage::use_count() const {
  return impl_ == nullptr ? 0 : impl_->uses.load(std::memory_order_relaxed);
}

bool Storage::shares_data(const Storage& other) const {
  return impl().block.header() == other.impl().block.header();
}

StorageState Storage::state() const {
  const Impl& me = impl();
  switch (me.block.kind()) {
    case BlockKind::foreign_read_only:
      return StorageState::foreign_read_only;
    case BlockKind::foreign_writable:
      return StorageState::foreign_writable;
    case BlockKind::owned:
      break;
  }
  if (me.pins.load(std::memory_order_acquire) > 0) return StorageState::pinned;
  return me.block.references() > 1 ? StorageState::shared : StorageState::owned;
}

void Storage::materialize() {
  Impl& me = *impl_;
  CopyOut copy(me.data, me.bytes, *me.block.header());
  if (cow::materialize(me.block.header()->word, copy) == cow::Outcome::taken_over) {
    count(Counter::take_overs);
    return;
  }
  me.block.release();  // its reference went with the copy
  me.block = copy.take();
  me.data = me.block.data();
  count(Counter::copies);
  count(Counter::copied_bytes, me.bytes);
}

void Storage::replace() {
  Impl& me = *impl_;
  CopyOut fresh(me.data, me.bytes, *me.block.header());
  if (cow::replace(me.block.header()->word, fresh) == cow::Outcome::taken_over) {
    count(Counter::take_overs);
    return;
  }
  me.block.release();
  me.block = fresh.take();
  me.data = me.block.data();
  count(Counter::overwrites);
}

Storage Storage::lazy_clone() const { return lazy_clone(0, nbytes()); }

Storage Storage::lazy_clone(std::size_t byte_offset, std::size_t bytes) const {
  const Impl& me = impl();
  if (byte_offset > me.bytes || bytes > me.bytes - byte_offset) {
    throw ValueError("[Storage.lazy_clone] range outside the storage: got bytes " +
                     std::to_string(byte_offset) + " .. " + std::to_string(byte_offset) + " + " +
                     std::to_string(bytes) + ", expected at most " + std::to_string(me.bytes));
  }
  if (me.block.kind() == BlockKind::foreign_writable ||
      me.pins.load(std::memory_order_acquire) > 0) {
    Storage copy = allocate(bytes, device());
    std::memcpy(copy.impl_->data, me.data + byte_offset, bytes);
    count(Counter::eager_copies);
    count(Counter::eager_copied_bytes, bytes);
    return copy;
  }
  Storage clone(new Impl{.data = me.data + byte_offset, .bytes = bytes, .block = {}});
  clone.impl_->block = me.block.share();
  count(Counter::lazy_clones, 1, Counter::lazy_bytes, bytes);
  return clone;
}

Storage::Pin Storage::pin() {
  mutable_data();
  impl_->pins.fetch_add(1, std::memory_order_acq_rel);
  return Pin(*this);
}

Storage::Pin& Storage::Pin::operator=(Pin&& other) noexcept {
  Pin taken(std::move(other));
  storage_.swap(taken.storage_);
  return *this;
}

Storage::Pin::~Pin() {
  if (storage_.defined()) storage_.impl_->pins.fetch_sub(1, std::memory_order_acq_rel);
}

}  // namespace palimpsest
