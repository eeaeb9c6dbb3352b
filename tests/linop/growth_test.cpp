// SPDX-License-Identifier: Apache-2.0
// The work of compiling, planning and running is proportional to the number of parts. Measured in
// bytes requested from the heap, which are the same on every machine; bench/growth measures times,
// and more cases.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <functional>
#include <span>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/linop/containers/add.hpp"
#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/containers/concat.hpp"
#include "palimpsest/linop/containers/stack.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/diagonal.hpp"
#include "palimpsest/linop/transforms/fft.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/expect_error.hpp"
#include "support/malloc_counter.hpp"

namespace palimpsest {
namespace {

struct GrowthTest : ::testing::Test {
  static constexpr int kFew = 500, kMany = 2000;

  // Four times the parts may take five times the bytes; quadratic growth would take sixteen.
  static void expect_linear(const std::function<void(int)>& work) {
    work(10);  // one-time work
    const auto bytes_of = [&](int n) {
      const std::size_t before = testing::bytes_of_mallocs();
      work(n);
      return static_cast<double>(testing::bytes_of_mallocs() - before);
    };
    const double few = bytes_of(kFew), many = bytes_of(kMany);
    EXPECT_LT(many, 5 * few) << kFew << " parts: " << few << " bytes, " << kMany
                             << " parts: " << many;
  }

  // Compiles, plans and calls a function of n parts that are computed from x.
  template <class Assemble>
  static Function assembled(int n, Assemble assemble) {
    const Variable x = make_input({DType::float64, {8}, {}}, "x");
    std::vector<Variable> parts;
    for (int i = 0; i < n; ++i) parts.push_back(ops::roll(x * (i + 1.0), 1, 0));
    const Function f = function({x}, assemble(parts));
    const Tensor result = f(Tensor::arange(8, DType::float64))[0];
    EXPECT_EQ(result.numel(), 8 * n);
    return f;
  }
  template <class Assemble>
  static void expect_linear_assembly(Assemble assemble) {
    expect_linear([&](int n) {
      EXPECT_EQ(assembled(n, assemble).latest_plan()->saved_by_join_bytes, 64 * n);
    });
  }

  // The last values of the states of a loop that starts with these and doubles them twice.
  static std::vector<Variable> looped(const std::vector<Variable>& inits) {
    const std::vector<ops::LoopState> states(inits.begin(), inits.end());
    const auto body = [](std::vector<Variable> a) {
      for (Variable& v : a) v = v * 2.0;
      return a;
    };
    const auto result = ops::loop(body, {.states = states, .n_steps = index_t{2}});
    std::vector<Variable> last;
    for (std::size_t k = 0; k < inits.size(); ++k) last.push_back(result.last(k));
    return last;
  }

  static Tensor weights(const Extents& extents, int i) {
    return Tensor::full(extents, std::complex<float>(static_cast<float>(i % 5 + 1)));
  }
  static std::vector<NamedLinop> diagonals(int n) {
    std::vector<NamedLinop> list;
    for (int i = 0; i < n; ++i) list.push_back(Diagonal(weights({4, 4}, i), "y x"));
    return list;
  }
  static void apply(const NamedLinop& A, const Extents& extents) {
    EXPECT_GT(A(Tensor::ones(extents, DType::complex64)).numel(), 0);
  }
};

TEST_F(GrowthTest, JoinsOfComputedParts) {
  expect_linear_assembly([](const auto& parts) { return ops::join(0, parts); });
}

TEST_F(GrowthTest, StacksOfComputedParts) {
  expect_linear_assembly([](const auto& parts) { return ops::stack(parts); });
  expect_linear_assembly([](const auto& parts) { return ops::stack(parts, 1); });
}

TEST_F(GrowthTest, SetsOfPartsOfOneArray) {
  const auto sets_of = [](bool columns) {
    return [columns](const std::vector<Variable>& parts) {
      const auto n = static_cast<index_t>(parts.size());
      Variable v = columns ? ops::zeros({8, n}) : ops::zeros({n, 8});
      for (index_t i = 0; i < n; ++i) {
        const Variable& part = parts[static_cast<std::size_t>(i)];
        v = columns ? ops::set_subtensor(v, {all, i}, part) : ops::set_subtensor(v, {i, all}, part);
      }
      return v;
    };
  };
  for (const bool columns : {false, true}) {
    expect_linear([&](int n) { assembled(n, sets_of(columns)); });
  }
}

// x = set(x[i], f(x[i - 1])), row by row, and in a ring of a few rows.
TEST_F(GrowthTest, SetsOfRowsComputedFromRowsSetBefore) {
  for (const index_t period : {index_t{0}, index_t{4}}) {
    expect_linear([&](int n) {
      const index_t rows = period > 0 ? period : n;
      const Variable x = make_input({DType::float64, {8}, {}}, "x");
      Variable v = ops::set_subtensor(ops::zeros({rows, 8}), {0, all}, x);
      for (index_t i = 1; i < n; ++i) {
        const Variable before = v((i - 1) % rows, all);
        v = ops::set_subtensor(v, {i % rows, all}, ops::roll(before * 0.5, 1, 0));
      }
      const double last = function({x}, v)(Tensor::ones({8}))[0].at<double>({1, 0});
      EXPECT_EQ(last, std::ldexp(1.0, period > 0 ? -((n - 2) / 4 * 4 + 1) : -1));
    });
  }
}

TEST_F(GrowthTest, LoopsWithManyStates) {
  expect_linear(
      [](int n) { assembled(n, [](const auto& parts) { return ops::join(0, looped(parts)); }); });
  // Here the states of the second loop start in memory that the first one overwrites.
  expect_linear([](int n) {
    assembled(n, [](const auto& parts) { return ops::join(0, looped(looped(parts))); });
  });
}

// The next value of each state is computed from that of another one.
TEST_F(GrowthTest, LoopsWhoseStatesAreRotated) {
  expect_linear([](int n) {
    const Variable x = make_input({DType::float64, {8}, {}}, "x");
    // Starts that must keep their value: working in place of each is refused, and noted.
    const std::vector<ops::LoopState> states(static_cast<std::size_t>(n), x);
    const auto body = [](const std::vector<Variable>& a) {
      std::vector<Variable> next;
      for (std::size_t k = 0; k < a.size(); ++k) {
        next.push_back(ops::roll(a[(k + 1) % a.size()], 1, 0));
      }
      return next;
    };
    const auto result = ops::loop(body, {.states = states, .n_steps = index_t{2}});
    std::vector<Variable> last;
    for (std::size_t k = 0; k < states.size(); ++k) last.push_back(result.last(k));
    EXPECT_EQ(function({x}, ops::join(0, last))(Tensor::ones({8}))[0].numel(), 8 * n);
  });
}

// Each mask decides extents, so that each is a stage of its own.
TEST_F(GrowthTest, CallsWithManyMasksOneAfterTheOther) {
  const Variable x = make_input({DType::float64, {kUnknown}, {}}, "x");
  const auto bytes_of_call = [&](int n) {
    Variable v = x;
    for (int i = 0; i < n; ++i) v = v[v > -1.0] * 0.5;
    const Function f = function({x}, v);
    f(Tensor::ones({8}));
    const std::size_t before = testing::bytes_of_mallocs();
    EXPECT_EQ(f(Tensor::ones({8}))[0].numel(), 8);
    return static_cast<double>(testing::bytes_of_mallocs() - before);
  };
  const double few = bytes_of_call(50), many = bytes_of_call(200);
  EXPECT_LT(many, 5 * few) << few << " and " << many << " bytes";
}

TEST_F(GrowthTest, ChoicesOneAfterTheOther) {
  expect_linear([](int n) {
    const Variable x = make_input({DType::float64, {8}, {}}, "x");
    const Variable sum = ops::sum(x);
    Variable v = x;
    for (int i = 0; i < n; ++i) v = ops::ifelse(sum > static_cast<double>(i), v * 2.0, v + 1.0);
    function({x}, v)(Tensor::arange(8, DType::float64));
  });
}

// A term that stands twice in another one, that twice in a third one, and so on: 2^n ways.
TEST_F(GrowthTest, TermsThatStandTwice) {
  const auto doubled = [](int n, auto twice) {
    const Variable x = make_input({DType::float64, {}, {}}, "x");
    Variable v = x;
    for (int i = 0; i < n; ++i) v = twice(v);
    return function({x}, v)(Tensor::scalar<double>(1)).item<double>();
  };
  EXPECT_EQ(doubled(100, [](const Variable& v) { return v * v; }), 1.0);
  EXPECT_EQ(doubled(100, [](const Variable& v) { return v + v; }), 0x1p100);
}

TEST_F(GrowthTest, GivensAndTangents) {
  expect_linear([](int n) {
    const Variable x = make_input({DType::float64, {8}, {}}, "x");
    Variable sum = x, last = x;
    Givens givens;
    for (int i = 0; i < n; ++i) {
      const Variable y = make_input({DType::float64, {8}, {}}, "y");
      givens.emplace_back(y, ops::roll(last, 1, 0));
      last = y;
      sum = sum + y;
    }
    function({x}, sum, {.givens = givens});
  });
  expect_linear([](int n) {
    const Variable x = make_input({DType::float64, {8}, {}}, "x");
    Variable v = x;
    for (int i = 0; i < n; ++i) v = ops::sin(v);
    pushforward({&v, 1}, {&x, 1}, {&x, 1});
  });
}

// Operators in one another, each of two.
TEST_F(GrowthTest, NestedSums) {
  expect_linear([](int n) {
    std::vector<NamedLinop> terms = diagonals(n);
    NamedLinop A = terms[0];
    for (const NamedLinop& term : terms) A = A + term;
    EXPECT_EQ(A.size(ND("x")), 4);
    EXPECT_EQ(A.dims().size(), 2U);
  });
}

TEST_F(GrowthTest, ApplicationsOfNestedChains) {
  expect_linear([](int n) {
    std::vector<NamedLinop> parts = diagonals(n);
    NamedLinop A = parts[0];
    parts.resize(parts.size() / 4);  // sanitizers take more of the stack
    for (const NamedLinop& part : parts) A = Chain(A, part);
    A(Tensor::ones({4, 4}, DType::complex64));
  });
}

TEST(DeepTrees, AreAppliedOrRefused) {
  const NamedLinop D = Diagonal(Tensor::ones({4}), "x");
  const Tensor x = Tensor::ones({4});
  NamedLinop chain = D, sum = D;
  for (int i = 0; i < 100000; ++i) {
    chain = Chain(chain, D);
    sum = sum + D;
  }
  for (const NamedLinop& A : {chain, sum}) {
    testing::expect_error<OutOfMemory>([&] { A(x); }, "nested too deep");
    testing::expect_error<OutOfMemory>([&] { A.H(); }, "nested too deep");
  }
}

TEST_F(GrowthTest, LoopsThatUpdateManySharedVariables) {
  expect_linear([](int n) {
    std::vector<SharedVariable> list;
    std::vector<Variable> values;
    for (int i = 0; i < n; ++i) {
      list.push_back(shared(Tensor::ones({8})));
      values.push_back(list.back().var());
    }
    const std::vector<Variable> next = looped(values);
    Updates updates;
    for (std::size_t k = 0; k < list.size(); ++k) updates.emplace_back(list[k], next[k]);
    function({}, {}, {.updates = updates})();
    EXPECT_EQ(list.back().get_value().at<double>({7}), 4);
  });
}

TEST_F(GrowthTest, StackOfOperators) {
  expect_linear([](int n) { apply(Stack(diagonals(n), {.out = {ND("c"), 0}}), {4, 4}); });
}

TEST_F(GrowthTest, ConcatOfOperators) {
  expect_linear([](int n) {
    std::vector<NamedLinop> list;
    for (int i = 0; i < n; ++i) list.push_back(Dense(weights({2, 4}, i), "z y,y->z"));
    apply(Concat(list, {.out = ND("z")}), {4});
  });
}

TEST_F(GrowthTest, BlockDiagonalOfOperators) {
  expect_linear([](int n) {
    std::vector<NamedLinop> list;
    for (int i = 0; i < n; ++i) list.push_back(Diagonal(weights({2, 4, 4}, i), "c y x"));
    apply(BlockDiagonal(list, ND("c"), ND("c")), {2 * n, 4, 4});
  });
}

}  // namespace
}  // namespace palimpsest
