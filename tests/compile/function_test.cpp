// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/function.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/expect_error.hpp"
#include "support/vectors.hpp"
#include "support/window.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

Variable vector_input(std::string name, DType dtype = DType::float64) {
  return make_input({dtype, {kUnknown}, {}}, std::move(name));
}
using testing::vector_of;

struct FunctionTest : ::testing::Test {
  Variable x = vector_input("x"), y = vector_input("y");
};

// -- calls ---------------------------------------------------------------------------------------

TEST_F(FunctionTest, ComputesForAnySignature) {
  const Function f = function({x, y}, {x * y + x, x - y});
  const auto r = f(vector_of({1, 2}), vector_of({3, 4}));
  EXPECT_EQ(r[0].to_vector<double>(), (std::vector<double>{4, 10}));
  EXPECT_EQ(r[1].to_vector<double>(), (std::vector<double>{-2, -2}));
  EXPECT_EQ(f(vector_of({1, 2, 3}), vector_of({3, 4, 5}))[0].numel(), 3);
}

TEST_F(FunctionTest, TakesArgumentsOfAnyStrides) {
  const Function f = function({x}, {x * 2.0});
  const Tensor t = Tensor::arange(10, DType::float64);
  EXPECT_EQ(f(t(slice(8, 0, -3)))[0].to_vector<double>(), (std::vector<double>{16, 10, 4}));
}

TEST_F(FunctionTest, EmptyArraysAreLegal) {
  const Function f = function({x}, {x * 2.0 + 1.0});
  EXPECT_EQ(f(Tensor::zeros({0}))[0].shape(), (Extents{0}));
}

TEST_F(FunctionTest, FunctionOfNothingIsLegal) { EXPECT_TRUE(function({}, {})().empty()); }

TEST_F(FunctionTest, ArgumentThatIsNotLentIsNeverWritten) {
  const Function f = function({x, y}, {(x + y) * x});
  Tensor a = vector_of({1, 2}), b = vector_of({3, 4});
  f(a, b);
  f(a, a);
  EXPECT_EQ(a.to_vector<double>(), (std::vector<double>{1, 2}));
  EXPECT_EQ(b.to_vector<double>(), (std::vector<double>{3, 4}));
}

TEST_F(FunctionTest, LentArgumentIsOverwrittenInPlace) {
  const Function f = function({In(x, {.is_mutable = true}), y}, {x + y});
  Tensor a = vector_of({1, 2});
  const Tensor b = vector_of({3, 4});
  const void* address = a.raw_data();
  const Tensor r = f(a, b)[0];
  EXPECT_EQ(r.to_vector<double>(), (std::vector<double>{4, 6}));
  EXPECT_EQ(r.raw_data(), address);
}

TEST_F(FunctionTest, LentArgumentSharedWithALazyCloneKeepsItsValue) {
  const Function f = function({In(x, {.is_mutable = true}), y}, {x + y});
  const Tensor a = vector_of({1, 2}), clone = a.lazy_clone();
  EXPECT_EQ(f(a, vector_of({3, 4}))[0].to_vector<double>(), (std::vector<double>{4, 6}));
  EXPECT_EQ(a.to_vector<double>(), (std::vector<double>{1, 2}));
  EXPECT_EQ(clone.to_vector<double>(), (std::vector<double>{1, 2}));
}

TEST_F(FunctionTest, LentArgumentThatAnotherOneOverlapsIsCopied) {
  const Variable z = vector_input("z");
  const Function f = function({In(x, {.is_mutable = true}), y, z}, {(x + y) * z});
  const Tensor all_of_it = Tensor::arange(4, DType::float64);
  const Tensor a = all_of_it(slice(0, 3)), b = all_of_it(slice(1, 4));
  EXPECT_EQ(f(a, b, b)[0].to_vector<double>(), (std::vector<double>{1, 6, 15}));
}

// -- results -------------------------------------------------------------------------------------

TEST_F(FunctionTest, ResultThatIsAnArgumentIsIndependentOfIt) {
  const Function f = function({x}, {x});
  Tensor a = vector_of({1, 2});
  Tensor r = f(a)[0];
  EXPECT_FALSE(shares_storage(r, a));
  r.fill(7.0);
  EXPECT_EQ(a.to_vector<double>(), (std::vector<double>{1, 2}));
}

TEST_F(FunctionTest, EqualResultsAreIndependentOfEachOther) {
  const Variable s = x + y;
  auto r = function({x, y}, {s, s})(vector_of({1}), vector_of({2}));
  r[0].fill(9.0);
  EXPECT_EQ(r[1].item<double>(), 3.0);
}

TEST_F(FunctionTest, SmallViewOfABigResultIsCopiedOut) {
  const Function f = function({x}, {ops::index(x * 2.0, {slice(0, 2)})});
  const Tensor r = f(Tensor::arange(100, DType::float64))[0];
  EXPECT_EQ(r.storage().nbytes(), 16u);
  EXPECT_EQ(r.to_vector<double>(), (std::vector<double>{0, 2}));
}

TEST_F(FunctionTest, ConstantResultCanBeWrittenWithoutHarm) {
  const Function f = function({}, {constant(Tensor::ones({2}))});
  f()[0].fill(4.0);
  EXPECT_EQ(f()[0].to_vector<double>(), (std::vector<double>{1, 1}));
}

TEST_F(FunctionTest, BorrowedResultIsRewrittenByTheNextCall) {
  const Function f = function({x}, {Out(x * 2.0, {.borrow = true})});
  const Tensor first = f(vector_of({1, 2}))[0];
  const Tensor clone = first.lazy_clone();
  const Tensor second = f(vector_of({5, 6}))[0];
  EXPECT_TRUE(shares_storage(first, second));
  EXPECT_EQ(second.to_vector<double>(), (std::vector<double>{10, 12}));
  EXPECT_EQ(clone.to_vector<double>(), (std::vector<double>{2, 4}));
}

TEST_F(FunctionTest, CallIntoWritesGivenTensorsThatMayOverlapArguments) {
  const Function f = function({x, y}, {x + y, x * y});
  Tensor a = vector_of({1, 2}), b = vector_of({3, 4});
  testing::Window out({2});
  std::vector<Tensor> destinations{a, out};
  f.call_into(destinations, a, b);
  EXPECT_EQ(a.to_vector<double>(), (std::vector<double>{4, 6}));
  EXPECT_EQ(out.tensor().to_vector<double>(), (std::vector<double>{3, 8}));
  std::vector<Tensor> wrong{Tensor::zeros({3}), out};
  expect_error<ShapeError>([&] { f.call_into(wrong, a, b); }, "destination 0");
}

TEST_F(FunctionTest, CallIntoADestinationOfTheRightLayoutAllocatesNoResult) {
  const Function f = function({x}, {x * 2.0});
  const Tensor argument = Tensor::ones({1000});
  testing::Window out({1000});
  std::vector<Tensor> destinations{out};
  f.call_into(destinations, argument);
  const MemoryScope scope;
  f.call_into(destinations, argument);
  EXPECT_EQ(scope.calls(), 0u);
  EXPECT_EQ(destinations[0].at<double>({999}), 2.0);
}

// -- shared variables and updates ----------------------------------------------------------------

// The data of a complex tensor start at a multiple of the element size.
TEST_F(FunctionTest, AViewThatNoTensorCanShowIsCopied) {
  const Variable pairs = make_input({DType::float64, {2, 2}, {}}, "pairs");
  const Tensor whole = Tensor::from(std::vector<double>{0, 1, 2, 3, 4, 5});
  const Tensor odd = whole.as_strided({2, 2}, {2, 1}, 1);
  for (const bool borrow : {false, true}) {
    const Function f = function({In(pairs, {.is_mutable = false, .borrow = borrow})},
                                Out(ops::view_as_complex(pairs), {.borrow = borrow}));
    const std::vector<std::complex<double>> expected{{1, 2}, {3, 4}};
    EXPECT_EQ(f(odd).tensor().to_vector<std::complex<double>>(), expected);
  }
}

TEST_F(FunctionTest, ViewsOfStridedArraysWithoutElementsAreResults) {
  const Variable rows = make_input({DType::float64, {0, 4}, {}}, "rows");
  const Tensor empty = Tensor::empty({0, 10}, DType::float64)(ellipsis, slice(1, -1, 2));
  const Function f = function({rows}, {ops::flip(rows, {1}), rows.T()});
  EXPECT_EQ(f(empty)[0].shape(), (Extents{0, 4}));
  EXPECT_EQ(f(empty)[1].shape(), (Extents{4, 0}));
}

TEST_F(FunctionTest, SharedVariableIsReadAtEachCall) {
  SharedVariable w = shared(vector_of({10, 20}), {.name = "w"});
  const Function f = function({x}, {x + w.var()});
  EXPECT_EQ(f(vector_of({1, 2}))[0].to_vector<double>(), (std::vector<double>{11, 22}));
  w.set_value(vector_of({0, 0}));
  EXPECT_EQ(f(vector_of({1, 2}))[0].to_vector<double>(), (std::vector<double>{1, 2}));
}

TEST_F(FunctionTest, UpdateRunsInTheContainersMemory) {
  SharedVariable s = shared(vector_of({1, 2}), {.name = "s"});
  const Function f = function({x}, {}, {.updates = {{s, s.var() + x}}});
  const void* address = s.get_value({.borrow = true}).raw_data();
  f(vector_of({10, 20}));
  f(vector_of({10, 20}));
  EXPECT_EQ(s.get_value().to_vector<double>(), (std::vector<double>{21, 42}));
  EXPECT_EQ(s.get_value({.borrow = true}).raw_data(), address);
}

TEST_F(FunctionTest, UpdateNeverChangesAValueTakenBefore) {
  SharedVariable s = shared(vector_of({1, 2}));
  const Function f = function({x}, {}, {.updates = {{s, s.var() + x}}});
  const Tensor before = s.get_value();
  f(vector_of({10, 20}));
  EXPECT_EQ(before.to_vector<double>(), (std::vector<double>{1, 2}));
  EXPECT_EQ(s.get_value().to_vector<double>(), (std::vector<double>{11, 22}));
}

TEST_F(FunctionTest, UpdatesAreSimultaneousAndExchangeMemory) {
  SharedVariable a = shared(vector_of({0.5})), b = shared(vector_of({-0.5}));
  const void* of_a = a.get_value({.borrow = true}).raw_data();
  const void* of_b = b.get_value({.borrow = true}).raw_data();
  function({}, {}, {.updates = {{a, b.var()}, {b, a.var()}}})();
  EXPECT_EQ(a.get_value().item<double>(), -0.5);
  EXPECT_EQ(b.get_value().item<double>(), 0.5);
  EXPECT_EQ(a.get_value({.borrow = true}).raw_data(), of_b);
  EXPECT_EQ(b.get_value({.borrow = true}).raw_data(), of_a);
}

TEST_F(FunctionTest, UpdateByAnotherContainerLeavesThemIndependent) {
  SharedVariable a = shared(vector_of({1})), b = shared(vector_of({2}));
  function({}, {}, {.updates = {{a, b.var()}}})();
  b.modify([](Tensor& t) { t.fill(9.0); });
  EXPECT_EQ(a.get_value().item<double>(), 2.0);
}

TEST_F(FunctionTest, UpdateByAnArgumentKeepsTheArgument) {
  SharedVariable a = shared(vector_of({1}));
  const Function f = function({x}, {}, {.updates = {{a, x}}});
  Tensor t = vector_of({7});
  f(t);
  t.fill(0.0);
  EXPECT_EQ(a.get_value().item<double>(), 7.0);
}

TEST_F(FunctionTest, OldValueCanBeReturnedBesideTheUpdate) {
  SharedVariable a = shared(vector_of({1}));
  const Function f = function({}, {a.var()}, {.updates = {{a, a.var() * 2.0}}});
  EXPECT_EQ(f()[0].item<double>(), 1.0);
  EXPECT_EQ(f()[0].item<double>(), 2.0);
  EXPECT_EQ(a.get_value().item<double>(), 4.0);
}

TEST_F(FunctionTest, UpdateThatCannotRunInPlaceReusesTwoBuffers) {
  SharedVariable a = shared(Tensor::ones({100}));
  const Function f = function({}, {}, {.updates = {{a, ops::roll(a.var(), 1, 0) + a.var()}}});
  for (int i = 0; i < 3; ++i) f();
  const MemoryScope scope;
  for (int i = 0; i < 4; ++i) f();
  EXPECT_EQ(scope.calls(), 0u);
  EXPECT_EQ(a.get_value().at<double>({5}), 128.0);
}

TEST_F(FunctionTest, GivensReplaceVariables) {
  SharedVariable s = shared(vector_of({1}));
  const Function f =
      function({}, {s.var() * 2.0}, {.givens = {{s.var(), constant(vector_of({6}))}}});
  EXPECT_EQ(f()[0].item<double>(), 12.0);
  EXPECT_EQ(s.get_value().item<double>(), 1.0);
}

// -- errors --------------------------------------------------------------------------------------

TEST_F(FunctionTest, WrongArgumentsAreNamed) {
  const Function f = function({In(x, {.name = "image"})}, {x * 2.0}, {.name = "scale"});
  expect_error<TypeError>([&] { f(); }, "[scale] got 0 arguments, expected 1");
  expect_error<ShapeError>([&] { f(Tensor::ones({2, 2})); }, "argument 0 'image'");
  expect_error<DTypeError>([&] { f(Tensor::ones({2}, DType::complex64)); }, "complex64");
  EXPECT_EQ(f(Tensor::ones({2}, DType::float32))[0].dtype(), DType::float64);
  EXPECT_EQ(f(Tensor::ones({2}, DType::float64, Device::parse("cpu:1")))[0].at<double>({1}), 2.0);
}

TEST_F(FunctionTest, ShapesThatDoNotFitAreFoundBeforeAnythingRuns) {
  SharedVariable s = shared(vector_of({1, 2}));
  const Function f = function({x}, {x * s.var()}, {.updates = {{s, s.var() * 2.0}}});
  EXPECT_THROW(f(vector_of({1, 2, 3})), ShapeError);
  EXPECT_EQ(s.get_value().to_vector<double>(), (std::vector<double>{1, 2}));
}

TEST_F(FunctionTest, WrongGraphsAreRefused) {
  SharedVariable s = shared(vector_of({1}), {.name = "s"});
  expect_error<MissingInputError>([&] { function({x}, {x + y}); }, "y");
  expect_error<UnusedInputError>([&] { function({x, x}, {x}); }, "is used twice in inputs");
  expect_error<TypeError>([&] { function({s.var()}, {s.var()}); }, "givens");
  expect_error<ValueError>(
      [&] {
        function({}, {}, {.updates = {{s, s.var()}, {s, s.var()}}});
      },
      "several updates");
  expect_error<TypeError>(
      [&] {
        function({}, {}, {.updates = {{s, ops::sum(s.var())}}});
      },
      "update of 's'");
}

TEST_F(FunctionTest, FailedAllocationLeavesContainersAndTheNextCallWorks) {
  SharedVariable s = shared(vector_of({1, 2}));
  const Function f =
      function({x}, {ops::roll(x * s.var(), 1, 0) + x}, {.updates = {{s, s.var() * 2.0}}});
  for (std::uint64_t n = 0; n < 8; ++n) {
    const Tensor a = vector_of({1, 1});
    const auto before = s.get_value().to_vector<double>();
    bool failed = false;
    try {
      const FailingAllocator injected(n);
      f(a);
    } catch (const OutOfMemory&) {
      failed = true;
    }
    if (failed) {
      EXPECT_EQ(s.get_value().to_vector<double>(), before) << n;
    }
    f.free();
  }
  EXPECT_NO_THROW(f(vector_of({1, 1})));
}

TEST_F(FunctionTest, FusedStepsGiveTheSameBits) {
  const Variable z = make_input({DType::complex64, {kUnknown}, {}}, "z");
  const Variable v = ops::conj(z * z + 3.0) / (ops::abs2(z) + 0.5) - z * std::complex<float>(0, 2);
  const Tensor t = Tensor::random_normal({1000}, DType::complex64, {3, 4});
  const Function f = function({z}, {v}), naive = function({z}, {v}, {.mode = Mode::no_rewrite});
  EXPECT_TRUE(equal(f(t)[0], naive(t)[0]));
  const std::vector<Tensor> arguments{t};
  EXPECT_EQ(f.plan(arguments).arena_bytes, 0);
  EXPECT_GT(naive.plan(arguments).arena_bytes, 0);
}

// -- the promise about memory --------------------------------------------------------------------

TEST_F(FunctionTest, AnnouncedPeakIsTheMeasuredOne) {
  const Variable z = make_input({DType::complex64, {kUnknown, kUnknown}, {}}, "z");
  const Variable k = ops::fft(z * 2.0, {0, 1});
  const std::vector<Function> functions = {
      function({z}, {k}),
      function({z}, {ops::ifft(k * ops::conj(k), {0, 1}), ops::sum(ops::abs2(k))}),
      function({z}, {Out(k + z, {.borrow = true})}),
      function({z}, {ops::index(k, {index_t{0}})}),
  };
  const Tensor t = Tensor::random_normal({33, 20}, DType::complex64, {1, 2});
  for (const Function& f : functions) {
    const std::vector<Tensor> arguments{t};
    std::vector<Tensor> results(f.output_count());
    const Plan& plan = f.plan(arguments);
    CallReport report;
    const MemoryScope scope;
    f.call(arguments, results, &report);
    EXPECT_EQ(scope.peak_bytes(), static_cast<std::uint64_t>(plan.peak_bytes)) << plan.to_string();
    EXPECT_EQ(report.peak_bytes, plan.peak_bytes);
    const MemoryScope again;
    f.call(arguments, results);
    EXPECT_EQ(again.allocated_bytes(), static_cast<std::uint64_t>(plan.output_bytes));
  }
}

TEST_F(FunctionTest, InPlaceStepsShareOneBuffer) {
  Variable v = x * 2.0;
  for (int i = 0; i < 10; ++i) v = v + 1.0;
  const Function f = function({x}, {v});
  const Plan& plan = f.plan(std::vector<Tensor>{Tensor::ones({1000})});
  EXPECT_EQ(plan.peak_bytes, 8000);
  const Function naive = function({x}, {v}, {.mode = Mode::no_rewrite});
  EXPECT_EQ(naive.plan(std::vector<Tensor>{Tensor::ones({1000})}).peak_bytes, 3 * 8000);
  EXPECT_EQ(naive(Tensor::ones({3}))[0].to_vector<double>(),
            f(Tensor::ones({3}))[0].to_vector<double>());
}

// -- threads -------------------------------------------------------------------------------------

TEST_F(FunctionTest, ConcurrentUpdatesAreSerialized) {
  SharedVariable s = shared(vector_of({0, 0}));
  const Function f = function({x}, {s.var() + x}, {.updates = {{s, s.var() + x}}});
  std::vector<std::thread> threads;
  std::atomic<int> torn{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      const Tensor one = vector_of({1, 1});
      for (int i = 0; i < 50; ++i) {
        const Tensor r = f(one)[0];
        if (r.at<double>({0}) != r.at<double>({1})) ++torn;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(s.get_value().to_vector<double>(), (std::vector<double>{400, 400}));
}

}  // namespace
}  // namespace palimpsest
