// SPDX-License-Identifier: Apache-2.0

#include "palimpsest/compile/tensor_math.hpp"
#include "palimpsest/kernels/matrices/lapack.hpp"
#include "palimpsest/linop/core/total.hpp"
#include "palimpsest/solve/frame/prelude.hpp"
#include "palimpsest/solve/spectrum.hpp"

namespace palimpsest {
namespace {

Problem lanczos_problem(const NamedLinop& A, const TensorType& x) { return Problem(x).set("A", A); }

// The number of eigenvalues below `at`: negative pivots of the factorization of T - at I.
std::size_t count_below(const std::vector<double>& diagonal, const std::vector<double>& below,
                        double at) {
  std::size_t count = 0;
  double pivot = 1;
  for (std::size_t i = 0; i < diagonal.size(); ++i) {
    const double coupling = i == 0 ? 0 : below[i - 1] * below[i - 1];
    pivot = diagonal[i] - at - coupling / pivot;
    if (pivot == 0) pivot = std::numeric_limits<double>::min();
    if (pivot < 0) ++count;
  }
  return count;
}

double end_of(const std::vector<double>& values, SpectrumEnd which) {
  return which == SpectrumEnd::largest ? values.back() : values.front();
}

}  // namespace

std::vector<double> tridiagonal_eigenvalues(const std::vector<double>& diagonal,
                                            const std::vector<double>& below) {
  double radius = 0;
  for (std::size_t i = 0; i < diagonal.size(); ++i) {
    const double left = i == 0 ? 0 : std::abs(below[i - 1]);
    const double right = i + 1 == diagonal.size() ? 0 : std::abs(below[i]);
    radius = std::max(radius, std::abs(diagonal[i]) + left + right);
  }
  std::vector<double> values;
  for (std::size_t k = 0; k < diagonal.size(); ++k) {
    double low = -radius, high = radius;
    for (int round = 0; round < 200 && low < high; ++round) {
      const double middle = low + (high - low) / 2;
      if (middle <= low || middle >= high) break;
      (count_below(diagonal, below, middle) > k ? high : low) = middle;
    }
    values.push_back(high);
  }
  return values;
}

namespace {

// The Ritz vectors of the tridiagonal matrix, given the basis (steps, x..).
Tensor ritz_vectors(const Tensor& basis, const std::vector<double>& diagonal,
                    const std::vector<double>& below) {
  const std::size_t n = diagonal.size();
  std::vector<double> T(n * n, 0), values(n);
  for (std::size_t i = 0; i < n; ++i) {
    T[i * n + i] = diagonal[i];
    if (i + 1 < n) T[i * n + i + 1] = T[(i + 1) * n + i] = below[i];
  }
  const std::size_t bytes = hermitian_eigen_work<double>(static_cast<index_t>(n));
  std::vector<double> work(bytes / sizeof(double) + 1);
  hermitian_eigen(static_cast<index_t>(n), T.data(), values.data(),
                  std::as_writable_bytes(std::span(work)));
  const auto rows = static_cast<index_t>(n), columns = basis.numel() / rows;
  const Tensor S = Tensor::from<double>(T).reshape({rows, rows}).to(basis.dtype());
  return matmul(S, basis.reshape({rows, columns})).reshape(basis.shape());
}

}  // namespace

LanczosResult lanczos(const NamedLinop& A, const TensorType& x, const LanczosOptions& options) {
  const auto expect = [](bool holds, const std::string& what, double got, const char* expected) {
    if (holds) return;
    throw ValueError("[lanczos] " + what + ": got " + Attribute(got).str() + ", expected " +
                     expected);
  };
  expect(options.steps > 0, "steps", options.steps, "at least 1");
  expect(options.tolerance >= 0, "tolerance", options.tolerance, "at least 0");
  Solver solver(*find_solver("lanczos"), lanczos_problem(A, x),
                {.max_iterations = options.steps, .history = false});
  solver.start(random_part(A, VectorSide::input, x, {options.seed, 77}));
  Tensor basis;
  if (options.vectors) {
    Extents extents{options.steps};
    for (const index_t n : x.shape) extents.push_back(n);
    basis = Tensor::empty(extents, x.dtype, x.device, "Lanczos basis");
  }
  const double rounding = rounding_of(x.dtype);
  std::vector<double> diagonal, below;
  LanczosResult result;
  bool goes_on = true;
  while (goes_on) {
    if (options.vectors) {
      const Tensor v = solver.x();
      const double length = norm(v).to(DType::float64).item<double>();
      basis(static_cast<index_t>(result.steps)).copy_from(v * (1 / length));
    }
    goes_on = solver.step();
    const double alpha = solver.last().numbers[0], beta = solver.last().numbers[1];
    result.steps = solver.last().iteration;
    if (!goes_on && solver.finish().status == Status::diverged) {
      throw ValueError("[lanczos] A: in step " + std::to_string(result.steps) + " " + A.str() +
                       " gave numbers that are not finite, or too large for " +
                       std::string(name_of(x.dtype)));
    }
    diagonal.push_back(alpha);
    const double before = result.values.empty() ? 0 : end_of(result.values, options.which);
    result.values = tridiagonal_eigenvalues(diagonal, below);
    const double value = end_of(result.values, options.which);
    const double scale = std::max(std::abs(result.values.front()), std::abs(result.values.back()));
    if (result.steps > 1 && std::abs(value - before) <= options.tolerance * std::abs(value)) break;
    if (beta <= 10 * rounding * scale) break;  // an invariant subspace
    below.push_back(beta);
  }
  if (goes_on) solver.finish();
  if (options.vectors && result.steps > 0) {
    const Tensor used = basis.narrow(0, 0, result.steps);
    result.vectors = ritz_vectors(used, diagonal, below);
  }
  return result;
}

index_t lanczos_bytes(const NamedLinop& A, const TensorType& x) {
  const SolvePlan plan =
      plan_solve(*find_solver("lanczos"), lanczos_problem(A, x), {.history = false});
  // While the state is made, the start is a tensor of its own beside it.
  const index_t start = byte_count(x.shape, x.dtype) + plan.setup_bytes;
  return plan.state_bytes + std::max(start, plan.step_bytes);
}

}  // namespace palimpsest
