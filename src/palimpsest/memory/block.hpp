// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "palimpsest/base/api.hpp"
#include "palimpsest/device/device.hpp"
#include "palimpsest/memory/cow_protocol.hpp"

namespace PALIMPSEST_API palimpsest {

/// Owner of the bytes of a block.
enum class BlockKind : std::uint8_t {
  owned,              ///< given by an Allocator
  foreign_read_only,  ///< of another owner, who promised not to write; never written here either
  foreign_writable,   ///< of another owner, who may write at any time
};

/// Controls one allocation; lies right in front of the data that our allocators give, and apart
/// from foreign data. Internal: use Block.
struct alignas(64) BlockHeader {
  std::atomic<std::uint64_t> word;  ///< references and copies in flight, see cow_protocol.hpp
  std::byte* data;
  std::size_t bytes;                       ///< as asked for
  void (*free)(BlockHeader* me) noexcept;  ///< ends header and data
  void* owner;                             ///< the argument of `free`
  std::size_t mapped_bytes;                ///< length of the mapping, 0 if it came from the heap
  Device device;
  BlockKind kind;
  bool is_named;      ///< listed by its allocator
  std::uint8_t lead;  ///< bytes in front of the data, which are not counted

  BlockHeader(std::byte* data_, std::size_t bytes_, Device device_, BlockKind kind_);
};
static_assert(sizeof(BlockHeader) == 64);

/// A reference to one allocation. Move-only; share() makes another one.
///
/// Aliases  all references show the same bytes; only the sole one may write (Storage sees to it)
/// Threads  different references may be used concurrently
class Block {
 public:
  Block() = default;
  /// Takes over one reference that `header` already counts.
  explicit Block(BlockHeader* header) : header_(header) {}
  Block(Block&& other) noexcept : header_(std::exchange(other.header_, nullptr)) {}
  Block& operator=(Block&& other) noexcept {
    Block taken(std::move(other));
    std::swap(header_, taken.header_);
    return *this;
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    if (header_ != nullptr) drop();
  }

  /// Memory of another owner. The deleter (may be empty, must not throw) runs with the last
  /// reference; if this throws it does not run.
  static Block foreign(void* data, std::size_t bytes, Device device, bool writable,
                       std::function<void()> deleter);

  explicit operator bool() const { return header_ != nullptr; }
  std::byte* data() { return header_->data; }
  const std::byte* data() const { return header_->data; }
  std::size_t bytes() const { return header_->bytes; }
  Device device() const { return header_->device; }
  BlockKind kind() const { return header_->kind; }

  /// True if this reference may write: it is the only one and the bytes are not read-only.
  bool is_sole() const { return cow::is_sole(header_->word); }
  /// Number of references, this one included.
  std::uint32_t references() const;
  /// Another reference: O(1), allocates nothing. OverflowError beyond 2^31.
  Block share() const {
    if (!cow::add_ref(header_->word)) [[unlikely]]
      throw_too_many();
    return Block(header_);
  }

  BlockHeader* header() const { return header_; }
  /// Gives the reference away without dropping it.
  BlockHeader* release() { return std::exchange(header_, nullptr); }

 private:
  void drop() {
    BlockHeader* const header = release();
    if (cow::drop_ref(header->word)) header->free(header);
  }
  [[noreturn]] static void throw_too_many();

  BlockHeader* header_ = nullptr;
};

}  // namespace palimpsest
