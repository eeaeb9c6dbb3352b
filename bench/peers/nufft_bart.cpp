// SPDX-License-Identifier: Apache-2.0
// Nufft beside `bart nufft` (Debian package bart) on the same trajectory and image, in one run.
//
//   peer_nufft_bart [folder for files, default .] [repetitions, default 3] [clock | processor]
//
// `processor` counts the processor time of all threads, divided by their number: for machines with
// other work.
//
// Units: both take cycles per field of view. BART's first coordinate belongs to its first, fastest
// dimension, which is our last axis. Scale: both are ortho, y = (prod N)^(-1/2) sum ...; the factor
// between the results is printed. Sign: both exp(-2 pi i ..). Accuracy is measured at 200 points
// against the sum in double precision. BART's time is the time of the command minus that of the
// same command with one point, which excludes start-up and files as far as possible. Ours is an
// application after the first; the sort of the points, once per trajectory, is printed beside it.
// "fft" is the share of the transform of the padded grid, measured alone.
#include <sys/resource.h>
#include <tbb/global_control.h>

#include <chrono>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <numbers>
#include <string>
#include <vector>

#include "palimpsest/io/cfl.hpp"
#include "palimpsest/kernels/fft/fft.hpp"
#include "palimpsest/linop/transforms/nufft.hpp"
#include "palimpsest/ops/transforms/nufft_geometry.hpp"

namespace palimpsest {
namespace {

using Complex = std::complex<double>;

constexpr index_t kPoints = 1000000, kChecked = 200;

bool counts_processor_time = false;

double processor_seconds(int who) {
  rusage usage{};
  getrusage(who, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// The time of f on `threads` threads, of this process or of a command that it runs.
double seconds_of(int threads, const auto& f) {
  const auto now = [&] {
    if (counts_processor_time) {
      return (processor_seconds(RUSAGE_SELF) + processor_seconds(RUSAGE_CHILDREN)) / threads;
    }
    const auto clock = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double>(clock).count();
  };
  const double start = now();
  f();
  return now() - start;
}

double best_of(int repetitions, int threads, const auto& f) {
  double best = INFINITY;
  for (int i = 0; i < repetitions; ++i) best = std::min(best, seconds_of(threads, f));
  return best;
}

// The time of the transform of the padded grid that both directions contain.
double fft_seconds(const Extents& padded, int repetitions, int threads) {
  Tensor grid = Tensor::random_normal(padded, DType::complex64, {4});
  FftSpec spec;
  spec.extents = padded;
  spec.in_strides = spec.out_strides = contiguous_strides(padded);
  for (std::size_t d = 0; d < padded.size(); ++d) spec.axes.push_back(static_cast<index_t>(d));
  spec.centered = spec.in_place = true;
  spec.scale = 1 / std::sqrt(static_cast<double>(grid.numel()));
  const FftPlan plan = fft_plan(spec);
  void* data = grid.raw_mutable_data();
  execute(plan, data, data);
  return best_of(repetitions, threads, [&] { execute(plan, data, data); });
}

std::vector<Complex> first_points(const Tensor& y) {
  return y.reshape({y.numel()}).narrow(0, 0, kChecked).to(DType::complex128).to_vector<Complex>();
}

// The sum by definition at the first points.
std::vector<Complex> direct(const Tensor& x, const Tensor& locs) {
  const auto image = x.to(DType::complex128).to_vector<Complex>();
  const auto k = locs.narrow(0, 0, kChecked).to(DType::float64).to_vector<double>();
  const std::size_t ndim = x.rank();
  std::vector<Complex> result;
  for (std::size_t p = 0; p < kChecked; ++p) {
    std::vector<Complex> partial = image;
    for (std::size_t d = ndim; d-- > 0;) {
      const auto n = static_cast<std::size_t>(x.shape()[d]);
      std::vector<Complex> sums(partial.size() / n);
      for (std::size_t i = 0; i < n; ++i) {
        const double cycles = k[p * ndim + d] *
                              (static_cast<double>(i) - static_cast<double>(n / 2)) /
                              static_cast<double>(n);
        const Complex wave = std::polar(1.0, -2 * std::numbers::pi * cycles);
        for (std::size_t j = 0; j < sums.size(); ++j) sums[j] += wave * partial[j * n + i];
      }
      partial = std::move(sums);
    }
    result.push_back(partial[0] / std::sqrt(static_cast<double>(image.size())));
  }
  return result;
}

double error_of(const std::vector<Complex>& y, const std::vector<Complex>& exact) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    difference += std::norm(y[i] - exact[i]);
    norm += std::norm(exact[i]);
  }
  return std::sqrt(difference / norm);
}

// The factor c that minimizes |c y - z|.
Complex factor_between(const std::vector<Complex>& y, const std::vector<Complex>& z) {
  Complex product = 0;
  double norm = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    product += std::conj(y[i]) * z[i];
    norm += std::norm(y[i]);
  }
  return product / norm;
}

void run(const std::string& command, int threads) {
  const std::string line =
      "OMP_WAIT_POLICY=passive OMP_NUM_THREADS=" + std::to_string(threads) + " " + command;
  if (std::system(line.c_str()) == 0) return;
  std::fprintf(stderr, "peer_nufft_bart: failed: %s. Try to install bart\n", line.c_str());
  std::exit(1);
}

// Three coordinates; the one of the last axis comes first.
Tensor trajectory_of_bart(const Tensor& locs) {
  const index_t n = locs.shape(0), ndim = locs.shape(1);
  Tensor result = Tensor::zeros({n, 3}, DType::complex64);
  for (index_t d = 0; d < ndim; ++d) result.select(1, d).copy_from(locs.select(1, ndim - 1 - d));
  return result;
}

void compare(const Extents& image, const std::string& folder, int repetitions) {
  const auto ndim = static_cast<index_t>(image.size());
  Tensor k = Tensor::random_uniform({kPoints, ndim}, DType::float32, {1});
  auto* values = static_cast<float*>(k.raw_mutable_data());
  for (index_t i = 0; i < k.numel(); ++i) {
    values[i] = (values[i] - 0.5F) * static_cast<float>(image[0]);
  }
  const Tensor x = Tensor::random_normal(image, DType::complex64, {2});
  const Tensor y = Tensor::random_normal({kPoints}, DType::complex64, {3});
  const std::string stem = folder + "/peer_nufft_";
  write_cfl(stem + "traj", trajectory_of_bart(k));
  write_cfl(stem + "traj1", trajectory_of_bart(k.narrow(0, 0, 1)));
  write_cfl(stem + "image", x);
  write_cfl(stem + "samples", y.reshape({kPoints, 1}));
  write_cfl(stem + "samples1", y.narrow(0, 0, 1).reshape({1, 1}));
  std::string size;
  for (index_t d = 0; d < 3; ++d) {
    const index_t n = d < ndim ? image[static_cast<std::size_t>(ndim - 1 - d)] : 1;
    size += (d > 0 ? ":" : "") + std::to_string(n);
  }
  std::printf("image %s, %lld points, complex64\n", to_string(image).c_str(),
              static_cast<long long>(kPoints));

  const std::vector<Complex> exact = direct(x, k);
  double bart_seconds[2][2];
  for (const int threads : {1, 2}) {
    for (const bool adjoint : {false, true}) {
      const auto command = [&](const std::string& one) {
        const std::string base = "bart nufft " + (adjoint ? "-a -d " + size + " " : std::string()) +
                                 stem + "traj" + one + " " + stem;
        return base + (adjoint ? "samples" + one : "image") + " " + stem + "out" + one;
      };
      const double all = best_of(repetitions, threads, [&] { run(command(""), threads); });
      const double start = best_of(repetitions, threads, [&] { run(command("1"), threads); });
      bart_seconds[threads - 1][adjoint ? 1 : 0] = all - start;
      if (threads == 1 && !adjoint) {
        const auto of_bart = first_points(read_cfl(stem + "out"));
        std::printf("  bart              error %.1e, factor to the exact sum %.6f %+.1ei\n",
                    error_of(of_bart, exact), factor_between(of_bart, exact).real(),
                    factor_between(of_bart, exact).imag());
      }
      std::printf("  bart     %s  threads %d  %8.1f ms  (%.1f ms with start-up)\n",
                  adjoint ? "adjoint" : "forward", threads, 1e3 * (all - start), 1e3 * all);
    }
  }
  for (const double eps : {1e-3, 1e-6}) {
    NamedLinop A;
    const double sort = seconds_of(1, [&] { A = Nufft(k, image, "K", {.eps = eps}); });
    const Extents padded = NufftGeometry(image, {.eps = eps}, DType::float32, "bench").padded;
    std::printf("  eps %.0e         error %.1e, sort %.1f ms\n", eps,
                error_of(first_points(A(x)), exact), 1e3 * sort);
    for (const int threads : {1, 2}) {
      const tbb::global_control control(tbb::global_control::max_allowed_parallelism,
                                        static_cast<std::size_t>(threads));
      const double fft = fft_seconds(padded, repetitions, threads);
      for (const bool adjoint : {false, true}) {
        const NamedLinop B = adjoint ? A.H() : A;
        const Tensor& in = adjoint ? y : x;
        Tensor out = B(in);
        const double seconds = best_of(repetitions, threads, [&] { B.apply(in, out); });
        std::printf(
            "  eps %.0e %s  threads %d  %8.1f ms  %5.1f points/us  fft %2.0f %%  bart / ours "
            "%.2f\n",
            eps, adjoint ? "adjoint" : "forward", threads, 1e3 * seconds,
            1e-6 * static_cast<double>(kPoints) / seconds, 100 * fft / seconds,
            bart_seconds[threads - 1][adjoint ? 1 : 0] / seconds);
      }
    }
  }
  for (const char* name : {"traj", "traj1", "image", "samples", "samples1", "out", "out1"}) {
    for (const char* ending : {".cfl", ".hdr"}) std::remove((stem + name + ending).c_str());
  }
}

}  // namespace
}  // namespace palimpsest

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : ".";
  const int repetitions = argc > 2 ? std::atoi(argv[2]) : 3;
  palimpsest::counts_processor_time = argc > 3 && std::string(argv[3]) == "processor";
  palimpsest::compare({512, 512}, folder, repetitions);
  palimpsest::compare({128, 128, 128}, folder, repetitions);
}
