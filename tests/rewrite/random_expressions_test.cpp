// SPDX-License-Identifier: Apache-2.0
// Random expressions made of patterns of the passes: exact() keeps every bit for special numbers,
// and FastRun keeps the values of ordinary ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/ops/ops.hpp"
#include "rewrite/rewrite_runner.hpp"
#include "support/long_run.hpp"

namespace palimpsest {
namespace {

using testing::Agreement;

// A random expression over two vectors or matrices and their complex counterparts.
class Expression {
 public:
  /// `has_jumps`: rounding may change a value by much. `broadcasts`: some inputs have extents of 1.
  Expression(unsigned seed, bool is_matrix, bool has_jumps, bool broadcasts = false)
      : random_(seed), is_matrix_(is_matrix), has_jumps_(has_jumps), broadcasts_(broadcasts) {
    const Extents shape = broadcasts  ? Extents{kUnknown, 6}
                          : is_matrix ? Extents{4, 6}
                                      : Extents{kUnknown};
    if (broadcasts) {
      for (const Extents& narrow : {Extents{1, 6}, Extents{kUnknown, 1}, Extents{1, 1}}) {
        real_.push_back(make_input({DType::float64, narrow, {}}, to_string(narrow)));
      }
    }
    for (const DType dtype : {DType::float64, DType::complex128}) {
      std::vector<Variable>& list = is_complex(dtype) ? complex_ : real_;
      for (const char* name : {"a", "b"}) list.push_back(make_input({dtype, shape, {}}, name));
    }
  }

  Variable make() {
    for (int k = 0; k < 14; ++k) {
      if (chance(65)) {
        real_.push_back(next_real());
      } else {
        complex_.push_back(next_complex());
      }
    }
    return chance(70) ? real_.back() : complex_.back();
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  bool chance(int percent) { return pick(100) < percent; }
  // Late values are likelier: they make deep expressions.
  Variable some(const std::vector<Variable>& list) {
    const int n = static_cast<int>(list.size());
    return list[static_cast<std::size_t>(chance(60) ? n - 1 - pick(std::min(n, 3)) : pick(n))];
  }
  double number() {
    constexpr double kNumbers[] = {1, -1, 0.0, -0.0, 2, 0.5, 4, -0.25, 3, 0.1};
    return kNumbers[pick(static_cast<int>(std::size(kNumbers)))];
  }
  // Exponents and divisors that are not 0.
  double exponent() {
    constexpr double kNumbers[] = {1, 2, 3, -1, 0.5, 4};
    return kNumbers[pick(static_cast<int>(std::size(kNumbers)))];
  }

  Variable next_real() {
    const Variable x = some(real_), y = some(real_), z = some(complex_);
    std::vector<Variable> choices{-x,
                                  ops::abs(x),
                                  x + number(),
                                  number() * x,
                                  x - number(),
                                  x / (number() == 0 ? 2.0 : exponent()),
                                  x + y,
                                  x - y,
                                  x * y,
                                  ops::minimum(x, y),
                                  ops::square(ops::abs(x)),
                                  ops::pow(ops::abs(x), exponent()),
                                  ops::real(z),
                                  ops::imag(ops::conj(z)),
                                  ops::abs2(-z),
                                  ops::square(ops::abs(z)),
                                  ops::real(ops::conj(z) * z),
                                  1.0 / (1.0 + ops::exp(-x)),
                                  ops::log(1.0 + ops::abs(x)),
                                  ops::log(1.0 + ops::exp(x * 0.5)) - 1.0,
                                  1.0 - ops::sigmoid(x),
                                  x + x + y,
                                  x * 2.0 * y * 0.5};
    if (has_jumps_) {
      for (const Variable& v :
           {ops::where(ops::lt(x, y), x, y), ops::where(ops::logical_not(ops::le(x, 1.0)), y, x),
            ops::round(x).astype(DType::float32).astype(DType::float64), ops::sign(x) - (-y)}) {
        choices.push_back(v);
      }
    }
    if (broadcasts_) {
      const Variable yes = constant(Tensor::full<bool>({1, 1}, true));
      for (const Variable& v : {ops::where(yes, x, y), ops::where(ops::logical_not(yes), x, y),
                                ops::real(ops::complex(x, y)), ops::imag(ops::complex(x, y)),
                                ops::where(ops::lt(x, y), y, y), ops::sum(x * y, {Axes{0}, true}),
                                ops::sum(x, {Axes{1}, true}) * 0.1}) {
        choices.push_back(v);
      }
    }
    if (is_matrix_) {
      for (const Variable& v : {ops::pad(x, {{1, 0}, {0, 2}})(slice(1, 5), slice(0, 6)),
                                ops::join(0, {x(slice(0, 1)), y(slice(1, 4))}),
                                ops::flip(ops::flip(x.T(), {0}).T(), {1}),
                                x + 0.5 * ops::dot(y, ops::dot(x.T(), y)) * 0.01,
                                x * ops::sum(x * y, {Axes{1}, true}) * 0.01}) {
        choices.push_back(v);
      }
    }
    return choices[static_cast<std::size_t>(pick(static_cast<int>(choices.size())))];
  }

  Variable next_complex() {
    const Variable z = some(complex_), w = some(complex_), x = some(real_), y = some(real_);
    const std::vector<Variable> choices{-z,
                                        ops::conj(ops::conj(z)),
                                        z * number(),
                                        z + w,
                                        z - (-w),
                                        (-z) * (-w),
                                        ops::complex(x, y),
                                        ops::conj(z) * w,
                                        ops::complex(ops::real(z), ops::imag(z)),
                                        z - number()};
    return choices[static_cast<std::size_t>(pick(static_cast<int>(choices.size())))];
  }

  std::mt19937 random_;
  std::vector<Variable> real_, complex_;
  bool is_matrix_, has_jumps_, broadcasts_;
};

Tensor value_of(const Variable& v, const Mode& mode, Agreement agreement) {
  const std::vector<Variable> inputs = testing::inputs_of({v});
  std::vector<Tensor> arguments;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    arguments.push_back(testing::values_for(inputs[i], agreement, static_cast<int>(i)));
  }
  const ConfigScope scope({.on_opt_error = Reaction::raise});
  Tensor result;
  function(std::vector<In>(inputs.begin(), inputs.end()), {v}, {.mode = mode})
      .call(arguments, {&result, 1});
  return result;
}

// Is the other value close wherever the naive one is an ordinary number?
bool is_close_where_ordinary(const Tensor& got, const Tensor& naive) {
  if (got.shape() != naive.shape() || got.dtype() != naive.dtype()) return false;
  const auto x = got.to(DType::complex128).to_vector<std::complex<double>>();
  const auto y = naive.to(DType::complex128).to_vector<std::complex<double>>();
  double largest = 1;
  for (const auto& number : y) {
    if (std::abs(number) < 1e6) largest = std::max(largest, std::abs(number));
  }
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (!(std::abs(y[i]) < 1e6)) continue;
    if (!(std::abs(x[i] - y[i]) <= 1e-7 * largest)) return false;
  }
  return true;
}

struct RandomExpressions : ::testing::Test {
  template <class Check>
  static void run(bool has_jumps, Check check, bool broadcasts = false) {
    const int n = testing::longer_unless_sanitized(400);
    for (int seed = 0; seed < n && !HasFatalFailure(); ++seed) {
      const bool is_matrix = seed % 2 == 1 && !broadcasts;
      const Variable v =
          Expression(static_cast<unsigned>(seed), is_matrix, has_jumps, broadcasts).make();
      SCOPED_TRACE("seed " + std::to_string(seed) + ": " +
                   FunctionGraph(testing::inputs_of({v}), {v}).str());
      check(v);
    }
  }
};

TEST_F(RandomExpressions, KeepEveryBitInExactMode) {
  run(true, [](const Variable& v) {
    for (const Agreement agreement : {Agreement::bits, Agreement::rounding}) {
      const Tensor naive = value_of(v, NoRewrite(), agreement);
      const Tensor exact = value_of(v, FastRun().exact(), agreement);
      ASSERT_TRUE(testing::same_bits(exact, naive)) << "expected " << naive << "\ngot " << exact;
    }
  });
}

TEST_F(RandomExpressions, KeepTheirValuesInFastRun) {
  run(false, [](const Variable& v) {
    const Tensor naive = value_of(v, NoRewrite(), Agreement::rounding);
    const Tensor fast = value_of(v, FastRun(), Agreement::rounding);
    ASSERT_TRUE(is_close_where_ordinary(fast, naive)) << "expected " << naive << "\ngot " << fast;
  });
}

TEST_F(RandomExpressions, KeepShapesAndValuesWhereOperandsBroadcast) {
  const auto check = [](const Variable& v) {
    const Tensor naive = value_of(v, NoRewrite(), Agreement::rounding);
    const Tensor exact = value_of(v, FastRun().exact(), Agreement::rounding);
    ASSERT_TRUE(testing::same_bits(exact, naive)) << "expected " << naive << "\ngot " << exact;
    const Tensor fast = value_of(v, FastRun(), Agreement::rounding);
    ASSERT_TRUE(is_close_where_ordinary(fast, naive)) << "expected " << naive << "\ngot " << fast;
  };
  run(false, check, true);
}

}  // namespace
}  // namespace palimpsest
