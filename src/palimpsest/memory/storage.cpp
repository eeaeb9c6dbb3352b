// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/storage.hpp"

#include <algorithm>

#include "palimpsest/base/error.hpp"
#include "palimpsest/base/fork.hpp"
#include "palimpsest/copy/transpose.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/memory/cow_protocol.hpp"
#include "palimpsest/memory/device_copy.hpp"
#include "palimpsest/memory/element_copy.hpp"
#include "palimpsest/memory/parking.hpp"
#include "palimpsest/memory/thread_local_state.hpp"

namespace palimpsest {
namespace {

// Bytes copied between two checks whether the copy is still needed. Pieces of large copies are so
// large that memcpy writes around the caches, which is faster for them.
std::size_t chunk_bytes(std::size_t bytes) {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  return bytes < 32 * kMiB ? kMiB : std::max(16 * kMiB, bytes / 8);
}

// Bytes from the last address where any element may lie to this address. A copy keeps this
// distance, so that a bitcast cannot tell whether data have been copied.
std::uint8_t misplacement(const std::byte* data) {
  constexpr std::uintptr_t kLargestAlignment = 8;
  return static_cast<std::uint8_t>(reinterpret_cast<std::uintptr_t>(data) % kLargestAlignment);
}

// The actions of cow::materialize for one Storage, for any way of copying the bytes.
class CopyOut {
 public:
  CopyOut(const std::byte* source, std::size_t bytes, BlockHeader& old)
      : bytes_(bytes), lead_(misplacement(source)), old_(old) {}

  void allocate() { copy_ = Allocator::of(old_.device).allocate(bytes_, {}, lead_); }
  void discard() noexcept { copy_ = Block(); }
  void free_old() noexcept { old_.free(&old_); }
  void wait(const std::atomic<std::uint64_t>& word, std::uint64_t seen) { park(word, seen); }
  void wake(const void* word) noexcept { unpark(word); }

  std::size_t bytes() const { return bytes_; }
  Block take() { return std::move(copy_); }

 protected:
  std::byte* target() { return copy_.data(); }
  Device device() const { return old_.device; }

 private:
  std::size_t bytes_;
  std::uint8_t lead_;
  BlockHeader& old_;
  Block copy_;
};

// The whole extent.
class CopyBytes : public CopyOut {
 public:
  CopyBytes(const std::byte* source, std::size_t bytes, BlockHeader& old)
      : CopyOut(source, bytes, old), source_(source), at_once_(chunk_bytes(bytes)) {}

  // On an accelerator one copy is enqueued before the reference to the old data is given up, so it
  // runs before any command that may overwrite them.
  bool copy_chunk() {
    if (done_ == bytes()) return false;
    if (!device().is_host()) {
      copy_bytes_on(device(), source_, device(), target(), bytes());
      done_ = bytes();
      return true;
    }
    const std::size_t n = std::min(at_once_, bytes() - done_);
    const Extents extents{static_cast<index_t>(n)};
    const Strides dense{1};
    strided_copy_piece({source_ + done_, DType::uint8, extents, dense},
                       {target() + done_, DType::uint8, extents, dense},
                       static_cast<index_t>(bytes()));
    done_ += n;
    return true;
  }

 private:
  const std::byte* source_;
  std::size_t at_once_;
  std::size_t done_ = 0;
};

// The elements of one view, some rows at a time.
class CopyElements : public CopyOut {
 public:
  CopyElements(const std::byte* source, const ByteLayout& view, BlockHeader& old)
      : CopyOut(source + view.offset, static_cast<std::size_t>(dense_bytes(view)), old),
        source_(source + view.offset),
        view_(with_rows(view)),
        dense_(dense_layout(view_)),
        rows_(view_.shape[0]) {
    const std::size_t row_bytes = bytes() / static_cast<std::size_t>(std::max<index_t>(rows_, 1));
    const std::size_t rows_of_a_piece = chunk_bytes(bytes()) / std::max<std::size_t>(row_bytes, 1);
    at_once_ = std::max<index_t>(static_cast<index_t>(rows_of_a_piece), 1);
  }

  bool copy_chunk() {
    if (done_ == rows_) return false;
    view_.shape[0] = std::min(at_once_, rows_ - done_);
    copy_elements(view_, dense_, device(), source_ + done_ * view_.strides[0], device(),
                  target() + done_ * dense_.strides[0]);
    done_ += view_.shape[0];
    return true;
  }

 private:
  // A single element is a row of its own.
  static ByteLayout with_rows(ByteLayout view) {
    if (!view.shape.empty()) return view;
    view.shape.push_back(1);
    view.strides.push_back(0);
    return view;
  }

  const std::byte* source_;
  ByteLayout view_, dense_;
  const index_t rows_;
  index_t at_once_, done_ = 0;
};

}  // namespace

inline void* Storage::Impl::operator new(std::size_t bytes) {
  static_assert(sizeof(Impl) <= kPooledBytes);
  static_cast<void>(bytes);
  return take_pooled();
}

inline void Storage::Impl::operator delete(void* memory) noexcept { give_back_pooled(memory); }

CopyCounts CopyStats::process() { return all_counts(); }

void CopyStats::add_import_copy() { count(Counter::import_copies); }

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
  now.import_copies -= start_.import_copies;
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

void Storage::throw_undefined() { throw ValueError("[Storage] undefined: got an empty handle"); }

Storage Storage::over(Block block) {
  std::byte* const data = block.data();
  const std::size_t bytes = block.bytes();
  const BlockKind kind = block.kind();
  return Storage(new Impl{.kind = kind, .data = data, .bytes = bytes, .block = std::move(block)});
}

Storage Storage::allocate(std::size_t bytes, Device device, std::string_view name) {
  return over(Allocator::of(device).allocate(bytes, name));
}

Storage Storage::from_foreign(void* data, std::size_t bytes, Device device, bool writable,
                              std::function<void()> deleter) {
  // The handle comes first: once the block exists nothing may fail, or the deleter would run.
  const BlockKind kind = writable ? BlockKind::foreign_writable : BlockKind::foreign_read_only;
  Storage storage(
      new Impl{.kind = kind, .data = static_cast<std::byte*>(data), .bytes = bytes, .block = {}});
  storage.impl_->block = Block::foreign(data, bytes, device, writable, std::move(deleter));
  return storage;
}

void Storage::drop() noexcept {
  Impl* const impl = std::exchange(impl_, nullptr);
  if (cow::drop_use(impl->uses)) delete impl;
}

std::size_t Storage::use_count() const {
  return impl_ == nullptr ? 0 : impl_->uses.load(std::memory_order_relaxed);
}

bool Storage::shares_data(const Storage& other) const {
  return impl().block.header() == other.impl().block.header();
}

StorageState Storage::state() const {
  const Impl& me = impl();
  if (me.kind == BlockKind::foreign_read_only) return StorageState::foreign_read_only;
  if (me.kind == BlockKind::foreign_writable) return StorageState::foreign_writable;
  if (cow::is_pinned(me.pins)) return StorageState::pinned;
  return me.block.references() > 1 ? StorageState::shared : StorageState::owned;
}

// True if the data are new ones.
template <class Copy>
bool Storage::run_materialize(Copy& copy, bool overwrite) {
  Impl& me = *impl_;
  std::atomic<std::uint64_t>& word = me.block.header()->word;
  const ForkSection whole;  // a child must not wait for a copy whose thread does not exist there
  const cow::Outcome outcome = overwrite ? cow::replace(word, copy) : cow::materialize(word, copy);
  if (outcome == cow::Outcome::taken_over) {
    count(Counter::take_overs);
    return false;
  }
  me.block.release();  // its reference went with the copy
  me.block = copy.take();
  me.kind = BlockKind::owned;
  me.data = me.block.data();
  me.bytes = copy.bytes();
  if (overwrite) {
    count(Counter::overwrites);
  } else {
    count(Counter::copies);
    count(Counter::copied_bytes, me.bytes);
  }
  return true;
}

void Storage::materialize() {
  CopyBytes copy(impl_->data, impl_->bytes, *impl_->block.header());
  run_materialize(copy, false);
}

void Storage::replace() {
  CopyBytes copy(impl_->data, impl_->bytes, *impl_->block.header());
  run_materialize(copy, true);
}

bool Storage::materialize_densely(const ByteLayout& view, bool overwrite) {
  Impl& me = impl();
  const Extent extent = memory_extent(view);
  if (extent.lo < 0 || extent.hi > static_cast<std::int64_t>(me.bytes)) {
    throw AliasError("[Storage.materialize_densely] view reaches outside its storage: got bytes " +
                     std::to_string(extent.lo) + " .. " + std::to_string(extent.hi) +
                     ", expected 0 .. " + std::to_string(me.bytes));
  }
  if (me.block.is_sole()) return false;
  CopyElements copy(me.data, view, *me.block.header());
  return run_materialize(copy, overwrite);
}

Storage Storage::lazy_clone() const { return lazy_clone(0, nbytes()); }

Storage Storage::lazy_clone(std::size_t byte_offset, std::size_t bytes) const {
  const Impl& me = impl();
  if (byte_offset > me.bytes || bytes > me.bytes - byte_offset) [[unlikely]]
    throw_outside(byte_offset, bytes);
  if (is_cloned_eagerly()) [[unlikely]]
    return eager_clone(byte_offset, bytes);
  // All else comes before the block's word is changed: where threads contend for it, the time until
  // the drop changes it back is paid for twice.
  count_lazy_clone(1, bytes);
  try {
    return Storage(new Impl{
        .kind = me.kind, .data = me.data + byte_offset, .bytes = bytes, .block = me.block.share()});
  } catch (...) {
    count_lazy_clone(-std::uint64_t{1}, -std::uint64_t{bytes});
    throw;
  }
}

void Storage::throw_outside(std::size_t byte_offset, std::size_t bytes) const {
  throw ValueError("[Storage.lazy_clone] range outside the storage: got bytes " +
                   std::to_string(byte_offset) + " .. " + std::to_string(byte_offset) + " + " +
                   std::to_string(bytes) + ", expected at most " + std::to_string(impl_->bytes));
}

Storage Storage::eager_clone(std::size_t byte_offset, std::size_t bytes) const {
  const std::byte* const source = impl_->data + byte_offset;
  Storage copy = over(Allocator::of(device()).allocate(bytes, {}, misplacement(source)));
  copy_bytes_on(device(), source, device(), copy.impl_->data, bytes);
  count(Counter::eager_copies);
  count(Counter::eager_copied_bytes, bytes);
  return copy;
}

Storage::Pin Storage::pin() {
  mutable_data();
  cow::raise_pin(impl_->pins);
  return Pin(*this);
}

std::optional<Storage::Pin> Storage::join_pin() const {
  if (!cow::join_pin(impl().pins)) return std::nullopt;
  return Pin(*this);
}

Storage::Pin& Storage::Pin::operator=(Pin&& other) noexcept {
  Pin taken(std::move(other));
  storage_.swap(taken.storage_);
  return *this;
}

Storage::Pin::~Pin() {
  if (storage_.defined()) cow::lower_pin(storage_.impl_->pins);
}

}  // namespace palimpsest
