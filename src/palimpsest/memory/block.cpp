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

void free_foreign(BlockHeader* me) noexcept {
  const std::unique_ptr<ForeignHeader> header(static_cast<ForeignHeader*>(me));
  if (header->deleter) header->deleter();
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
      is_named(false) {}

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
