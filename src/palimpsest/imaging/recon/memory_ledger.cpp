// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/recon/memory_ledger.hpp"

#include <algorithm>
#include <utility>

namespace palimpsest {

MemoryLedger::Charge::Charge(Charge&& other) noexcept
    : ledger_(std::exchange(other.ledger_, nullptr)), bytes_(other.bytes_) {}

MemoryLedger::Charge& MemoryLedger::Charge::operator=(Charge&& other) noexcept {
  reset();
  ledger_ = std::exchange(other.ledger_, nullptr);
  bytes_ = other.bytes_;
  return *this;
}

void MemoryLedger::Charge::reset() {
  if (ledger_ != nullptr) std::exchange(ledger_, nullptr)->add(-bytes_);
}

MemoryLedger::Charge MemoryLedger::charge(index_t bytes) {
  add(bytes);
  return {this, bytes};
}

index_t MemoryLedger::peak_bytes() const {
  return std::max(peak_, live_ + charged_ + static_cast<index_t>(scope_->peak_bytes()));
}

void MemoryLedger::add(index_t bytes) {
  peak_ = peak_bytes();
  live_ += scope_->live_bytes();
  charged_ += bytes;
  scope_.emplace();
}

}  // namespace palimpsest
