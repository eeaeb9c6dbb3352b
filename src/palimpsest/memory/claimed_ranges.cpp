// SPDX-License-Identifier: Apache-2.0
// Claimed ranges by the files they lie in (none: addresses), the logarithms of their sizes, and
// their starts. Ranges of one size that may meet a range start in an interval of at most twice that
// size in front of its end, so a search looks at few others, however ranges lie in one another.
#include "palimpsest/memory/claimed_ranges.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <mutex>
#include <new>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/base/immortal.hpp"
#include "palimpsest/memory/file_mappings.hpp"

namespace palimpsest {
namespace {

constexpr std::size_t kSizes = 64;

struct Range {
  std::uint64_t device = 0, inode = 0;  // 0: low and high are addresses
  std::uint64_t low = 0, high = 0;
  std::uint64_t storage = 0;  // id
  bool is_written_in_place = false;

  std::size_t size() const { return static_cast<std::size_t>(std::bit_width(high - low)) - 1; }
  bool meets(const Range& other) const {
    return low < other.high && other.low < high &&
           (is_written_in_place || other.is_written_in_place);
  }
};

struct InOrder {
  static auto key(const Range& r) {
    return std::tuple(r.device, r.inode, r.size(), r.low, r.storage);
  }
  bool operator()(const Range& a, const Range& b) const { return key(a) < key(b); }
};

struct Claims {
  Mutex mutex;
  // All guarded by mutex.
  std::set<Range, InOrder> ranges;
  std::unordered_map<std::uint64_t, Range> by_storage;
  std::array<std::size_t, kSizes> of_size{};
  std::vector<const Storage*> exported;
  bool is_incomplete = false;  // a range could not be noted for lack of memory
};

Claims& claims() {
  return immortal([] { return Claims(); });
}

// The number of ranges, readable without the lock.
constinit std::atomic<std::size_t> n_ranges{0};

bool may_be_shown_by_others(const Storage& storage) {
  if (storage.nbytes() == 0) return false;
  const StorageState state = storage.state();
  return state != StorageState::owned && state != StorageState::shared;
}

Range range_of(const Storage& storage) {
  Range range;
  range.storage = storage.id();
  range.is_written_in_place = storage.state() != StorageState::foreign_read_only;
  range.low = reinterpret_cast<std::uintptr_t>(storage.data());
  if (const auto place = mapped_place(storage.data(), storage.nbytes())) {
    range.device = place->device;
    range.inode = place->inode;
    range.low = static_cast<std::uint64_t>(place->offset);
  }
  range.high = range.low + storage.nbytes();
  return range;
}

// The caller has the lock.
bool meets_any(const Claims& all, const Range& range, std::uint64_t ignored) {
  if (all.is_incomplete) return true;
  for (std::size_t size = 0; size < kSizes; ++size) {
    if (all.of_size[size] == 0) continue;
    const std::uint64_t longest = size + 1 < kSizes ? std::uint64_t{1} << (size + 1) : range.low;
    Range first{range.device, range.inode};
    first.low = range.low - std::min(longest, range.low);
    first.high = first.low + (std::uint64_t{1} << size);
    for (auto it = all.ranges.lower_bound(first); it != all.ranges.end(); ++it) {
      const bool is_of_kind =
          it->device == range.device && it->inode == range.inode && it->size() == size;
      if (!is_of_kind || it->low >= range.high) break;
      const bool is_other = it->storage != range.storage && it->storage != ignored;
      if (is_other && it->meets(range)) return true;
    }
  }
  return false;
}

// True if the bytes are those of a claimed storage of the library that others may write.
bool meets_exported(const Claims& all, const Storage& storage, const Range& range,
                    std::uint64_t ignored) {
  return std::any_of(all.exported.begin(), all.exported.end(), [&](const Storage* exported) {
    const std::uint64_t id = exported->id();
    if (id == storage.id() || id == ignored || !exported->is_claimed()) return false;
    return range_of(*exported).meets(range);
  });
}

bool meets_claimed(const Claims& all, const Storage& storage, const Range& range,
                   const Storage& ignored) {
  const std::uint64_t id = ignored.defined() ? ignored.id() : 0;
  return meets_any(all, range, id) || meets_exported(all, storage, range, id);
}

void note(Claims& all, const Range& range) {
  if (!all.by_storage.emplace(range.storage, range).second) return;
  try {
    all.ranges.insert(range);
  } catch (...) {
    all.by_storage.erase(range.storage);
    throw;
  }
  ++all.of_size[range.size()];
  n_ranges.store(all.by_storage.size());
}

}  // namespace

bool claim_range(const Storage& storage, const Storage& ignored) {
  if (!may_be_shown_by_others(storage)) return true;
  const Range range = range_of(storage);
  Claims& all = claims();
  const std::lock_guard guard(all.mutex);
  if (meets_claimed(all, storage, range, ignored)) return false;
  note(all, range);
  return true;
}

void hold_range(const Storage& storage) noexcept {
  if (!may_be_shown_by_others(storage)) return;
  const Range range = range_of(storage);
  Claims& all = claims();
  const std::lock_guard guard(all.mutex);
  try {
    note(all, range);
  } catch (const std::bad_alloc&) {
    all.is_incomplete = true;
  }
}

void release_range(const Storage& storage) noexcept {
  if (n_ranges.load() == 0) return;
  Claims& all = claims();
  const std::lock_guard guard(all.mutex);
  const auto found = all.by_storage.find(storage.id());
  if (found == all.by_storage.end()) return;
  --all.of_size[found->second.size()];
  all.ranges.erase(found->second);
  all.by_storage.erase(found);
  n_ranges.store(all.by_storage.size());
}

bool meets_claimed_range(const Storage& storage) {
  if (!may_be_shown_by_others(storage)) return false;
  const Range range = range_of(storage);
  Claims& all = claims();
  const std::lock_guard guard(all.mutex);
  return meets_claimed(all, storage, range, {});
}

WritableExport::WritableExport(const Storage& storage) : storage_(storage) {
  const std::lock_guard guard(claims().mutex);
  claims().exported.push_back(&storage_);
}

WritableExport::~WritableExport() {
  const std::lock_guard guard(claims().mutex);
  std::erase(claims().exported, &storage_);
}

}  // namespace palimpsest
