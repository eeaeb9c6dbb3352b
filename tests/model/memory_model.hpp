// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

// Runs small concurrent programs in every way allowed by release/acquire memory.
//
// The model. Each atomic location keeps the history of its messages in modification order. A thread
// carries a view: per location the oldest message that it may still read. A load may read any
// message from there on; a store may be placed anywhere after it; a read-modify-write continues the
// message that it reads, with nothing in between. A message carries the view and the vector clock
// of its release, or those of the message that a read-modify-write continues (release sequences);
// an acquire joins them. Plain data are checked with the vector clocks: two accesses that are not
// ordered by happens-before, one of them a write, are a violation, even if they did not overlap in
// time. This is RC11 without fences and without sequentially consistent accesses, which the
// protocol does not use: in particular loads never see the future.
//
// A compare_exchange_weak fails only on another value: a spurious failure is a repetition of the
// loop around it.
//
// The search is depth first over all choices (who runs, what is read, where a store goes), by
// running the program again for every path. A state reached before (what each thread has done and
// read, all messages, views and clocks, as a 64-bit hash) is not searched again.
namespace palimpsest::model {

inline constexpr std::size_t kMaxThreads = 4;
inline constexpr std::size_t kMaxLocations = 8;

/// An atomic 64-bit integer of the model, with the members of std::atomic that the programs use.
class Word {
 public:
  /// With `is_local` only the creating thread may use it; its steps need no scheduling.
  explicit Word(std::uint64_t value, bool is_local = false);
  Word(const Word&) = delete;
  Word& operator=(const Word&) = delete;

  std::uint64_t load(std::memory_order order) const;
  void store(std::uint64_t value, std::memory_order order);
  std::uint64_t fetch_add(std::uint64_t n, std::memory_order order);
  std::uint64_t fetch_sub(std::uint64_t n, std::memory_order order);
  bool compare_exchange_weak(std::uint64_t& expected, std::uint64_t desired,
                             std::memory_order success, std::memory_order failure);
  bool compare_exchange_weak(std::uint64_t& expected, std::uint64_t desired,
                             std::memory_order order);
  /// Ends its life: all uses must happen before.
  void destroy();
  /// The last message; for checks after all threads have ended.
  std::uint64_t final_value() const;
  std::size_t location() const { return location_; }

 private:
  std::size_t location_;
};

/// Plain data: unordered accesses are a violation.
class Cell {
 public:
  explicit Cell(int value);
  Cell(const Cell&) = delete;
  Cell& operator=(const Cell&) = delete;

  int read() const;
  void write(int value);
  /// Ends its life: all uses must happen before.
  void destroy();

 private:
  std::size_t index_;
};

/// Ends this execution as a violation, unless `condition` holds.
void require(bool condition, const char* what);
/// The behaviour of parking.cpp, including its mutex. Waking uses the address only: `word` may be
/// destroyed.
void park(const Word& word, std::uint64_t seen);
void unpark(const Word* word);

/// A program: `start` makes the initial state and returns the threads; `finish` checks the final
/// state and returns the outcome as text.
struct Program {
  std::function<std::vector<std::function<void()>>()> start;
  std::function<std::string()> finish;
};

struct Report {
  std::uint64_t executions = 0, states = 0;
  std::string violation;  ///< the first one; empty if there is none
  std::set<std::string> outcomes;
};

/// Explores all executions; stops at the first violation. Too many steps are a violation too.
/// Throws std::runtime_error beyond `most_states`.
Report explore(const Program& program, std::uint64_t most_states = 20'000'000);

}  // namespace palimpsest::model
