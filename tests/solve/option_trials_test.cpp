// SPDX-License-Identifier: Apache-2.0
// Every option of every solver, on random small problems, against the solve without it: the same
// solution, or a status that says why not. The fields of the options are read from the headers, so
// that an option without a trial fails.
#include <gtest/gtest.h>

#include <array>
#include <concepts>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "io/files.hpp"
#include "options.inc"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/diagonal.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/solve/conjugate_gradients.hpp"
#include "palimpsest/solve/gradient_methods.hpp"
#include "palimpsest/solve/least_squares.hpp"
#include "palimpsest/solve/objective.hpp"
#include "palimpsest/solve/preconditioner.hpp"
#include "palimpsest/solve/prox/norms.hpp"
#include "palimpsest/solve/spectrum.hpp"
#include "palimpsest/solve/square_systems.hpp"
#include "support/difference.hpp"
#include "support/long_run.hpp"

namespace palimpsest {
namespace {

using testing::difference;

#define PALIMPSEST_FIELD_NAMES(Name)      \
  template <class V>                      \
  void visit_fields(V v, const Name& o) { \
    PALIMPSEST_FIELDS_##Name(v, o);       \
  }
PALIMPSEST_FIELD_NAMES(CgOptions)
PALIMPSEST_FIELD_NAMES(CglsOptions)
PALIMPSEST_FIELD_NAMES(LeastSquaresOptions)
PALIMPSEST_FIELD_NAMES(MinresOptions)
PALIMPSEST_FIELD_NAMES(GmresOptions)
PALIMPSEST_FIELD_NAMES(BicgstabOptions)
PALIMPSEST_FIELD_NAMES(ChebyshevOptions)
PALIMPSEST_FIELD_NAMES(IstaOptions)
PALIMPSEST_FIELD_NAMES(FistaOptions)
PALIMPSEST_FIELD_NAMES(PogmOptions)
PALIMPSEST_FIELD_NAMES(MinimizeOptions)
PALIMPSEST_FIELD_NAMES(AdmmOptions)
PALIMPSEST_FIELD_NAMES(PdhgOptions)
PALIMPSEST_FIELD_NAMES(PowerOptions)
PALIMPSEST_FIELD_NAMES(SvdOptions)
PALIMPSEST_FIELD_NAMES(LanczosOptions)
PALIMPSEST_FIELD_NAMES(PolynomialOptions)

// Outcome of a solve, whatever its result type: an array that options must not change.
struct Outcome {
  Tensor x;
  Status status = Status::converged;
};

enum class Expect : std::uint8_t {
  same,    // the same array
  honest,  // the same, or a status other than converged
  loose,   // close: a coarser test ended it
};
// A random problem: S independent systems of N unknowns.
struct Case {
  std::uint64_t seed;
  DType dtype;

  Tensor random(Extents shape, std::uint64_t stream) const {
    return Tensor::random_normal(std::move(shape), dtype, {seed, stream});
  }
  NamedLinop tall = Dense(random({2, 9, 6}, 1), "S M N,S N->S M");
  NamedLinop square = tall.N() + 0.5 * Identity("S N");
  NamedLinop differences = Dense(random({4, 6}, 2), "Q N,S N->S Q");
  Tensor b = random({2, 6}, 3), y = random({2, 9}, 4), x0 = random({2, 6}, 5);
  NamedLinop M = Diagonal(Tensor::linspace(0.1, 0.3, 12, real_of(dtype)).reshape({2, 6}), "S N");
  double largest = 1.1 * operator_norm2(tall, {dtype, {2, 6}, {}}).value;
  Objective smooth_and_terms() const {
    return {.A = tall, .terms = {{.g = L2(0.3, {.over = Dims("Q")}), .K = differences}}};
  }
  Objective with_strong_h() const {
    Objective f = smooth_and_terms();
    f.h = SquaredL2(0.4);
    return f;
  }
};

std::string checkpoint_path() {
  static const testing::TemporaryDirectory folder;
  return folder / "checkpoint";
}

bool goes_on(const SolveInfo&) { return true; }
bool ends_early(const SolveInfo& info) { return info.iteration() < 2; }

CancelToken cancelled_token() {
  CancelToken token;
  token.cancel();
  return token;
}

CheckpointOptions each_iteration() { return {.path = checkpoint_path(), .every_iterations = 1}; }

// Sets an option to the value of its trial k; nothing: it has no such trial.
template <class O>
std::optional<Expect> change(O& o, const std::string& option, int k, const Case& c) {
  constexpr Expect same = Expect::same, honest = Expect::honest, loose = Expect::loose;
#define PALIMPSEST_TRY(field, value, expected)   \
  if constexpr (requires { o.field = value; }) { \
    if (option == #field && k-- == 0) {          \
      o.field = value;                           \
      return expected;                           \
    }                                            \
  }
  PALIMPSEST_TRY(tolerance, 1e-12, same)
  PALIMPSEST_TRY(tolerance, 1e-3, loose)
  PALIMPSEST_TRY(tolerance, 0, same)
  PALIMPSEST_TRY(max_iterations, 3, honest)
  PALIMPSEST_TRY(max_iterations, 0, honest)
  PALIMPSEST_TRY(progress_tolerance, 1e-13, loose)
  PALIMPSEST_TRY(callback, &goes_on, same)
  PALIMPSEST_TRY(callback, &ends_early, honest)
  PALIMPSEST_TRY(history, false, same)
  PALIMPSEST_TRY(budget_bytes, std::numeric_limits<index_t>::max(), same)
  PALIMPSEST_TRY(budget_bytes, index_t{1} << 24, same)
  PALIMPSEST_TRY(callback_every, 3, same)
  PALIMPSEST_TRY(time_limit_s, 1e-9, honest)
  PALIMPSEST_TRY(time_limit_s, 1e9, same)
  PALIMPSEST_TRY(batch, Dims("S"), same)
  PALIMPSEST_TRY(cancel, CancelToken(), same)
  PALIMPSEST_TRY(cancel, cancelled_token(), honest)
  PALIMPSEST_TRY(seed, 7, same)
  PALIMPSEST_TRY(objective, RecordObjective::always, same)
  PALIMPSEST_TRY(objective, RecordObjective::never, same)
  PALIMPSEST_TRY(x0, c.x0, same)
  PALIMPSEST_TRY(M, c.M, same)
  PALIMPSEST_TRY(L, 2 * c.largest, same)
  PALIMPSEST_TRY(residual, false, same)
  PALIMPSEST_TRY(atol, 1e-13, same)
  PALIMPSEST_TRY(btol, 1e-13, same)
  PALIMPSEST_TRY(atol, 1e-3, loose)
  PALIMPSEST_TRY(btol, 0, same)
  PALIMPSEST_TRY(conlim, 0, same)
  PALIMPSEST_TRY(monotone, true, same)
  PALIMPSEST_TRY(backtrack, true, same)
  PALIMPSEST_TRY(average, 3, same)
  PALIMPSEST_TRY(balance, 0.1, same)
  PALIMPSEST_TRY(balance, 30, same)
  PALIMPSEST_TRY(rho, 3.0, same)
  PALIMPSEST_TRY(relaxation, 1.0, same)
  PALIMPSEST_TRY(inner, 3, same)
  PALIMPSEST_TRY(inner_tolerance, 0.01, same)
  PALIMPSEST_TRY(adapt, true, same)
  PALIMPSEST_TRY(ratio, 0.1, same)
  PALIMPSEST_TRY(ratio, 10, same)
  PALIMPSEST_TRY(strong, 0.4, loose)
  PALIMPSEST_TRY(method, Method::condat_vu, same)
  PALIMPSEST_TRY(method, Method::admm, same)
  PALIMPSEST_TRY(steps, 12, same)
  PALIMPSEST_TRY(which, SpectrumEnd::largest, same)
  PALIMPSEST_TRY(dense_side, index_t{0}, same)
  PALIMPSEST_TRY(dtype, c.dtype, same)
  PALIMPSEST_TRY(norm, PolynomialNorm::l2, same)
  PALIMPSEST_TRY(lower, 0.4, same)
  PALIMPSEST_TRY(upper, c.largest + 1, same)
  PALIMPSEST_TRY(checkpoint, each_iteration(), same)
#undef PALIMPSEST_TRY
  if constexpr (requires { o.resume; }) {  // of the run that was just checked
    if (option == "resume" && k-- == 0) {
      o.resume = checkpoint_path();
      return same;
    }
  }
  if constexpr (requires { o.refresh; }) {  // beyond the last digit, too
    constexpr std::array kRefreshes = {1, 2, 3, 5, 10};
    if (option == "refresh" && k < static_cast<int>(kRefreshes.size())) {
      o.refresh = kRefreshes[static_cast<std::size_t>(k)];
      o.tolerance = 0;
      o.max_iterations = 200;
      return same;
    }
  }
  if constexpr (requires { o.restart; }) {
    if (option == "restart" && k-- == 0) {
      if constexpr (std::same_as<decltype(o.restart), bool>) o.restart = false;
      if constexpr (std::same_as<decltype(o.restart), int>) o.restart = 5;
      return same;
    }
  }
  if constexpr (requires { o.vectors; }) {
    if (option == "vectors" && k-- == 0) {
      if constexpr (std::same_as<decltype(o.vectors), bool>) o.vectors = true;
      if constexpr (std::same_as<decltype(o.vectors), index_t>) o.vectors = 8;
      return same;
    }
  }
  return {};
}

// The solvers below; that of matrices with a small side is tried by svd().
const std::set<std::string> kTried = {"conjugate_gradients",
                                      "minres",
                                      "gmres",
                                      "bicgstab",
                                      "chebyshev",
                                      "cg_normal",
                                      "cgls",
                                      "lsqr",
                                      "lsmr",
                                      "gradient_descent",
                                      "nesterov",
                                      "ista",
                                      "fista",
                                      "pogm",
                                      "condat_vu",
                                      "admm",
                                      "pdhg",
                                      "power_method",
                                      "svd",
                                      "dense_svd",
                                      "lanczos",
                                      "polynomial_preconditioner"};

// Tries all options of a solver; `plain` has the ones without which it cannot be called.
template <class O>
void try_options(const std::string& name, const Case& c, const O& plain,
                 const std::function<Outcome(const O&)>& solve,
                 const std::set<std::string>& without = {}) {
  EXPECT_TRUE(kTried.contains(name)) << name;
  const Outcome expected = solve(plain);
  const auto check = [&](const std::string& what, const O& options, Expect of) {
    const Outcome got = solve(options);
    const std::string text = name + " " + what + " of seed " + std::to_string(c.seed) + " " +
                             std::string(name_of(c.dtype)) + ": " +
                             std::string(name_of(got.status));
    EXPECT_NE(got.status, Status::diverged) << text;
    if (of == Expect::honest && got.status != Status::converged) return;
    EXPECT_LT(difference(got.x, expected.x), of == Expect::loose ? 0.1 : 2e-6) << text;
  };
  visit_fields(
      [&](const std::string& option, const auto&) {
        if (without.contains(option)) return;
        for (int k = 0;; ++k) {
          O options = plain;
          const auto expected_of = change(options, option, k, c);
          if (!expected_of) {
            EXPECT_GT(k, 0) << name << " has the option " << option << " without a trial";
            return;
          }
          check(option + " " + std::to_string(k), options, *expected_of);
        }
      },
      plain);
}

template <class O, class Solve>
auto outcome_of(Solve solve) {
  return std::function<Outcome(const O&)>([solve](const O& o) {
    SolveResult r = solve(o);
    return Outcome{std::move(r.x), r.status};
  });
}

class OptionTrials : public ::testing::TestWithParam<DType> {
 protected:
  // Tries one of two problems for each dtype; both in a long run.
  template <class Check>
  static void for_cases(Check check) {
    for (const std::uint64_t seed : {1, 2}) {
      if (testing::length_factor() == 1 && (seed == 2) != is_complex(GetParam())) continue;
      check(Case{.seed = seed, .dtype = GetParam()});
    }
  }
};

constexpr double kTight = 1e-11;
constexpr int kMost = 20000;

TEST_P(OptionTrials, OfSquareSystems) {
  for_cases([](const Case& c) {
    const auto linear = [&]<class O>(
                            const char* name, const O& plain,
                            SolveResult (*solve)(const NamedLinop&, const Tensor&, const O&)) {
      try_options<O>(name, c, plain,
                     outcome_of<O>([&](const O& o) { return solve(c.square, c.b, o); }));
    };
    linear("conjugate_gradients", CgOptions{.tolerance = kTight}, &conjugate_gradients);
    linear("minres", MinresOptions{.tolerance = kTight}, &minres);
    linear("gmres", GmresOptions{.tolerance = kTight, .max_iterations = 2000}, &gmres);
    linear("bicgstab", BicgstabOptions{.tolerance = kTight}, &bicgstab);
    linear("chebyshev",
           ChebyshevOptions{.lower = 0.5, .upper = c.largest + 0.5, .max_iterations = 1000},
           &chebyshev);
  });
}

TEST_P(OptionTrials, OfLeastSquares) {
  for_cases([](const Case& c) {
    const auto solved = [&]<class O>(const std::string& name, const O& plain, auto solve,
                                     const std::set<std::string>& without = {}) {
      try_options<O>(name, c, plain,
                     outcome_of<O>([&, solve](const O& o) { return solve(c.tall, c.y, o); }),
                     without);
    };
    solved("cg_normal", CgOptions{.tolerance = kTight}, &cg_normal);
    // Damped solutions are others.
    solved("cgls", CglsOptions{.tolerance = kTight}, &cgls, {"damp"});
    const LeastSquaresOptions exact{.atol = kTight, .btol = kTight};
    solved("lsqr", exact, &lsqr, {"damp"});
    solved("lsmr", exact, &lsmr, {"damp"});
    solved("gradient_descent", IstaOptions{.tolerance = kTight, .max_iterations = kMost},
           &gradient_descent);
    solved("nesterov", FistaOptions{.tolerance = kTight, .max_iterations = kMost}, &nesterov);
    const Tensor damped = cgls(c.tall, c.y, {.damp = 0.7, .tolerance = kTight}).x;
    const LeastSquaresOptions with_damp{.damp = 0.7, .atol = kTight, .btol = kTight};
    EXPECT_LT(difference(lsqr(c.tall, c.y, with_damp).x, damped), 1e-8);
    EXPECT_LT(difference(lsmr(c.tall, c.y, with_damp).x, damped), 1e-8);
  });
}

TEST_P(OptionTrials, OfProximalMethods) {
  for_cases([](const Case& c) {
    const Prox h = L1(0.3);
    const auto solved = [&]<class O>(const char* name, const O& plain,
                                     SolveResult (*solve)(const NamedLinop&, const Prox&,
                                                          const Tensor&, const O&)) {
      try_options<O>(name, c, plain,
                     outcome_of<O>([&](const O& o) { return solve(c.tall, h, c.y, o); }));
    };
    solved("ista", IstaOptions{.tolerance = kTight, .max_iterations = kMost}, &ista);
    solved("fista", FistaOptions{.tolerance = kTight, .max_iterations = kMost}, &fista);
    solved("pogm", PogmOptions{.tolerance = kTight, .max_iterations = kMost}, &pogm);
  });
}

TEST_P(OptionTrials, OfMethodsForTerms) {
  for_cases([](const Case& c) {
    const Objective f = c.smooth_and_terms(), strong = c.with_strong_h();
    const MinimizeOptions plain{.tolerance = 1e-10, .max_iterations = kMost};
    try_options<MinimizeOptions>(
        "condat_vu", c, plain,
        outcome_of<MinimizeOptions>([&](const MinimizeOptions& o) { return minimize(f, c.y, o); }));
    try_options<AdmmOptions>(
        "admm", c, {.tolerance = 1e-9, .max_iterations = kMost},
        outcome_of<AdmmOptions>([&](const AdmmOptions& o) { return admm(f, c.y, o); }));
    try_options<PdhgOptions>("pdhg", c, {.tolerance = 1e-10, .max_iterations = kMost},
                             outcome_of<PdhgOptions>([&](const PdhgOptions& o) {
                               return pdhg(SquaredL2(1.0), strong, c.y, o);
                             }));
  });
}

// The numbers of the spectrum; vectors may change their signs.
TEST_P(OptionTrials, OfSpectra) {
  for_cases([](const Case& c) {
    const auto number = [](double value) { return Tensor::full<double>({1}, value); };
    try_options<PowerOptions>("power_method", c, {.tolerance = 1e-13, .max_iterations = kMost},
                              [&](const PowerOptions& o) {
                                const PowerResult r = power_method(c.square, o);
                                return Outcome{number(r.eigenvalue), r.status};
                              });
    const auto singular = [&](const SvdOptions& o) {
      const SvdResult r = svd(c.tall, 2, o);
      // Of a batch: all of them, in one list.
      auto values = r.S.to(DType::float64).contiguous().to_vector<double>();
      std::sort(values.rbegin(), values.rend());
      return Outcome{Tensor::from<double>({values[0]}), r.status};
    };
    try_options<SvdOptions>("svd", c, {.tolerance = 1e-12}, singular);
    try_options<LanczosOptions>("lanczos", c, {.steps = 12, .tolerance = 0},
                                [&](const LanczosOptions& o) {
                                  const auto found = lanczos(c.square, {c.dtype, {2, 6}, {}}, o);
                                  return Outcome{number(found.values.back())};
                                });
    const NamedLinop T = (1 / (c.largest + 0.5)) * c.square;
    const auto preconditioned = [&](const PolynomialOptions& o) {
      const NamedLinop P = polynomial_preconditioner(T, 3, o);
      return Outcome{
          conjugate_gradients(T, c.b, {.M = P, .tolerance = kTight, .max_iterations = kMost}).x};
    };
    try_options<PolynomialOptions>("polynomial_preconditioner", c, {}, preconditioned,
                                   {"lower", "upper"});  // wrong bounds are other problems
  });
}

INSTANTIATE_TEST_SUITE_P(EveryDtype, OptionTrials,
                         ::testing::Values(DType::float64, DType::complex128),
                         [](const auto& c) { return std::string(name_of(c.param)); });

TEST(Solvers, OptionTrialsLeaveOutNone) {
  for (const std::string& name : solver_names()) {
    EXPECT_TRUE(kTried.contains(name)) << name << " is not tried";
  }
}

}  // namespace
}  // namespace palimpsest
