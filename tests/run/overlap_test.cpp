// SPDX-License-Identifier: Apache-2.0
// Arguments, destinations and values of shared variables that overlap memory written by a call.
#include <gtest/gtest.h>

#include <random>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/inspect/debug/debug_mode.hpp"
#include "palimpsest/inspect/debug/nan_guard.hpp"
#include "palimpsest/inspect/mode_named.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/run/overlap_finder.hpp"
#include "support/expect_error.hpp"
#include "support/vectors.hpp"
#include "support/window.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

using testing::values;
using testing::vector_of;
using Numbers = std::vector<double>;

const Variable x = make_input({DType::float64, {kUnknown}, {}}, "x");
const Variable y = make_input({DType::float64, {kUnknown}, {}}, "y");

Function roll_borrowed(const Mode& mode = FastRun()) {
  return function({x}, Out(ops::roll(x, 1, 0), {.borrow = true}), {.mode = mode});
}

struct InEveryMode : ::testing::TestWithParam<const char*> {
  static Mode mode() {
    const std::string name = GetParam();
    if (name == "DebugMode") return DebugMode({.patience = 1});
    return name == "NanGuardMode" ? NanGuardMode() : mode_named(name);
  }
};
INSTANTIATE_TEST_SUITE_P(Overlap, InEveryMode,
                         ::testing::Values("FastRun", "FastCompile", "NoRewrite", "DebugMode",
                                           "NanGuardMode"),
                         [](const auto& each) { return std::string(each.param); });

// -- borrowed results given back -----------------------------------------------------------------

TEST_P(InEveryMode, BorrowedResultIsReadWhenItIsGivenBack) {
  const Function f = roll_borrowed(mode());
  Tensor r = f(vector_of({1, 2, 3, 4, 5}));
  for (int i = 0; i < 3; ++i) r = f(r);
  EXPECT_EQ(values(r), (Numbers{2, 3, 4, 5, 1}));
  r = f(r(slice({}, {}, -1)));
  EXPECT_EQ(values(r), (Numbers{2, 1, 5, 4, 3}));
  const Function copy = f.copy({.share_memory = true});
  for (int i = 0; i < 2; ++i) r = copy(kw("x", f(r).tensor()));
  EXPECT_EQ(values(r), (Numbers{1, 5, 4, 3, 2}));
}

TEST_P(InEveryMode, PowerIterationWithBorrowedResults) {
  const Variable A = make_input({DType::float64, {kUnknown, kUnknown}, {}}, "A");
  const Function f = function({A, y}, Out(ops::dot(A, y), {.borrow = true}), {.mode = mode()});
  const Tensor M = Tensor::from<double>({0, 1, 1, 1}, Extents{2, 2});
  Tensor w = vector_of({1, 1});
  for (int i = 0; i < 5; ++i) w = f(M, w);
  EXPECT_EQ(values(w), (Numbers{8, 13}));
}

TEST(BorrowedResult, GivingItBackTakesTwoFramesAndNoMore) {
  const Function f = roll_borrowed();
  Tensor r = f(vector_of({1, 2, 3}));
  for (int i = 0; i < 10; ++i) r = f(r);
  EXPECT_EQ(f.idle_frame_count(), 2u);
  const MemoryScope scope;
  r = f(r);
  EXPECT_EQ(scope.calls(), 0u);
}

TEST(BorrowedResult, IsSeenThroughForeignMemory) {
  const Function f = roll_borrowed();
  Tensor r = f(vector_of({1, 2, 3}));
  const Tensor blob =
      Tensor::from_blob(const_cast<void*>(r.raw_data()), DType::float64, {3}, {1}, {}, false);
  EXPECT_EQ(values(f(blob).tensor()), (Numbers{2, 3, 1}));
}

TEST(CallInto, DestinationMayLieBesideTheArgumentInOneStorage) {
  Tensor whole = vector_of({1, 2, 3, 4});
  Tensor out = whole.index_with({slice(2, 4)});
  function({x}, x).call_into(out, whole.index_with({slice(0, 2)}));
  EXPECT_EQ(values(whole), (Numbers{1, 2, 1, 2}));
}

TEST(CallInto, SegmentAttachedTwiceIsOneMemory) {
  const Function f = function({x}, ops::cumsum(x, 0));
  const Storage segment = Storage::shared_memory(48);
  const Storage again = Storage::attach_shared_memory(segment.shared_descriptor());
  Tensor a(segment, DType::float64, {6}, {1}), b(again, DType::float64, {6}, {1});
  a.fill(1.0);
  Tensor out = b(slice(1, 6));
  f.call_into(out, a(slice(0, 5)));
  EXPECT_EQ(values(a), (Numbers{1, 1, 2, 3, 4, 5}));
}

TEST(BorrowedResult, CanBeADestinationOfItsFunction) {
  const Function f = function(
      {x}, {Out(ops::roll(x, 1, 0), {.borrow = true}), Out(ops::cumsum(x, 0), {.borrow = true})});
  const auto both = f(vector_of({1, 2, 3}));
  std::vector<Tensor> swapped{both[1], both[0]};
  f.call_into(swapped, vector_of({4, 5, 6}));
  EXPECT_EQ(values(swapped[0]), (Numbers{6, 4, 5}));
  EXPECT_EQ(values(swapped[1]), (Numbers{4, 9, 15}));
}

TEST_P(InEveryMode, ContainerNeverHoldsTheMemoryOfAFrame) {
  const Function f = roll_borrowed(mode());
  SharedVariable s = shared(vector_of({1, 2, 3, 4, 5}));
  for (int i = 0; i < 3; ++i) {
    s.set_value(f(s.get_value({.borrow = true})).tensor(), {.borrow = true});
  }
  EXPECT_EQ(values(s.get_value()), (Numbers{3, 4, 5, 1, 2}));
  const SharedVariable made = shared(f(vector_of({1, 2, 3})).tensor(), {.borrow = true});
  f(vector_of({4, 5, 6}));
  EXPECT_EQ(values(made.get_value()), (Numbers{3, 1, 2}));
  Tensor r = f(vector_of({7, 8, 9}));
  made.container_ptr()->exchange(std::move(r));
  f(vector_of({4, 5, 6}));
  EXPECT_EQ(values(made.get_value()), (Numbers{9, 7, 8}));
}

TEST(BorrowedResult, IsTheCallersOnceTheFunctionIsGone) {
  Tensor r = roll_borrowed()(vector_of({1, 2, 3}));
  const SharedVariable s = shared(r, {.borrow = true});
  EXPECT_TRUE(shares_storage(r, s.get_value({.borrow = true})));
}

TEST(BorrowedResult, WhoseAddressWasPromisedIsNotRewritten) {
  const Function f = roll_borrowed();
  Tensor r = f(vector_of({1, 2, 3}));
  const auto pin = r.storage().pin();
  EXPECT_TRUE(r.storage().is_claimed());
  EXPECT_EQ(values(f(vector_of({4, 5, 6})).tensor()), (Numbers{6, 4, 5}));
  EXPECT_EQ(values(r), (Numbers{3, 1, 2}));
  EXPECT_FALSE(r.storage().is_claimed()) << "it is the caller's now";
}

TEST(BorrowedResult, StaysWhenAFrameIsPrepared) {
  const Function f = roll_borrowed();
  const std::vector<Tensor> arguments{vector_of({1, 2, 3})};
  const Tensor r = f(arguments[0]);
  const Tensor kept = r.lazy_clone();
  f.prepare(arguments);
  EXPECT_EQ(values(r), (Numbers{3, 1, 2}));
}

// -- the library's own memory --------------------------------------------------------------------

TEST(Constant, NothingDoneToItsValueReachesGraphOrFunction) {
  const Variable c = constant(vector_of({1, 2, 3}));
  const Function f = function({x}, x + c), only = function({}, Out(c, {.borrow = true}));
  const Function inc = function({In(x, {.is_mutable = true})}, x + 1.0);
  inc(c.constant_value());
  c.constant_value().fill(9.0);
  only().tensor().storage().overwrite_data()[0] = std::byte{1};
  SharedVariable s = shared(c.constant_value(), {.borrow = true});
  function({}, {}, {.updates = {{s, s.var() + 1.0}}})();
  Tensor destination = c.constant_value();
  inc.call_into(destination, vector_of({5, 5, 5}));
  EXPECT_EQ(values(c.constant_value()), (Numbers{1, 2, 3}));
  EXPECT_EQ(values(f(Tensor::zeros({3}))), (Numbers{1, 2, 3}));
  EXPECT_EQ(values(only()), (Numbers{1, 2, 3}));
}

// -- destinations --------------------------------------------------------------------------------

TEST(CallInto, DestinationsThatOverlapAreRefusedBeforeAnythingIsWritten) {
  SharedVariable s = shared(vector_of({1, 1, 1, 1}));
  const Function f = function({x}, {x + 1.0, x * 2.0}, {.updates = {{s, s.var() + x}}});
  Tensor buffer = Tensor::zeros({8});
  std::vector<Tensor> outs{buffer(slice(0, 4)), buffer(slice(2, 6))};
  const Tensor a = vector_of({1, 2, 3, 4});
  expect_error<AliasError>([&] { f.call_into(outs, a); },
                           "[call_into] destination 0 overlaps destination 1");
  EXPECT_EQ(values(buffer), Numbers(8, 0.0));
  EXPECT_EQ(values(s.get_value()), Numbers(4, 1.0));
  outs[1] = Tensor::from_blob(outs[0].raw_mutable_data(), DType::float64, {4}, {1}, {}, true);
  expect_error<AliasError>([&] { f.call_into(outs, a); }, "overlaps destination 1");
  // Interleaved views are disjoint.
  outs = {buffer(slice(0, {}, 2)), buffer(slice(1, {}, 2))};
  f.call_into(outs, a);
  EXPECT_EQ(values(buffer), (Numbers{2, 2, 3, 4, 4, 6, 5, 8}));
}

TEST_P(InEveryMode, ContainerGetsItsUpdateAndADestinationInsideItTheResult) {
  SharedVariable s = shared(vector_of({1, 2, 3, 4})), t = shared(vector_of({5, 6, 7, 8}));
  const Function f =
      function({x}, ops::roll(x, 1, 0), {.updates = {{s, s.var() + x}}, .mode = mode()});
  Tensor inside = s.get_value({.borrow = true});
  f.call_into(inside, vector_of({1, 2, 1, 1}));
  EXPECT_EQ(values(inside), (Numbers{1, 1, 2, 1}));
  EXPECT_EQ(values(s.get_value()), (Numbers{2, 4, 4, 5}));
  // A part of it; exchanged buffers.
  const Function swap =
      function({x}, x * 2.0, {.updates = {{s, t.var()}, {t, s.var()}}, .mode = mode()});
  Tensor part = s.get_value({.borrow = true})(slice(1, 3));
  swap.call_into(part, vector_of({10, 20}));
  EXPECT_EQ(values(part), (Numbers{20, 40}));
  EXPECT_EQ(values(s.get_value()), (Numbers{5, 6, 7, 8}));
  EXPECT_EQ(values(t.get_value()), (Numbers{2, 4, 4, 5}));
  // A container that is only read may be a destination.
  const Function read = function({}, {s.var() + 1.0, ops::cumsum(s.var(), 0)}, {.mode = mode()});
  testing::Window sums({4});
  std::vector<Tensor> outs{s.get_value({.borrow = true})(slice({}, {}, -1)), sums};
  read.call_into(outs);
  EXPECT_EQ(values(s.get_value()), (Numbers{9, 8, 7, 6}));
  EXPECT_EQ(values(outs[1]), (Numbers{5, 11, 18, 26}));
}

TEST_P(InEveryMode, DestinationsMayOverlapWhatTheOtherResultsShow) {
  SharedVariable s = shared(vector_of({0, 0, 0}));
  const Function f = function({x}, {ops::index(x, {slice({}, {}, -1)}), x, x + 1.0},
                              {.updates = {{s, x}}, .mode = mode()});
  Tensor buffer = vector_of({1, 2, 3, 4, 5});
  testing::Window same({3}), more({3}, DType::float64, WindowLayout::strided);
  std::vector<Tensor> outs{buffer(slice(1, 4)), same, more};
  f.call_into(outs, buffer(slice(0, 3)));
  EXPECT_EQ(values(buffer), (Numbers{1, 3, 2, 1, 5}));
  EXPECT_EQ(values(outs[1]), (Numbers{1, 2, 3}));
  EXPECT_EQ(values(outs[2]), (Numbers{2, 3, 4}));
  EXPECT_EQ(values(s.get_value()), (Numbers{1, 2, 3}));
}

TEST(CallInto, ViewIsCopiedOnceStraightIntoItsDestination) {
  const Variable m = make_input({DType::float32, {kUnknown, kUnknown}, {}}, "m");
  const Function f = function({m}, m.T());
  const Tensor a = Tensor::arange(64 * 32, DType::float32).view({64, 32});
  testing::Window out({32, 64}, DType::float32);
  f.call_into(out, a);
  out.tensor().fill(0.0F);
  const MemoryScope scope;
  const CopyStats copies;
  f.call_into(out, a);
  EXPECT_EQ(scope.calls(), 0u);
  EXPECT_EQ(copies.counts().eager_copies, 1u);
  EXPECT_EQ(copies.counts().bytes_copied(), static_cast<std::uint64_t>(a.nbytes()));
  EXPECT_TRUE(equal(out, a.transpose().clone()));
  EXPECT_EQ(f.plan(std::vector<Tensor>{a}).peak_bytes, 0);
}

TEST(CallInto, CopyForADestinationInTheArgumentCountsAgainstTheBudget) {
  const Variable m = make_input({DType::float64, {4, 4}, {}}, "m");
  const auto transposed = [&](index_t budget) {
    return function({m}, m.T(), {.budget_bytes = budget, .profile = true});
  };
  Tensor a = Tensor::arange(16, DType::float64).view({4, 4});
  const Tensor before = a.clone();
  expect_error<BudgetError>([&] { transposed(127).call_into(a, a); }, "budget");
  EXPECT_TRUE(equal(a, before));
  const Function f = transposed(128);
  const MemoryScope scope;
  f.call_into(a, a);
  EXPECT_EQ(scope.peak_bytes(), 128);
  EXPECT_TRUE(equal(a, before.transpose().clone()));
}

// -- conversion ----------------------------------------------------------------------------------

TEST(FunctionConfig, ArgumentsAreConvertedAsWhereTheFunctionWasCompiled) {
  const Variable v = make_input({DType::float32, {}, {}}, "v");
  Function single;
  {
    const ConfigScope scope(ConfigOverrides{.default_float = DType::float32});
    single = function({v}, v * 2.0);
  }
  const Function exact = function({v}, v * 2.0);
  EXPECT_EQ(single(0.1).tensor().item<float>(), 0.2F);
  expect_error<DTypeError>([&] { exact(0.1); }, "does not survive");
  const ConfigScope scope(ConfigOverrides{.default_float = DType::float32});
  EXPECT_EQ(single(0.1).tensor().item<float>(), 0.2F);
  expect_error<DTypeError>([&] { exact(0.1); }, "does not survive");
}

// -- finding overlap -----------------------------------------------------------------------------

struct FoundPairs {
  explicit FoundPairs(const std::vector<Tensor>& tensors) {
    OverlapFinder finder;
    for (const Tensor& t : tensors) finder.add(t);
    finder.sort();
    found.resize(tensors.size(), std::vector<bool>(tensors.size()));
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      finder.any(i, [&](std::size_t j) {
        ++n_asked;
        found[i][j] = true;
        return false;
      });
    }
  }
  std::vector<std::vector<bool>> found;
  std::size_t n_asked = 0;
};

TEST(OverlapFinder, FindsAllWhoseBytesMeet) {
  std::mt19937 random(7);
  const auto pick = [&](index_t n) {
    return static_cast<index_t>(random() % static_cast<unsigned>(n));
  };
  for (int round = 0; round < 200; ++round) {
    std::vector<double> foreign(40);
    const Tensor whole = Tensor::zeros({40});
    std::vector<Tensor> from{whole, whole.lazy_clone(), Tensor::zeros({40})};
    for (index_t first : {index_t{0}, pick(20)}) {
      from.push_back(
          Tensor::from_blob(foreign.data() + first, DType::float64, {20}, {1}, {}, first == 0));
    }
    from.push_back(from[4].lazy_clone());
    const Storage segment = Storage::shared_memory(320);
    const Storage again = Storage::attach_shared_memory(segment.shared_descriptor());
    for (const Storage& s : {segment, again}) from.push_back(Tensor(s, DType::float64, {40}, {1}));
    std::vector<Tensor> tensors;
    for (index_t i = 0, n = 1 + pick(30); i < n; ++i) {
      const Tensor& t = from[static_cast<std::size_t>(pick(static_cast<index_t>(from.size())))];
      const index_t first = pick(20), last = first + pick(21 - first);
      tensors.push_back(t(slice(first, last, 1 + pick(3))));
      if (pick(4) == 0) tensors.back() = tensors.back()(slice({}, {}, -1));
    }
    const FoundPairs pairs(tensors);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      for (std::size_t j = 0; j < tensors.size(); ++j) {
        if (i == j) continue;
        EXPECT_EQ(pairs.found[i][j], may_share_memory(tensors[i], tensors[j]))
            << "round " << round << ": " << i << ", " << j;
      }
    }
  }
}

TEST(OverlapFinder, AsksOnlyAboutNeighbours) {
  const Tensor whole = Tensor::zeros({1000});
  auto memory = std::make_shared<std::vector<double>>(1000);
  const Tensor one = Tensor::zeros({1});
  std::vector<Tensor> tensors;
  for (index_t i = 0; i < 1000; ++i) {
    tensors.push_back(whole(slice(i, i + 1)));
    tensors.push_back(Tensor::zeros({1}));
    tensors.push_back(one.lazy_clone());
    tensors.push_back(Tensor::from_blob(
        memory->data() + i, DType::float64, {1}, {1}, [memory] {}, true));
  }
  EXPECT_EQ(FoundPairs(tensors).n_asked, 0u);
}

TEST(Overlap, ManyUpdatedVariablesOfOneOriginAreIndependent) {
  const Tensor origin = vector_of({1, 2});
  std::vector<SharedVariable> variables;
  Updates updates;
  for (int i = 0; i < 100; ++i) {
    variables.push_back(shared(origin));
    updates.emplace_back(variables.back(), variables.back().var() + x);
  }
  const Function f = function({x}, {}, {.updates = updates});
  f(origin);
  f(variables[3].get_value({.borrow = true}));
  for (const SharedVariable& v : variables) EXPECT_EQ(values(v.get_value()), (Numbers{4, 8}));
  EXPECT_EQ(values(origin), (Numbers{1, 2}));
}

}  // namespace
}  // namespace palimpsest
