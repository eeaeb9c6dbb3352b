// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/staging.hpp"

#include <deque>
#include <mutex>
#include <string>

#include "palimpsest/base/error.hpp"
#include "palimpsest/base/fork.hpp"
#include "palimpsest/base/immortal.hpp"

namespace palimpsest {
namespace {

constexpr std::size_t kMostPendingBytes = std::size_t{128} << 20;

// Staging memory that enqueued copies still read.
struct Pending {
  DeviceBackend* backend;
  Mark mark;
  std::byte* data;
  std::size_t bytes;
};

struct PendingList {
  Mutex mutex;
  std::deque<Pending> entries;  // oldest first
  std::size_t bytes = 0;
};

PendingList& pending() {
  return immortal([] { return PendingList(); });
}

void give_back_passed(PendingList& list, DeviceBackend& backend) {
  std::erase_if(list.entries, [&](const Pending& p) {
    if (p.backend != &backend || !backend.passed(p.mark)) return false;
    backend.give_back_staging(p.data, p.bytes);
    list.bytes -= p.bytes;
    return true;
  });
}

}  // namespace

Staging::Staging(Device device, DeviceBackend& backend, std::size_t bytes)
    : backend_(backend), bytes_(bytes) {
  PendingList& list = pending();
  const std::lock_guard lock(list.mutex);
  give_back_passed(list, backend);
  data_ = backend.obtain_staging(bytes);
  if (data_ == nullptr) {
    throw OutOfMemory("[device copy] the system has no more memory: asked " +
                      std::to_string(bytes) + " bytes for staging of " + device.str());
  }
}

Staging::~Staging() {
  if (data_ != nullptr) backend_.give_back_staging(data_, bytes_);
}

void Staging::give_back_later() {
  const Mark mark = backend_.mark();
  PendingList& list = pending();
  std::unique_lock lock(list.mutex);
  try {
    list.entries.push_back({&backend_, mark, data_, bytes_});
  } catch (...) {
    lock.unlock();
    backend_.wait_on_host(mark);
    throw;
  }
  list.bytes += bytes_;
  data_ = nullptr;
  while (list.bytes > kMostPendingBytes && list.entries.size() > 1) {
    const Pending oldest = list.entries.front();
    list.entries.pop_front();
    list.bytes -= oldest.bytes;
    lock.unlock();
    oldest.backend->wait_on_host(oldest.mark);
    oldest.backend->give_back_staging(oldest.data, oldest.bytes);
    lock.lock();
  }
}

}  // namespace palimpsest
