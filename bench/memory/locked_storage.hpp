// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <utility>

// Copy-on-write storage as in published tensor libraries, for comparison: sharing wraps the data in
// a heap-allocated context with a reference count and a reader-writer lock. A writer first drops
// its reference and copies under the reader lock; the last one waits for the writer lock.
namespace palimpsest::bench {

class LockedStorage {
 public:
  explicit LockedStorage(std::size_t bytes)
      : impl_(std::make_shared<Impl>(std::make_unique_for_overwrite<std::byte[]>(bytes), bytes)) {}
  LockedStorage(LockedStorage&&) = default;
  LockedStorage& operator=(LockedStorage&&) = default;

  LockedStorage lazy_clone() {
    if (impl_->context == nullptr) impl_->context = new Context(std::move(impl_->own));
    impl_->context->refs.fetch_add(1, std::memory_order_relaxed);
    return LockedStorage(std::make_shared<Impl>(impl_->context, impl_->data, impl_->bytes));
  }

  std::byte* mutable_data() {
    if (impl_->context != nullptr) [[unlikely]]
      impl_->materialize();
    return impl_->data;
  }

 private:
  using Bytes = std::unique_ptr<std::byte[]>;

  struct Context {
    explicit Context(Bytes data_) : data(std::move(data_)) {}
    std::shared_mutex mutex;
    std::atomic<std::int64_t> refs{1};
    Bytes data;
  };

  struct Impl {
    Impl(Bytes own_, std::size_t bytes_) : own(std::move(own_)), data(own.get()), bytes(bytes_) {}
    Impl(Context* context_, std::byte* data_, std::size_t bytes_)
        : context(context_), data(data_), bytes(bytes_) {}
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;
    ~Impl() {
      if (context == nullptr) return;
      if (context->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) take_last();
    }

    // The last owner waits for the copies of the others, then owns the data alone.
    Bytes take_last() {
      { const std::unique_lock lock(context->mutex); }
      Bytes taken = std::move(context->data);
      delete context;
      return taken;
    }
    void materialize() {
      Bytes fresh;
      std::shared_lock lock(context->mutex);
      if (context->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        lock.unlock();
        fresh = take_last();
      } else {
        fresh = std::make_unique_for_overwrite<std::byte[]>(bytes);
        std::memcpy(fresh.get(), data, bytes);
      }
      context = nullptr;
      own = std::move(fresh);
      data = own.get();
    }

    Context* context = nullptr;
    Bytes own;
    std::byte* data;
    std::size_t bytes;
  };

  explicit LockedStorage(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

  std::shared_ptr<Impl> impl_;
};

}  // namespace palimpsest::bench
