// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/thread_scratch.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "palimpsest/base/per_thread.hpp"

namespace palimpsest::detail {
namespace {

constexpr std::size_t kAlignment = 64, kMostKept = kThreadScratchBytes / kScratchChunkBytes;

struct Delete {
  void operator()(std::byte* memory) const {
    ::operator delete (memory, std::align_val_t{kAlignment});
  }
};
struct Chunk {
  std::unique_ptr<std::byte, Delete> memory;
  std::size_t bytes;
};
struct Chunks {
  std::vector<Chunk> list;
  ScratchMark mark;
};

}  // namespace

std::byte* take_scratch(std::size_t bytes, ScratchMark& before) {
  bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  Chunks& chunks = of_this_thread<Chunks>();
  ScratchMark mark = before = chunks.mark;
  while (mark.chunk < chunks.list.size() && mark.used + bytes > chunks.list[mark.chunk].bytes) {
    mark = {mark.chunk + 1, 0};
  }
  if (mark.chunk == chunks.list.size()) {
    const std::size_t size = std::max(bytes, kScratchChunkBytes);
    std::unique_ptr<std::byte, Delete> memory(
        static_cast<std::byte*>(::operator new (size, std::align_val_t{kAlignment})));
    chunks.list.push_back({std::move(memory), size});
  }
  std::byte* const room = chunks.list[mark.chunk].memory.get() + mark.used;
  chunks.mark = {mark.chunk, mark.used + bytes};
  return room;
}

void give_back_scratch(const ScratchMark& before) noexcept {
  Chunks& chunks = of_this_thread<Chunks>();
  chunks.mark = before;
  // A thread that waits for others takes over work, which nests deeper than kernels do.
  const std::size_t n_used = before.chunk + (before.used > 0 ? 1 : 0);
  while (chunks.list.size() > std::max(n_used, kMostKept)) chunks.list.pop_back();
}

}  // namespace palimpsest::detail
