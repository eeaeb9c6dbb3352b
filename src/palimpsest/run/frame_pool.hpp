// SPDX-License-Identifier: Apache-2.0
// Internal: the idle frames of a function.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/run/frame.hpp"

namespace palimpsest {

/// The values of a call that may lie in a frame: its arguments and where its results go.
using FrameUsers = std::span<const Tensor* const>;

/// Idle frames. A frame with borrowed results that a thread may still read is given to that thread
/// only.
class FramePool {
 public:
  /// An idle frame of the plan for this thread, with memory that none of the values shows; null if
  /// there is none.
  std::unique_ptr<Frame> take(const Plan& plan, bool any_thread, FrameUsers values);
  /// A new frame of the plan.
  std::unique_ptr<Frame> make(const Plan& plan, Device device) const;
  void give(std::unique_ptr<Frame> frame) noexcept;
  void clear();
  std::size_t size() const;
  /// Frames that are given back are released.
  void set_allow_gc(bool value);
  bool allows_gc() const;
  /// New frames use the arena of an idle one if it is large enough: for functions that never run at
  /// the same time.
  void share_arenas();

 private:
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Frame>> idle_;  // guarded by mutex_
  std::size_t in_use_ = 0;                    // guarded by mutex_
  bool allow_gc_ = false;                     // guarded by mutex_
  bool shares_arenas_ = false;                // guarded by mutex_
};

/// A frame for the time of one call.
class BorrowedFrame {
 public:
  BorrowedFrame(FramePool& pool, const Plan& plan, Device device, bool any_thread,
                FrameUsers values = {});
  ~BorrowedFrame();
  BorrowedFrame(const BorrowedFrame&) = delete;
  BorrowedFrame& operator=(const BorrowedFrame&) = delete;
  Frame& operator*() { return *frame_; }
  Frame* operator->() { return frame_.get(); }
  /// Bytes that the frame held when it was taken.
  index_t held_bytes() const { return held_bytes_; }

 private:
  FramePool& pool_;
  std::unique_ptr<Frame> frame_;
  index_t held_bytes_ = 0;
};

}  // namespace palimpsest
