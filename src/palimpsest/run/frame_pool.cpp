// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/run/frame_pool.hpp"

#include <algorithm>
#include <thread>

namespace palimpsest {

std::unique_ptr<Frame> FramePool::take(const Plan& plan, bool any_thread, FrameUsers values) {
  const auto me = std::this_thread::get_id();
  const std::lock_guard guard(mutex_);
  // Room for every frame that is out, so that giving one back never allocates.
  if (idle_.capacity() < idle_.size() + in_use_ + 1)
    idle_.reserve(2 * (idle_.size() + in_use_ + 1));
  ++in_use_;
  const auto fits = [&](const auto& frame) {
    return &frame->plan() == &plan && (any_thread || frame->last_user == me) &&
           std::none_of(values.begin(), values.end(),
                        [&](const Tensor* value) { return frame->is_reached_by(*value); });
  };
  const auto it = std::find_if(idle_.rbegin(), idle_.rend(), fits);
  if (it == idle_.rend()) return nullptr;
  std::unique_ptr<Frame> frame = std::move(*it);
  idle_.erase(std::next(it).base());
  return frame;
}

std::unique_ptr<Frame> FramePool::make(const Plan& plan, Device device) const {
  {
    const std::lock_guard guard(mutex_);
    const auto found = std::find_if(idle_.begin(), idle_.end(), [&](const auto& frame) {
      return shares_arenas_ && frame->has_arena_for(plan, device);
    });
    if (found != idle_.end()) return std::make_unique<Frame>(plan, device, **found);
  }
  return std::make_unique<Frame>(plan, device);
}

void FramePool::share_arenas() {
  const std::lock_guard guard(mutex_);
  shares_arenas_ = true;
}

void FramePool::give(std::unique_ptr<Frame> frame) noexcept {
  const std::lock_guard guard(mutex_);
  --in_use_;
  if (frame && !allow_gc_) idle_.push_back(std::move(frame));
}

void FramePool::clear() {
  std::vector<std::unique_ptr<Frame>> released;  // after the lock
  const std::lock_guard guard(mutex_);
  released.reserve(idle_.capacity());
  released.swap(idle_);
}

std::size_t FramePool::size() const {
  const std::lock_guard guard(mutex_);
  return idle_.size();
}

bool FramePool::allows_gc() const {
  const std::lock_guard guard(mutex_);
  return allow_gc_;
}

void FramePool::set_allow_gc(bool value) {
  {
    const std::lock_guard guard(mutex_);
    allow_gc_ = value;
  }
  if (value) clear();
}

BorrowedFrame::BorrowedFrame(FramePool& pool, const Plan& plan, Device device, bool any_thread,
                             FrameUsers values)
    : pool_(pool), frame_(pool.take(plan, any_thread, values)) {
  try {
    if (frame_) {
      held_bytes_ = frame_->bytes();
      frame_->refresh();
    } else {
      frame_ = pool_.make(plan, device);
    }
  } catch (...) {
    pool_.give(std::move(frame_));
    throw;
  }
  frame_->last_user = std::this_thread::get_id();
}

BorrowedFrame::~BorrowedFrame() {
  frame_->forget_call();
  pool_.give(std::move(frame_));
}

}  // namespace palimpsest
