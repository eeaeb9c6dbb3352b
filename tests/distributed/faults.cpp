// SPDX-License-Identifier: Apache-2.0
// A solve on several ranks, one of which fails: `faults FAULT RANK AT [PROBLEM]`. Faults:
//
//     kill, exit   the rank is killed, or ends its program, when it sends its message AT
//     late         it sends nothing for longer than the time limit, before its message AT
//     throw        a callback of the solver throws at iteration AT
//     op           a user's operator throws at its application AT
//     differ       it has an operator of another size
//     place        it cuts another dimension
//     fewer        its program asks for AT iterations, those of the others for 6
//     disk         its disk is full when the operator is saved: RANK is 0
//     none
//
// Problems: `coils` (one sum per iteration), `planes` (transforms along a cut dimension, sums of
// inner products), `data` (CGLS with data in parts on ranks). Exit code 0: no fault occurred; 3:
// this rank ended with an error. Prints one line.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "distributed/distributed_support.hpp"
#include "palimpsest/distributed/gather_operator.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/solve/conjugate_gradients.hpp"
#include "palimpsest/solve/least_squares.hpp"

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

namespace {

constexpr int kTimeout_s = 3;
std::string fault = "none", problem = "coils";
int failing = 0, at = 0, sends = 0, applications = 0;

bool is_failing_rank() {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank == failing;
}

}  // namespace

// Takes precedence over the library's function: the program is searched first.
extern "C" __attribute__((visibility("default"))) int MPI_Isend(const void* buffer, int count,
                                                                MPI_Datatype type, int peer,
                                                                int tag, MPI_Comm comm,
                                                                MPI_Request* request) {
  if (++sends == at && is_failing_rank()) {
    if (fault == "kill") std::raise(SIGKILL);
    if (fault == "exit") std::_Exit(0);
    if (fault == "late") ::sleep(kTimeout_s + 3);
  }
  return PMPI_Isend(buffer, count, type, peer, tag, comm, request);
}

namespace palimpsest::testing {
namespace {

bool is_faulty(const char* name) { return fault == name && is_failing_rank(); }

// A user's op that returns 0 for every input.
class UsersOp final : public Op {
 public:
  std::string name() const override { return "UsersOp"; }
  Apply make_node(std::span<const Variable> inputs) const override {
    return node(inputs, {type_of(DType::float32, {})});
  }
  std::vector<Extents> infer_shapes(const Apply&, std::span<const Extents>) const override {
    return {Extents{}};
  }
  void run(RunContext& context) const override {
    if (++applications == at && is_faulty("op")) throw ValueError("the user's own error");
    *static_cast<float*>(context.output(0).data) = 0;
  }
};

Variable users_fn(const NamedLinop&, const Variable& x) {
  return x + std::make_shared<UsersOp>()->make_node({&x, 1}).output(0);
}
NamedLinop unchanged(const NamedLinop& A, const Tile&) { return A; }

const LinopType kUsers{
    .name = "Users",
    .functions = {.fn = users_fn, .adj_fn = users_fn, .split = unchanged},
    .adjoint = [](const NamedLinop& A) { return A; },
    .normal = [](const NamedLinop&, const NamedLinop*) { return NamedLinop(); },
};

// Like sense(), with a user's operator.
NamedLinop problem_of(index_t n) {
  const NamedLinop A = sense(6, n, 30, DType::complex64);
  if (fault == "disk") return A.with_sizes({{"Nx", n}, {"Ny", 30}, {"Kx", n}, {"Ky", 30}});
  const Dims dims("C Kx Ky");
  return Chain(A, make_linop(kUsers, NamedShape(dims, dims)))
      .with_sizes({{"Nx", n}, {"Ny", 30}, {"Kx", n}, {"Ky", 30}});
}

Placement placement_of() {
  const bool cuts_planes = (problem == "planes") != is_faulty("place");
  return cuts_planes ? Placement{{"Nx", "rank"}} : Placement{{"C", "rank"}};
}

Tensor own_part(const Tensor& whole, const Dims& dims, const Team& team) {
  return DTensor::part_of(whole, dims, team, placement_of()).local().contiguous();
}

SolveResult solve(const NamedLinop& A, const NamedLinop& part, const Team& team) {
  const auto callback = [](const SolveInfo& info) {
    if (is_faulty("throw") && info.iteration() == at) throw ValueError("the user's own error");
    return true;
  };
  const int iterations = is_faulty("fewer") ? at : 6;
  if (problem == "data") {
    const Tensor b = A(random_values({40, 30}, DType::complex64, 4));
    return cgls(part, own_part(b, A.oshape(), team),
                {.tolerance = 0, .max_iterations = iterations, .callback = callback});
  }
  const Tensor b = random_values({40, 30}, DType::complex64, 4);
  return conjugate_gradients(part.N(), own_part(b, A.ishape(), team),
                             {.tolerance = 0, .max_iterations = iterations, .callback = callback});
}

int run() {
  const Team team = Team::world(kTimeout_s);
  const NamedLinop A = problem_of(is_faulty("differ") ? 42 : 40);
  const NamedLinop part = distribute(A, team, placement_of());
  const SolveResult result = solve(A, part, team);
  if (fault == "disk") save_distributed(part, "/dev/full");
  std::printf("done: %d messages, %d iterations\n", sends, result.iterations);
  std::fflush(stdout);
  return 0;
}

}  // namespace
}  // namespace palimpsest::testing

int main(int argc, char** argv) {
  if (argc >= 4) {
    fault = argv[1];
    failing = std::atoi(argv[2]);
    at = std::atoi(argv[3]);
  }
  if (argc >= 5) problem = argv[4];
  try {
    return palimpsest::testing::run();
  } catch (const palimpsest::Error& error) {
    palimpsest::Team::world(kTimeout_s).abandon(error.what());
    std::fprintf(stderr, "error: %s\n", error.what());
    return 3;
  }
}
