// SPDX-License-Identifier: Apache-2.0
// A solve on several ranks, one of which fails: `faults kill|throw|differ RANK N`. The rank is
// killed when it sends its message N, its operator throws at the application N, or it has another
// operator. Exit code 0: no fault came; 3: this rank ended with an error that it prints.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "distributed/distributed_support.hpp"
#include "palimpsest/solve/conjugate_gradients.hpp"

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

namespace {

std::string mode = "none";
int failing = 0, at = 0, sends = 0;

bool is_failing_rank() {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank == failing;
}

}  // namespace

// Stands before the library's: the program is searched first.
extern "C" __attribute__((visibility("default"))) int MPI_Isend(const void* buffer, int count,
                                                                MPI_Datatype type, int peer,
                                                                int tag, MPI_Comm comm,
                                                                MPI_Request* request) {
  if (++sends == at && mode == "kill" && is_failing_rank()) std::raise(SIGKILL);
  return PMPI_Isend(buffer, count, type, peer, tag, comm, request);
}

namespace palimpsest::testing {
namespace {

int solve() {
  const Team team = Team::world(5);
  const index_t n = mode == "differ" && team.rank() == failing ? 42 : 40;
  const NamedLinop A = sense(6, n, 30, DType::complex64);
  const NamedLinop N = distribute(A, team, {{"C", "rank"}}).N();
  const Tensor b = random_values({n, 30}, DType::complex64, 4);
  const CgOptions options{
      .tolerance = 0, .max_iterations = 6, .callback = [&](const SolveInfo& info) {
        if (mode == "throw" && team.rank() == failing && info.iteration() == at) {
          throw ValueError("the user's own error");
        }
        return true;
      }};
  const SolveResult result = conjugate_gradients(N, b, options);
  std::printf("%d messages, %d iterations\n", sends, result.iterations);
  return 0;
}

}  // namespace
}  // namespace palimpsest::testing

int main(int argc, char** argv) {
  if (argc == 4) {
    mode = argv[1];
    failing = std::atoi(argv[2]);
    at = std::atoi(argv[3]);
  }
  try {
    return palimpsest::testing::solve();
  } catch (const palimpsest::Error& error) {
    palimpsest::Team::world(5).abandon(error.what());
    std::fprintf(stderr, "error: %s\n", error.what());
    std::fflush(stderr);
    // MPI_Finalize would wait for a rank that is no more.
    std::_Exit(3);
  }
}
