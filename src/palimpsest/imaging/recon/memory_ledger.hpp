// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <optional>

#include "palimpsest/base/dtype.hpp"
#include "palimpsest/memory/allocator.hpp"

namespace palimpsest {

/// Bytes held since its construction, counted as a plan counts them: those of the allocator, and
/// those charged for memory that others hold: lists, shared memory, pages of mapped files.
class MemoryLedger {
 public:
  /// Bytes that count until it is destroyed.
  class Charge {
   public:
    Charge() = default;
    Charge(Charge&& other) noexcept;
    Charge& operator=(Charge&& other) noexcept;
    ~Charge() { reset(); }
    void reset();

   private:
    friend class MemoryLedger;
    Charge(MemoryLedger* ledger, index_t bytes) : ledger_(ledger), bytes_(bytes) {}

    MemoryLedger* ledger_ = nullptr;
    index_t bytes_ = 0;
  };

  MemoryLedger() { scope_.emplace(); }
  [[nodiscard]] Charge charge(index_t bytes);
  /// The most that was held at a time.
  index_t peak_bytes() const;

 private:
  void add(index_t bytes);

  std::optional<MemoryScope> scope_;  // since the last charge
  index_t live_ = 0;                  // of the allocator, when the scope began
  index_t charged_ = 0, peak_ = 0;
};

}  // namespace palimpsest
