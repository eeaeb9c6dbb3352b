// SPDX-License-Identifier: Apache-2.0
// Memory and messages of a parallel reconstruction on many ranks, and the number of ranks beyond
// which more do not help.
//
//   bench_team [latency_us GB/s GFlop/s]
//       an iteration of conjugate gradients on 1 to 1,024 ranks that are not there: peak, bytes,
//       messages and synchronisations of the largest rank, the bytes of the formula, and a model of
//       the time: flops / rate + messages x latency + bytes / bandwidth, by default with 2 us,
//       10 GB/s and 5 GFlop/s per rank
//   bench_team clock
//       times of iterations on the ranks that are there. On two cores compare
//         PALIMPSEST_FLAGS=threads=2 bench_team clock
//         mpirun -n 2 -x PALIMPSEST_FLAGS=threads=1 bench_team clock
//       Alone, by turns with the operator that is not distributed: medians of the ratio
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "palimpsest/distributed/distribute.hpp"
#include "palimpsest/distributed/team_plan.hpp"
#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/diagonal.hpp"
#include "palimpsest/linop/transforms/fft.hpp"
#include "palimpsest/solve/conjugate_gradients.hpp"

namespace palimpsest {
namespace {

struct Machine {
  double latency_s = 2e-6, bytes_per_s = 10e9, flops_per_s = 5e9;
};

// Maps, Fourier transform along the first axes of (z, y, x), and sampling of the measured points.
NamedLinop parallel_imaging(index_t coils, index_t nz, index_t n) {
  const auto zeros = [](const Extents& shape, DType dtype) {
    return Tensor::zeros({}, dtype).expand(shape);
  };
  return Chain(Dense(zeros({coils, nz, n, n}, DType::complex64),
                     "C Nz Ny Nx, Nz Ny Nx -> C Nz Ny Nx"),
               Fft(3, {.batch = "C", .grid = Grid{"Nz Ny Nx", "Kz Ky Kx"}}),
               Diagonal(zeros({nz, n, n}, DType::float32), "C Kz Ky Kx",
                        {.weight_shape = Dims("Kz Ky Kx")}))
      .with_sizes({{"Nz", nz}, {"Ny", n}, {"Nx", n}, {"Kz", nz}, {"Ky", n}, {"Kx", n}});
}

index_t part(index_t n, index_t ranks) { return (n + ranks - 1) / ranks; }

// -- counts ------------------------------------------------------------------------------------

// Of the largest rank: two transforms of its coils, four products with maps and mask, and the
// vectors of the recurrence.
double flops(index_t coils, index_t nz, index_t n, index_t at_coils, index_t at_z) {
  const auto points = static_cast<double>(part(nz, at_z) * n * n);
  const double transforms = 2 * 5 * std::log2(static_cast<double>(nz * n * n));
  return points * (static_cast<double>(part(coils, at_coils)) * (transforms + 8 + 2 + 8 + 2) + 30);
}

// Four exchanges of each coil's part along z, the sum of the images over the coils, and two inner
// products over z.
index_t formula(index_t coils, index_t nz, index_t n, index_t at_coils, index_t at_z) {
  const index_t bytes = 8 * n * n * nz / at_z;
  const index_t along_z = at_z > 1 ? 4 * (bytes - bytes / at_z) * (coils / at_coils) : 0;
  const index_t over_coils = at_coils > 1 ? 2 * (bytes - bytes / at_coils) : 0;
  return along_z + over_coils + (at_z - 1) * (8 + 4);
}

void table(index_t coils, index_t nz, index_t n, const Machine& machine) {
  std::printf("\n%lld x %lld x %lld, %lld coils, complex64\n", static_cast<long long>(nz),
              static_cast<long long>(n), static_cast<long long>(n), static_cast<long long>(coils));
  std::printf("%6s %9s %10s %10s %14s %14s %9s %5s %10s %8s %6s\n", "ranks", "C x z", "peak MB",
              "Mflop", "bytes sent", "formula", "messages", "sync", "compute ms", "send ms",
              "paid");
  const NamedLinop A = parallel_imaging(coils, nz, n);
  double alone = 0;
  for (index_t ranks = 1; ranks <= 1024 && ranks <= coils * nz; ranks *= 2) {
    const index_t at_coils = std::min(ranks, coils), at_z = ranks / at_coils;
    const Team team =
        Team::pretend({{"coil", static_cast<int>(at_coils)}, {"z", static_cast<int>(at_z)}}, 0);
    const Placement placement{{"C", "coil"}, {"Nz", "z"}};
    const NamedLinop N = distribute(A, team, placement).N();
    const TensorType x = part_of({DType::complex64, {nz, n, n}, {}}, A.ishape(), team, placement);
    const SolvePlan solve = plan_conjugate_gradients(N, x, {.max_iterations = 10});
    const Traffic traffic = traffic_of(solve.step);
    const double work = flops(coils, nz, n, at_coils, at_z);
    const double compute = work / machine.flops_per_s;
    const double send = static_cast<double>(traffic.messages) * machine.latency_s +
                        static_cast<double>(traffic.bytes) / machine.bytes_per_s;
    if (ranks == 1) alone = compute;
    std::printf(
        "%6lld %5lld x %-3lld %8.1f %10.1f %14lld %14lld %9lld %5lld %10.3f %8.3f %5.0f%%\n",
        static_cast<long long>(ranks), static_cast<long long>(at_coils),
        static_cast<long long>(at_z), 1e-6 * static_cast<double>(solve.peak_bytes), 1e-6 * work,
        static_cast<long long>(traffic.bytes),
        static_cast<long long>(formula(coils, nz, n, at_coils, at_z)),
        static_cast<long long>(traffic.messages), static_cast<long long>(traffic.synchronisations),
        1e3 * compute, 1e3 * send, 100 * alone / (static_cast<double>(ranks) * (compute + send)));
  }
}

// -- clocks ------------------------------------------------------------------------------------

double seconds_of(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void clocks() {
  const index_t coils = 8, n = 512;
  const Team team = Team::world();
  const Tensor maps = Tensor::random_normal({coils, n, n}, DType::complex64, RandomKey(1));
  const Tensor mask = Tensor::random_uniform({n, n}, DType::float32, RandomKey(2));
  const NamedLinop A = Chain(Dense(maps, "C Ny Nx, Ny Nx -> C Ny Nx"),
                             Fft(2, {.batch = "C", .grid = Grid{"Ny Nx", "Ky Kx"}}),
                             Diagonal(mask, "C Ky Kx", {.weight_shape = Dims("Ky Kx")}));
  const NamedLinop N = A.N(), of_team = distribute(A, team, {{"C", "rank"}}).N();
  const Tensor image = Tensor::random_normal({n, n}, DType::complex64, RandomKey(3));
  Tensor result = of_team(image).contiguous();
  std::vector<double> together, ratios;
  for (int round = 0; round < 41; ++round) {
    together.push_back(seconds_of([&] { of_team.apply(image, result); }));
    if (team.size() > 1) continue;
    ratios.push_back(together.back() / seconds_of([&] { N.apply(image, result); }));
  }
  if (team.rank() != 0) return;
  std::printf("%lld x %lld, %lld coils on %d ranks: %.2f ms", static_cast<long long>(n),
              static_cast<long long>(n), static_cast<long long>(coils), team.size(),
              1e3 * median(together));
  if (!ratios.empty())
    std::printf(", %.3f of the operator that is not distributed", median(ratios));
  std::printf("\n");
}

}  // namespace
}  // namespace palimpsest

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "clock") == 0) {
    palimpsest::clocks();
    return 0;
  }
  palimpsest::Machine machine;
  if (argc > 3) {
    machine = {1e-6 * std::atof(argv[1]), 1e9 * std::atof(argv[2]), 1e9 * std::atof(argv[3])};
  }
  std::printf(
      "per rank and iteration of conjugate gradients; model: %.1f us, %.1f GB/s, %.1f GFlop/s\n",
      1e6 * machine.latency_s, 1e-9 * machine.bytes_per_s, 1e-9 * machine.flops_per_s);
  palimpsest::table(32, 256, 256, machine);
  palimpsest::table(8, 32, 128, machine);
}
