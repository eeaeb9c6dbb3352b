// SPDX-License-Identifier: Apache-2.0
// Internal: a team, and the groups of its ranks that communicate.
#pragma once

#include <string>
#include <vector>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/distributed/communicator.hpp"
#include "palimpsest/distributed/team.hpp"

namespace palimpsest {

struct Team::Node {
  index_t id = 0;  // number in the list of all teams; operators hold it
  TeamAxes axes;
  int rank = 0, size = 1;
  double timeout_s = 60;
  bool is_pretended = false;
  std::shared_ptr<distributed_detail::Communicator> communicator =
      nullptr;  // null: one rank, or pretended
};

namespace distributed_detail {

/// The team of an operator's attribute. StateError if this process lacks it.
Team team_of_id(index_t id);

/// The ranks of a team that differ from this one at most along some axes, in the order of their
/// numbers.
struct Group {
  int size() const { return size_; }
  /// The rank at a position. Positions count along the last axis first.
  int member(int k) const;

  int self = 0;  // position of this rank among them

 private:
  friend Group group_of(const Team& team, const std::vector<std::string>& axes);
  struct Axis {
    int size, step;  // ranks from one to the next
  };
  std::vector<Axis> axes_;
  int size_ = 1, first_ = 0;
};
Group group_of(const Team& team, const std::vector<std::string>& axes);

/// The place of another rank along an axis.
int coordinate_of(const Team& team, int rank, std::string_view axis);

/// Sends and receives among the ranks of a team. The time limit is at least that of the team.
/// Errors   StateError: a pretended team; CommunicationError
void exchange(const Team& team, std::span<const Parcel> parcels, std::span<const Place> places,
              double timeout_s = 0);

/// A block of bytes of each rank of the team, in the order of ranks.
std::vector<std::string> gather_texts(const Team& team, const std::string& mine,
                                      double timeout_s = 0);

}  // namespace distributed_detail
}  // namespace palimpsest
