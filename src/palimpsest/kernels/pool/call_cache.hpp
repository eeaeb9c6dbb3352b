// SPDX-License-Identifier: Apache-2.0
// Internal: cached preparations of calls.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace palimpsest {

/// Everything that a preparation depends on, as words.
class CallKey {
 public:
  static constexpr std::size_t kMaxWords = 128;

  void add(std::uint64_t word) {
    words_[n_++] = word;
    sum_ += (word + n_ * kOdd) * (kOdd + 2 * n_);
  }
  /// Keys are compared as a whole, so collisions are harmless.
  std::uint64_t hash() const { return sum_ ^ sum_ >> 32; }
  friend bool operator==(const CallKey& a, const CallKey& b) {
    return a.n_ == b.n_ &&
           std::equal(a.words_.begin(), a.words_.begin() + static_cast<std::ptrdiff_t>(a.n_),
                      b.words_.begin());
  }

 private:
  static constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;

  std::size_t n_ = 0;
  std::uint64_t sum_ = 0;
  std::array<std::uint64_t, kMaxWords> words_;
};

/// The values of the last calls, shared by all threads. A value is used by one thread at a time;
/// another thread that needs it makes its own. Allocates nothing itself.
template <class Value>
class CallCache {
  // A place in the cache. Its pages are untouched before its first use.
  struct Place {
    std::atomic<bool> taken{false};
    std::atomic<std::uint64_t> hash{0};
    std::optional<CallKey> key;
    std::optional<Value> value;
  };

 public:
  /// Exclusive use of a value while the lease lives; none if all places for its key are taken.
  class Lease {
   public:
    Lease() = default;
    explicit Lease(Place* place) : place_(place) {}
    Lease(Lease&& other) noexcept : place_(std::exchange(other.place_, nullptr)) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (place_ != nullptr) place_->taken.store(false, std::memory_order_release);
    }
    explicit operator bool() const { return place_ != nullptr; }
    /// Empty if it has not been made yet.
    std::optional<Value>& value() const { return place_->value; }

   private:
    Place* place_ = nullptr;
  };

  Lease find(const CallKey& key) {
    Place* const places = &places_[key.hash() % kSets * kWays];
    for (Place* place = places; place != places + kWays; ++place) {
      if (place->hash.load(std::memory_order_relaxed) != key.hash() || !take(*place)) continue;
      if (place->key == key && place->value.has_value()) return Lease(place);
      place->taken.store(false, std::memory_order_release);
    }
    const std::size_t first = next_.fetch_add(1, std::memory_order_relaxed);
    for (std::size_t i = 0; i < kWays; ++i) {
      Place& place = places[(first + i) % kWays];
      if (!take(place)) continue;
      place.value.reset();
      place.key = key;
      place.hash.store(key.hash(), std::memory_order_relaxed);
      return Lease(&place);
    }
    return {};
  }

 private:
  static constexpr std::size_t kSets = 32, kWays = 4;

  static bool take(Place& place) {
    return !place.taken.load(std::memory_order_relaxed) &&
           !place.taken.exchange(true, std::memory_order_acquire);
  }

  std::array<Place, kSets * kWays> places_;
  std::atomic<std::size_t> next_{0};
};

}  // namespace palimpsest
