// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/base/dtype.hpp"
#include "palimpsest/base/error.hpp"

namespace PALIMPSEST_API palimpsest {

/// Ranks that no longer work together: one failed, ended, or was silent; or MPI itself failed.
class CommunicationError : public IoError {
 public:
  using IoError::IoError;
};

/// An axis of a team: a name and the number of ranks along it.
struct TeamAxis {
  std::string name;
  int size = 1;
  friend bool operator==(const TeamAxis&, const TeamAxis&) = default;
};
using TeamAxes = std::vector<TeamAxis>;

/// Range [start, stop) of the indices 0 .. extent - 1 that part `part` of `parts` holds. Sizes of
/// parts differ by at most 1; parts are empty where there are more of them than indices.
struct PartRange {
  index_t start = 0, stop = 0;
  index_t size() const { return stop - start; }
};
PartRange part_range(index_t extent, int part, int parts);

/// A group of ranks (processes that one `mpirun` started) with a shape. Rank numbers follow the
/// coordinates in row-major order.
///
/// Aliases  a cheap handle; equal teams are the same team
/// Threads  const members may be called concurrently; communication is one at a time
class Team {
 public:
  /// A rank without axes. Needs no MPI.
  Team();
  /// All ranks of the run, in this shape. A team of one rank needs no MPI.
  ///
  /// Errors   ValueError "axes": sizes below 1, equal names, or another product than the number of
  ///          ranks; NotSupported: several ranks and no module of MPI
  explicit Team(TeamAxes axes, double timeout_s = 60);
  /// All ranks of the run along one axis, "rank".
  static Team world(double timeout_s = 60);
  /// The ranks of an MPI communicator, given by the address of its MPI_Comm, which must outlive the
  /// team.
  static Team of(const void* mpi_comm, TeamAxes axes, double timeout_s = 60);
  /// A team that is not there, seen from one of its ranks: operators on it can be planned, not run.
  static Team pretend(TeamAxes axes, int rank = 0);

  int rank() const;
  int size() const;
  const TeamAxes& axes() const;
  bool is_pretended() const;
  /// Seconds without a sign of another rank after which an exchange fails.
  double timeout_s() const;
  /// Number of ranks along an axis. NameError: no such axis.
  int size(std::string_view axis) const;
  /// This rank's place along an axis.
  int coordinate(std::string_view axis) const;
  /// The same pretended team seen from another rank. StateError: a team of real ranks.
  Team seen_from(int rank) const;
  /// The same ranks in another shape. ValueError "axes": see the constructor.
  Team reshaped(TeamAxes axes) const;
  /// Tells the other ranks that this one leaves their present joint work. Ranks that wait for it,
  /// or will wait, end with a CommunicationError that contains `why`.
  void abandon(std::string_view why) const noexcept;
  /// `Team(rank 4)[1]`.
  std::string str() const;
  friend bool operator==(const Team& a, const Team& b) { return a.node_ == b.node_; }

  struct Node;
  const Node& node() const { return *node_; }
  explicit Team(std::shared_ptr<const Node> node) : node_(std::move(node)) {}

 private:
  std::shared_ptr<const Node> node_;
};

}  // namespace palimpsest
