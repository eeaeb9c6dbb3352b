// SPDX-License-Identifier: Apache-2.0
// Internal: claims on memory that more than one Storage may show.
//
// Storage::claim() keeps two holders from one Storage. Foreign memory, and memory whose address was
// handed out, may be shown by any number of Storages: holders of such memory claim its bytes, too.
#pragma once

#include "palimpsest/memory/storage.hpp"

namespace palimpsest {

/// Claims the bytes of a storage, if others may show them. False, and no claim, if they meet bytes
/// that another storage has claimed and one of the two is written in place. `ignored` (may be
/// undefined) is the storage whose claim is about to be released by the same holder.
///
/// Bytes of files and segments are told by their inodes, others by their addresses.
/// Cost     one look at the state for memory that no other can show; else O(log n)
/// Threads  may be called concurrently
bool claim_range(const Storage& storage, const Storage& ignored);
/// The same without a question: for memory that the holder already has.
void hold_range(const Storage& storage) noexcept;
/// Nothing for storages without a claim.
void release_range(const Storage& storage) noexcept;
/// Claims the bytes of a holder's storage where they are now: its first write may have moved them.
inline void renew_range(const Storage& storage) noexcept {
  release_range(storage);
  hold_range(storage);
}
/// True if claim_range() would fail.
bool meets_claimed_range(const Storage& storage);

/// While it lives, receivers of the address may write the bytes of a storage of the library, which
/// lives longer.
class WritableExport {
 public:
  explicit WritableExport(const Storage& storage);
  ~WritableExport();
  WritableExport(const WritableExport&) = delete;
  WritableExport& operator=(const WritableExport&) = delete;

 private:
  const Storage& storage_;
};

}  // namespace palimpsest
