// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "palimpsest/graph/op.hpp"

namespace PALIMPSEST_API palimpsest {

/// Messages that one process sends when an op runs.
struct Traffic {
  index_t bytes = 0;     ///< of elements; envelopes of the message library are not counted
  index_t messages = 0;  ///< that hold at least one byte
  /// The number of times that this process waits for others.
  index_t synchronisations = 0;

  Traffic& operator+=(const Traffic& other) {
    bytes += other.bytes;
    messages += other.messages;
    synchronisations += other.synchronisations;
    return *this;
  }
  friend Traffic operator+(Traffic a, const Traffic& b) { return a += b; }
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

/// An op that several processes run together, each with its own part of the data.
///
/// All of them must run the same ops of this kind in the same order. So each gets a turn before a
/// graph is rewritten, which may go differently where a process has an empty part of an array; a
/// plan keeps the order of the turns, runs them in one lane, on the thread that calls, and their
/// results are dense.
class Collective {
 public:
  virtual ~Collective() = default;
  /// Messages of this process; all extents are known.
  virtual Traffic traffic(const Apply& apply) const = 0;
  /// Lower turns run first; -1: none yet. A parameter of the op, so that no two of a graph are
  /// equal.
  virtual int turn() const = 0;
  virtual OpPtr with_turn(int turn) const = 0;
  /// An op for all these nodes, one after the other: it takes all their inputs, gives all their
  /// outputs, with the same bits and fewer messages. One of the nodes has this op. Null if there is
  /// no such op.
  virtual OpPtr joined(std::span<const Apply>) const { return nullptr; }
  /// Tells the other processes, which wait for this one, that another step failed here.
  virtual void abandon(std::string_view why) const noexcept = 0;
};

/// Null for an op of one process.
inline const Collective* as_collective(const Op& op) {
  return dynamic_cast<const Collective*>(&op);
}

}  // namespace palimpsest
