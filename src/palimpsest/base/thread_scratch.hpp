// SPDX-License-Identifier: Apache-2.0
// Internal: big arrays of kernels, which would not fit the stack of a small thread.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

namespace palimpsest {

/// Bytes of such memory that a thread keeps at most, from the first kernel that runs on it until it
/// ends. The deepest of them, of a pass that reads another one, takes four chunks. Plans announce
/// it for each thread.
inline constexpr std::size_t kScratchChunkBytes = std::size_t{512} << 10;
inline constexpr std::size_t kThreadScratchBytes = 4 * kScratchChunkBytes;

namespace detail {
/// Up to where the scratch memory of a thread is taken.
struct ScratchMark {
  std::size_t chunk = 0, used = 0;
};
/// Takes `bytes` of the calling thread's scratch, aligned to 64; `before` receives the mark to give
/// back to. Throws std::bad_alloc.
std::byte* take_scratch(std::size_t bytes, ScratchMark& before);
void give_back_scratch(const ScratchMark& before) noexcept;
}  // namespace detail

/// A T in the scratch memory of the thread, for use like one on its stack: the last one that was
/// made is the first that goes. Without arguments it is not initialized.
template <class T>
class Scratched {
 public:
  template <class... Arguments>
  explicit Scratched(Arguments&&... arguments) {
    static_assert(alignof(T) <= 64 && sizeof(T) <= kScratchChunkBytes);
    std::byte* const room = detail::take_scratch(sizeof(T), before_);
    if constexpr (sizeof...(Arguments) == 0) {
      object_ = ::new (room) T;
    } else {
      object_ = ::new (room) T(std::forward<Arguments>(arguments)...);
    }
  }
  ~Scratched() {
    object_->~T();
    detail::give_back_scratch(before_);
  }
  Scratched(const Scratched&) = delete;
  Scratched& operator=(const Scratched&) = delete;

  T& operator*() const { return *object_; }
  T* operator->() const { return object_; }

 private:
  detail::ScratchMark before_;
  T* object_;
};

}  // namespace palimpsest
