// SPDX-License-Identifier: Apache-2.0
// Internal: how bytes travel between the ranks of a run.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace palimpsest::distributed_detail {

/// Bytes for another rank.
struct Parcel {
  int peer = 0;
  std::span<const std::byte> bytes;
};
/// Place for the bytes of another rank; their number is known.
struct Place {
  int peer = 0;
  std::span<std::byte> bytes;
};

/// The ranks of a run. All of them make the same sequence of exchanges.
///
/// Threads  one exchange at a time
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Sends all parcels and fills all places. Returns when both are done. Empty parcels do not
  /// travel. Returns an empty text, or the failure: another rank gave up (its message follows),
  /// ended, or was silent for `timeout_s`.
  virtual std::string exchange(std::span<const Parcel> parcels, std::span<const Place> places,
                               double timeout_s) noexcept = 0;
  /// Tells all other ranks that this one takes part in no more of the exchanges of this call, and
  /// why. Their exchanges throw then, and the next exchange of all begins a new sequence.
  virtual void abandon(std::string_view why) noexcept = 0;
};

/// The number of ranks that the launcher says it started; 1 without a launcher.
int launched_ranks();
/// The ranks that `mpirun` started, through the module of MPI.
///
/// Errors  NotSupported: the module is not there, naming the package that it needs
std::shared_ptr<Communicator> world_communicator();
/// The ranks of an MPI_Comm, given by its address.
std::shared_ptr<Communicator> communicator_of(const void* mpi_comm);

/// Functions of the MPI module. Errors come back as text: no exception crosses its border.
struct MpiFunctions {
  /// Called with `hold` for bytes that MPI reads or writes although their exchange has failed, and
  /// without it once MPI has done with them.
  using Hold = void (*)(std::span<const std::byte> bytes, bool hold);
  /// `mpi_comm` null: MPI_COMM_WORLD. MPI is initialized where it is not. Null with a text in
  /// `problem` where that fails.
  Communicator* (*open)(const void* mpi_comm, Hold hold, std::string& problem);
};

}  // namespace palimpsest::distributed_detail
