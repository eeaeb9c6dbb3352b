// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/block.hpp"

#include <memory>

#include "palimpsest/base/error.hpp"
#include "palimpsest/memory/cow_protocol.hpp"

namespace palimpsest {
namespace {

struct ForeignHeader : BlockHeader {
  using BlockHeader::BlockHeader;
  std::function<void()> deleter;
};

void end(ForeignHeader* me) noexcept {
  const std::unique_ptr<ForeignHeader> header(me);
  if (header->deleter) header->deleter();
}

// A deleter may drop the last reference to other foreign memory, whose deleter does the same, and
// so on, for chains of any length. The stack holds kMostNested steps of one. Later blocks wait,
// linked by `owner`, until the deleter that dropped them has returned.
constexpr int kMostNested = 16;
struct Nesting {
  int depth = 0;
  ForeignHeader* waiting = nullptr;
};
constinit thread_local Nesting nesting;

void free_foreign(BlockHeader* me) noexcept {
  auto* header = static_cast<ForeignHeader*>(me);
  if (nesting.depth == kMostNested) {
    header->owner = std::exchange(nesting.waiting, header);
    return;
  }
  ++nesting.depth;
  end(header);
  while (nesting.waiting != nullptr) {
    header = nesting.waiting;
    nesting.waiting = static_cast<ForeignHeader*>(header->owner);
    end(header);
  }
  --nesting.depth;
}

}  // namespace

BlockHeader::BlockHeader(std::byte* data_, std::size_t bytes_, Device device_, BlockKind kind_)
    : word(kind_ == BlockKind::foreign_read_only ? cow::kOneRef | cow::kFixed : cow::kOneRef),
      data(data_),
      bytes(bytes_),
      free(nullptr),
      owner(nullptr),
      mapped_bytes(0),
      device(device_),
      kind(kind_),
      is_named(false),
      lead(0) {}

Block Block::foreign(void* data, std::size_t bytes, Device device, bool writable,
                     std::function<void()> deleter) {
  const BlockKind kind = writable ? BlockKind::foreign_writable : BlockKind::foreign_read_only;
  auto header = std::make_unique<ForeignHeader>(static_cast<std::byte*>(data), bytes, device, kind);
  header->free = free_foreign;
  header->deleter = std::move(deleter);
  return Block(header.release());
}

std::uint32_t Block::references() const {
  return static_cast<std::uint32_t>(cow::refs(header_->word.load(std::memory_order_relaxed)));
}

void Block::throw_too_many() {
  throw OverflowError("[lazy clone] too many lazy clones share one block: expected at most " +
                      std::to_string(cow::kMaxRefs) + ". Try clone().");
}

}  // namespace palimpsest
