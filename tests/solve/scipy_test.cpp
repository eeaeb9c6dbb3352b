// SPDX-License-Identifier: Apache-2.0
// Problems solved by both SciPy and this library: equal solutions, in as many iterations. Skipped
// if SciPy is not installed.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <memory>

#include "io/files.hpp"
#include "palimpsest/io/npy.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/shape_spec.hpp"
#include "palimpsest/solve/conjugate_gradients.hpp"
#include "palimpsest/solve/least_squares.hpp"
#include "palimpsest/solve/spectrum.hpp"
#include "palimpsest/solve/square_systems.hpp"
#include "support/difference.hpp"
#include "support/python.hpp"

namespace palimpsest {
namespace {

using testing::difference;

constexpr int kProblems = 10;
constexpr double kTolerance = 1e-8, kTight = 1e-13;
constexpr index_t kTriplets = 3;

// Counts iterations up to a residual of kTolerance, and solves as well as possible. Solvers without
// a callback count by the same stop tests.
constexpr const char* kProgram = R"(
import inspect
import scipy.sparse as sp
import scipy.sparse.linalg as la

def relative(solver, tolerance):
    name = 'rtol' if 'rtol' in inspect.signature(solver).parameters else 'tol'
    return {name: tolerance}

def by_callback(solver, A, b, **options):
    steps = []
    def note(x):
        steps.append(np.linalg.norm(b - A @ x) / np.linalg.norm(b))
    x, _ = solver(A, b, callback=note, maxiter=2000, **options, **relative(solver, tight))
    return 1 + next(i for i, r in enumerate(steps) if r <= tolerance), x

def gmres(A, b):
    steps = []
    x, _ = la.gmres(A, b, restart=30, maxiter=2000, callback=steps.append,
                    callback_type='pr_norm', **relative(la.gmres, tight))
    return 1 + next(i for i, r in enumerate(steps) if r <= tolerance), x

def least_squares(solver, A, b, limit):
    count = solver(A, b, atol=tolerance, btol=tolerance, conlim=0, **{limit: 2000})[2]
    return count, solver(A, b, atol=tight, btol=tight, conlim=0, **{limit: 2000})[0]

for i in range(problems):
    load = lambda name: np.load(f'{d}{name}{i}.npy')
    definite, indefinite, general, tall = (
        sp.csr_matrix(load(n)) for n in ('definite', 'indefinite', 'general', 'tall'))
    b, y = load('b'), load('y')
    zero = {'atol': 0.0}
    found = {
        'cg': by_callback(la.cg, definite, b, **zero),
        'minres': by_callback(la.minres, indefinite, b),
        'bicgstab': by_callback(la.bicgstab, general, b, **zero),
        'gmres': gmres(general, b),
        'lsqr': least_squares(la.lsqr, tall, y, 'iter_lim'),
        'lsmr': least_squares(la.lsmr, tall, y, 'maxiter'),
    }
    for name, (count, x) in found.items():
        np.save(f'{d}{name}{i}.npy', x)
        np.save(f'{d}{name}_count{i}.npy', np.array([float(count)]))
    u, s, vh = la.svds(tall, k=triplets, v0=np.ones(min(tall.shape)))
    np.save(f'{d}svd_s{i}.npy', s[::-1].copy())
    np.save(f'{d}svd_u{i}.npy', u[:, ::-1].copy())
    np.save(f'{d}svd_vh{i}.npy', vh[::-1].copy())
    value = la.eigsh(definite, k=1, which='LA', v0=np.ones(len(b)), return_eigenvectors=False)
    np.save(f'{d}eigenvalue{i}.npy', value)
)";

class SciPy : public ::testing::Test {
 protected:
  void SetUp() override {
    if (problems_.empty()) GTEST_SKIP() << "SciPy is not installed";
  }
  // All problems go to SciPy once.
  static void SetUpTestSuite() {
    const std::string python = testing::python_with("scipy.sparse.linalg");
    if (python.empty()) return;
    directory_ = std::make_unique<testing::TemporaryDirectory>();
    for (int i = 0; i < kProblems; ++i) problems_.push_back(made(i));
    const auto text = [](auto value) { return std::to_string(value) + "\n"; };
    testing::write_bytes(
        *directory_ / "program.py",
        "import numpy as np\nd = '" + directory_->path() + "/'\nproblems = " + text(kProblems) +
            "tolerance, tight = 1e-8, 1e-13\ntriplets = " + text(kTriplets) + kProgram);
    ASSERT_EQ(std::system((python + " " + (*directory_ / "program.py")).c_str()), 0);
  }
  static void TearDownTestSuite() {
    problems_.clear();
    directory_.reset();
  }

  struct Matrices {
    Tensor definite, indefinite, general, tall, b, y;
  };

  static Tensor random(Extents shape, int problem, std::uint64_t stream) {
    return Tensor::random_normal(std::move(shape), DType::float64,
                                 {1000 + static_cast<std::uint64_t>(problem), stream});
  }

  // Every fifth element is nonzero.
  static std::vector<double> sparse(index_t rows, index_t columns, int problem,
                                    std::uint64_t stream) {
    auto values = random({rows, columns}, problem, stream).to_vector<double>();
    const auto keep = Tensor::random_uniform({rows, columns}, DType::float64,
                                             {static_cast<std::uint64_t>(problem), stream + 50})
                          .to_vector<double>();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] *= keep[i] < 0.2 ? 1 : 0;
    return values;
  }

  static Matrices made(int problem) {
    const index_t n = 20 + 6 * problem, m = n + 10 + problem;
    const auto side = static_cast<std::size_t>(n);
    const std::vector<double> a = sparse(n, n, problem, 1);
    std::vector<double> definite(a.size()), indefinite(a.size()), general = a;
    for (std::size_t i = 0; i < side; ++i) {
      for (std::size_t j = 0; j < side; ++j) {
        double sum = i == j ? 0.5 : 0;
        for (std::size_t l = 0; l < side; ++l) sum += a[l * side + i] * a[l * side + j];
        definite[i * side + j] = sum;
        const double shift = i == j ? (i % 3 == 0 ? -6.0 : 6.0) : 0;
        indefinite[i * side + j] = a[i * side + j] + a[j * side + i] + shift;
      }
      general[i * side + i] += 6;
    }
    Matrices of;
    of.definite = Tensor::from(definite, Extents{n, n});
    of.indefinite = Tensor::from(indefinite, Extents{n, n});
    of.general = Tensor::from(general, Extents{n, n});
    of.tall = Tensor::from(sparse(m, n, problem, 2), Extents{m, n});
    of.b = random({n}, problem, 3);
    of.y = random({m}, problem, 4);
    const std::pair<const char*, Tensor> files[] = {{"definite", of.definite},
                                                    {"indefinite", of.indefinite},
                                                    {"general", of.general},
                                                    {"tall", of.tall},
                                                    {"b", of.b},
                                                    {"y", of.y}};
    for (const auto& [name, t] : files) write_npy(file(name, problem), t);
    return of;
  }

  static std::string file(const std::string& name, int problem) {
    return *directory_ / (name + std::to_string(problem) + ".npy");
  }
  static Tensor theirs(const std::string& name, int problem) {
    return read_npy(file(name, problem));
  }

  static NamedLinop square(const Tensor& t) { return ShapeSpec("M", "N") * Dense(t, "MN,N->M"); }

  // `solve(tolerance)` for every problem.
  template <class Solve>
  void compare(const std::string& name, Solve&& solve) const {
    for (int i = 0; i < kProblems; ++i) {
      const Matrices& of = problems_[static_cast<std::size_t>(i)];
      const SolveResult counted = solve(of, kTolerance), exact = solve(of, kTight);
      const double count = theirs(name + "_count", i).to_vector<double>()[0];
      EXPECT_EQ(counted.status, Status::converged) << name << " " << i;
      EXPECT_LE(std::abs(counted.iterations - count), 1)
          << name << " " << i << ": " << counted.iterations << " and " << count;
      EXPECT_GT(count, 5) << "too easy to tell";
      EXPECT_LE(difference(exact.x, theirs(name, i)), 1e-10) << name << " " << i;
    }
  }

  static inline std::unique_ptr<testing::TemporaryDirectory> directory_;
  static inline std::vector<Matrices> problems_;
};

TEST_F(SciPy, SolvesSquareSystemsAlike) {
  compare("cg", [](const Matrices& of, double tolerance) {
    return conjugate_gradients(square(of.definite), of.b,
                               {.tolerance = tolerance, .max_iterations = 2000});
  });
  compare("minres", [](const Matrices& of, double tolerance) {
    return minres(square(of.indefinite), of.b, {.tolerance = tolerance, .max_iterations = 2000});
  });
  compare("gmres", [](const Matrices& of, double tolerance) {
    return gmres(square(of.general), of.b, {.tolerance = tolerance, .max_iterations = 2000});
  });
  compare("bicgstab", [](const Matrices& of, double tolerance) {
    return bicgstab(square(of.general), of.b, {.tolerance = tolerance, .max_iterations = 2000});
  });
}

TEST_F(SciPy, SolvesLeastSquaresAlike) {
  const auto options = [](double tolerance) {
    return LeastSquaresOptions{
        .atol = tolerance, .btol = tolerance, .conlim = 0, .max_iterations = 2000};
  };
  compare("lsqr", [&](const Matrices& of, double tolerance) {
    return lsqr(Dense(of.tall, "MN,N->M"), of.y, options(tolerance));
  });
  compare("lsmr", [&](const Matrices& of, double tolerance) {
    return lsmr(Dense(of.tall, "MN,N->M"), of.y, options(tolerance));
  });
}

TEST_F(SciPy, FindsTheSameSpectra) {
  for (int i = 0; i < kProblems; ++i) {
    const Matrices& of = problems_[static_cast<std::size_t>(i)];
    const NamedLinop A = Dense(of.tall, "MN,N->M");
    for (const index_t side : {0, 512}) {
      const SvdResult found = svd(A, kTriplets, {.tolerance = 1e-12, .dense_side = side});
      EXPECT_EQ(found.status, Status::converged);
      EXPECT_LE(difference(found.S, theirs("svd_s", i)), 1e-12) << i;
      // A left and a right vector may change sign together.
      const Tensor u = theirs("svd_u", i), vh = theirs("svd_vh", i);
      for (index_t k = 0; k < kTriplets; ++k) {
        const auto dot = [](const Tensor& a, const Tensor& b) {
          const auto x = a.contiguous().to_vector<double>();
          const auto y = b.contiguous().to_vector<double>();
          double sum = 0;
          for (std::size_t j = 0; j < x.size(); ++j) sum += x[j] * y[j];
          return sum;
        };
        const double left = dot(found.U.narrow(1, k, 1), u.narrow(1, k, 1));
        EXPECT_NEAR(std::abs(left), 1, 1e-10) << i << " " << k;
        EXPECT_NEAR(dot(found.Vh.narrow(0, k, 1), vh.narrow(0, k, 1)), left, 1e-10) << i;
      }
    }
    const TensorType x{DType::float64, of.b.shape(), {}};
    const LanczosOptions options{.steps = 60, .tolerance = 0};
    const double value = lanczos(square(of.definite), x, options).values.back();
    EXPECT_NEAR(value, theirs("eigenvalue", i).to_vector<double>()[0], 1e-10 * value) << i;
  }
}

}  // namespace
}  // namespace palimpsest
