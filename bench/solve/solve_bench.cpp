// SPDX-License-Identifier: Apache-2.0
// Solvers compared with their operators alone, and the speed of their convergence.
//
//   bench_solve                        iterations of CG, FISTA and Condat-Vu by turns with the
//                                      operators that they apply, alone: medians of the ratios,
//                                      of wall clocks and of processor time, which other programs
//                                      disturb less
//   bench_solve kspace.npy maps.npy [scale] [iterations]
//                                      distances between iterates of a parallel reconstruction:
//                                      measured k-space (coils, Ky, Kx), 0 where nothing was
//                                      measured, maps of the same shape, the brightness by which
//                                      data are divided, and the iterations to the optimum. Where
//                                      maps are 0 no data say what the image is, and total
//                                      variation fills it in slowly: distances are taken where they
//                                      are not, and everywhere
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/compile/tensor_math.hpp"
#include "palimpsest/io/npy.hpp"
#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/linop/transforms/fft.hpp"
#include "palimpsest/linop/transforms/finite_difference.hpp"
#include "palimpsest/linop/transforms/sampling.hpp"
#include "palimpsest/linop/transforms/wavelet.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/solve/conjugate_gradients.hpp"
#include "palimpsest/solve/gradient_methods.hpp"
#include "palimpsest/solve/objective.hpp"
#include "palimpsest/solve/prox/total_variation.hpp"
#include "palimpsest/solve/prox/wavelets.hpp"

namespace palimpsest {
namespace {

struct Clocks {
  double wall = 0, processor = 0;  // in seconds; processor: of all threads
};

Clocks now() {
  const auto wall = std::chrono::steady_clock::now().time_since_epoch();
  return {std::chrono::duration<double>(wall).count(),
          static_cast<double>(std::clock()) / CLOCKS_PER_SEC};
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Maps, Fourier transform of each coil, and sampling of the measured points.
NamedLinop parallel_imaging(const Tensor& maps, const Tensor& mask) {
  return Chain(Dense(maps, "CNyNx,NyNx->CNyNx"),
               Fft(2, {.batch = "C", .grid = Grid{"Ny Nx", "Ky Kx"}, .centered = true}),
               SamplingFromMask(mask, {.input = Dims("Ky Kx"), .batch = "C"}));
}

// -- an iteration against its operators --------------------------------------------------------

// An operator with memory for its input and its output.
struct Applied {
  NamedLinop A;
  Tensor x, y;
  Applied(const NamedLinop& op, const Tensor& input) : A(op), x(input), y(op(input)) {}
};

void compare(const char* name, std::vector<Applied> operators,
             const std::function<void(const std::function<bool(const SolveInfo&)>&)>& solve) {
  std::vector<double> iterations, alone, ratios, of_processor;
  Clocks since;
  solve([&](const SolveInfo&) {
    const Clocks begin = now();
    for (Applied& op : operators) op.A.apply(op.x, op.y);
    const Clocks end = now();
    if (since.wall > 0) {
      iterations.push_back(begin.wall - since.wall);
      alone.push_back(end.wall - begin.wall);
      ratios.push_back(iterations.back() / alone.back());
      of_processor.push_back((begin.processor - since.processor) /
                             (end.processor - begin.processor));
    }
    since = now();
    return true;
  });
  std::printf(
      "%-28s iteration %7.2f ms   operators %7.2f ms   ratio %.3f   of processor time %.3f\n", name,
      1e3 * median(iterations), 1e3 * median(alone), median(ratios), median(of_processor));
}

void iterations_against_operators() {
  const index_t n = 1024, coils = 4;
  const Tensor maps = Tensor::random_normal({coils, n, n}, DType::complex64, {1}) * 0.35F;
  const Tensor mask = Tensor::random_uniform({n, n}, DType::float32, {2}) < 0.3;
  const NamedLinop A = parallel_imaging(maps, mask);
  const Tensor image = Tensor::random_normal({n, n}, DType::complex64, {3});
  const Tensor b = A(image), adjoint = A.H()(b);
  const NamedLinop W = Wavelet("Ny Nx", "Ny Nx", {}), K = Gradient("Ny Nx", "Ny Nx", {});
  const double L = 8;
  const int rounds = 31;
  std::printf("%lld x %lld, %lld coils, complex64\n", static_cast<long long>(n),
              static_cast<long long>(n), static_cast<long long>(coils));
  compare("conjugate_gradients", {{A.N(), image}}, [&](const auto& callback) {
    const NamedLinop normal = A.N() + 0.1 * Identity("Ny Nx");
    conjugate_gradients(normal, adjoint,
                        {.tolerance = 0, .max_iterations = rounds, .callback = callback});
  });
  compare("fista, wavelets", {{A.N(), image}, {W, image}, {W.H(), W(image)}},
          [&](const auto& callback) {
            fista(A, L1Wavelet(0.01, "Ny Nx"), b,
                  {.tolerance = 0, .max_iterations = rounds, .L = L, .callback = callback});
          });
  compare("condat_vu, total variation", {{A.N(), image}, {K, image}, {K.H(), K(image)}},
          [&](const auto& callback) {
            minimize({.A = A, .terms = {tv_term(0.01, "Ny Nx")}}, b,
                     {.method = Method::condat_vu,
                      .tolerance = 0,
                      .max_iterations = rounds,
                      .L = L,
                      .callback = callback});
          });
}

// -- convergence on measured data --------------------------------------------------------------

double distance(const Tensor& a, const Tensor& b) {
  return norm(a - b).item<double>() / norm(b).item<double>();
}

// The mask of measured points, maps of unit norm, and the data divided by the scale. A scale of 0
// makes the largest value of A^H b 1.
void convergence(const std::string& kspace_path, const std::string& maps_path, double scale,
                 int most) {
  const Tensor kspace = read_npy(kspace_path);
  const Tensor raw_maps = read_npy(maps_path).reshape(kspace.shape());  // one set
  const Variable k = constant(kspace), m = constant(raw_maps);
  const Tensor mask = function({}, ops::any(ops::ne(k, 0.0), {.axes = Axes{0}}))();
  const Variable size = ops::sqrt(ops::sum(ops::abs2(m), {.axes = Axes{0}, .keepdims = true}));
  const Tensor maps = function({}, ops::where(size > 1e-6, m / ops::maximum(size, 1e-6), 0.0))();
  const NamedLinop A = parallel_imaging(maps, mask);
  const NamedLinop sampling = SamplingFromMask(mask, {.input = Dims("Ky Kx"), .batch = "C"});
  Tensor b = sampling(kspace);
  if (scale == 0) scale = function({}, ops::max(ops::abs(constant(A.H()(b)))))().item<double>();
  b = b * (1 / scale);
  const Tensor inside = function({}, ops::gt(size, 1e-6))();
  const Tensor support = inside.reshape({maps.shape()[1], maps.shape()[2]});

  const auto tv = [&](int iterations) {
    return minimize({.A = A, .terms = {tv_term(0.01, "Ny Nx")}}, b,
                    {.method = Method::condat_vu, .tolerance = 0, .max_iterations = iterations})
        .x;
  };
  const auto wavelets = [&](int iterations) {
    return fista(A, L1Wavelet(0.01, "Ny Nx"), b, {.tolerance = 0, .max_iterations = iterations}).x;
  };
  const auto cg = [&](int iterations) {
    const NamedLinop normal = A.N() + 0.01 * Identity("Ny Nx");
    return conjugate_gradients(normal, A.H()(b), {.tolerance = 0, .max_iterations = iterations}).x;
  };
  std::printf(
      "scale %.6f, maps are 0 at %.1f %% of the points\n", scale,
      100 - 100 * function({}, ops::mean(constant(support.to(DType::float64))))().item<double>());
  const Tensor optimum = tv(most);
  std::printf("condat_vu, total variation: distance from %d iterations\n", most);
  for (const int n : {30, 100, 300, 1000}) {
    const Tensor x = tv(n);
    std::printf("  %5d  %.2e  in the support %.2e\n", n, distance(x, optimum),
                distance(x * support.to(x.dtype()), optimum * support.to(x.dtype())));
  }
  std::printf("fista, db2 wavelets: 100 and 300 iterations %.2e\n",
              distance(wavelets(100), wavelets(300)));
  std::printf("conjugate gradients: 30 and 100 iterations %.2e\n", distance(cg(30), cg(100)));
}

}  // namespace
}  // namespace palimpsest

int main(int argc, char** argv) {
  if (argc >= 3) {
    palimpsest::convergence(argv[1], argv[2], argc > 3 ? std::atof(argv[3]) : 0,
                            argc > 4 ? std::atoi(argv[4]) : 20000);
  } else {
    palimpsest::iterations_against_operators();
  }
}
