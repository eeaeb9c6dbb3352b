// SPDX-License-Identifier: Apache-2.0
// Updates of shared variables, and arguments that overlap. Checks Storages, not only values.
#include <gtest/gtest.h>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/vectors.hpp"

namespace palimpsest {
namespace {

using testing::values;
using testing::vector_of;
std::vector<double> values(const SharedVariable& s) { return values(s.get_value()); }
Storage storage(const SharedVariable& s) { return s.container().value().storage(); }
const void* address(const SharedVariable& s) { return s.container().value().raw_data(); }

struct UpdateTest : ::testing::Test {
  Variable x = make_input({DType::float64, {kUnknown}, {}}, "x");
  Variable y = make_input({DType::float64, {kUnknown}, {}}, "y");
  SharedVariable a = shared(vector_of({0.5, 0.5}), {.name = "a"});
  SharedVariable b = shared(vector_of({-0.5, -0.5}), {.name = "b"});
  // Of any length.
  SharedVariable c = shared(vector_of({0.5, 0.5}), {.name = "c", .shape = std::nullopt});
  SharedVariable d = shared(vector_of({-0.5, -0.5}), {.name = "d", .shape = std::nullopt});

  // No two containers, and no container and result, share a Storage after a call.
  void expect_independent(const std::vector<Tensor>& results = {}) const {
    EXPECT_FALSE(storage(a).is(storage(b)));
    for (const Tensor& r : results) {
      EXPECT_FALSE(r.storage().is(storage(a)));
      EXPECT_FALSE(r.storage().is(storage(b)));
    }
  }
};

// -- rows ----------------------------------------------------------------------------------------

// A then has B's value in the memory of B, and the reverse.
TEST_F(UpdateTest, ExchangedContainersExchangeTheirStorages) {
  const Storage of_a = storage(a), of_b = storage(b);
  const void *at_a = address(a), *at_b = address(b);
  const Function f = function({}, {}, {.updates = {{a, b}, {b, a}}});
  const MemoryScope scope;
  f();
  EXPECT_EQ(scope.calls(), 0u);
  EXPECT_EQ(values(a), (std::vector<double>{-0.5, -0.5}));
  EXPECT_EQ(values(b), (std::vector<double>{0.5, 0.5}));
  EXPECT_TRUE(storage(a).is(of_b));
  EXPECT_TRUE(storage(b).is(of_a));
  EXPECT_EQ(address(a), at_b);
  EXPECT_EQ(address(b), at_a);
}

TEST_F(UpdateTest, ContainersAreExchangedAsWholeViewsToo) {
  const Storage of_a = storage(a), of_b = storage(b);
  const std::vector<Index> backwards{slice({}, {}, -1)};
  a.set_value(vector_of({1, 2}));
  const Storage of_new_a = storage(a);
  function(
      {}, {},
      {.updates = {{a, ops::index(b.var(), backwards)}, {b, ops::index(a.var(), backwards)}}})();
  EXPECT_TRUE(storage(a).is(of_b));
  EXPECT_TRUE(storage(b).is(of_new_a));
  EXPECT_EQ(values(b), (std::vector<double>{2, 1}));
}

TEST_F(UpdateTest, UpdateByAContainerThatIsNotUpdatedIsALazyClone) {
  const MemoryScope scope;
  function({}, {}, {.updates = {{a, b}}})();
  EXPECT_EQ(scope.calls(), 0u);
  expect_independent();
  EXPECT_TRUE(storage(a).shares_data(storage(b)));
  EXPECT_EQ(values(a), values(b));
  b.modify([](Tensor& t) { t.fill(9.0); });
  EXPECT_EQ(values(a), (std::vector<double>{-0.5, -0.5}));
  a.modify([](Tensor& t) { t.fill(8.0); });
  EXPECT_EQ(values(b), (std::vector<double>{9, 9}));
}

TEST_F(UpdateTest, UpdateByAnArgumentIsALazyClone) {
  const Function f = function({x}, {}, {.updates = {{a, x}, {b, ops::reshape(x, {-1})}}});
  Tensor t = vector_of({7, 8});
  const MemoryScope scope;
  f(t);
  EXPECT_EQ(scope.calls(), 0u);
  EXPECT_FALSE(storage(a).is(t.storage()));
  EXPECT_TRUE(storage(a).shares_data(t.storage()));
  expect_independent({t});
  t.fill(0.0);
  EXPECT_EQ(values(a), (std::vector<double>{7, 8}));
  EXPECT_EQ(values(b), (std::vector<double>{7, 8}));
}

TEST_F(UpdateTest, UpdateByForeignMemoryIsACopy) {
  std::vector<double> memory{1, 2};
  const Tensor t = Tensor::from_blob(memory.data(), DType::float64, {2}, {1}, {}, true);
  function({x}, {}, {.updates = {{a, x}}})(t);
  memory[0] = 9;
  EXPECT_EQ(values(a), (std::vector<double>{1, 2}));
}

TEST_F(UpdateTest, UpdateByElementsThatOverlapIsDense) {
  const Function f = function({x}, {}, {.updates = {{c, x}}});
  f(vector_of({3}).expand({4}));
  EXPECT_FALSE(has_internal_overlap(c.container().value()));
  EXPECT_EQ(values(c), (std::vector<double>{3, 3, 3, 3}));
  const Variable stretched = ops::broadcast_to(ops::sum(x), {4});
  function({x}, {}, {.updates = {{d, ops::specify_shape(stretched, {4})}}})(vector_of({1, 2}));
  EXPECT_FALSE(has_internal_overlap(d.container().value()));
  EXPECT_EQ(values(d), (std::vector<double>{3, 3, 3, 3}));
}

TEST_F(UpdateTest, OneExpressionForTwoContainersIsOneValueAndAClone) {
  const Variable e = ops::roll(x, 1, 0);
  const Function f = function({x}, {}, {.updates = {{a, e}, {b, e}}});
  const Tensor argument = vector_of({1, 2});
  const MemoryScope scope;
  f(argument);
  EXPECT_EQ(scope.calls(), 1u);
  expect_independent();
  EXPECT_TRUE(storage(a).shares_data(storage(b)));
  a.modify([](Tensor& t) { t.fill(0.0); });
  EXPECT_EQ(values(b), (std::vector<double>{2, 1}));
}

TEST_F(UpdateTest, SmallViewOfAnIntermediateIsCompactAndABigOneIsHandedOver) {
  const Variable rolled = ops::roll(x, 1, 0);
  const Function f = function({x}, {},
                              {.updates = {{a, ops::index(rolled, {slice(0, 2)})},
                                           {d, ops::index(rolled, {slice(0, 60)})}}});
  f(Tensor::arange(100, DType::float64));
  EXPECT_EQ(storage(a).nbytes(), 16u);
  EXPECT_EQ(values(a), (std::vector<double>{99, 0}));
  EXPECT_EQ(storage(d).nbytes(), 800u);
  EXPECT_EQ(d.get_value().numel(), 60);
  EXPECT_FALSE(d.container().value().is_shared());
}

TEST_F(UpdateTest, OldValueAsResultGoesToTheCallerInItsStorage) {
  const Storage old = storage(a);
  const Function f = function({x}, {a}, {.updates = {{a, a.var() + x}}});
  const Tensor r = f(vector_of({1, 1}))[0];
  EXPECT_TRUE(r.storage().is(old));
  expect_independent({r});
  EXPECT_EQ(values(r), (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(values(a), (std::vector<double>{1.5, 1.5}));
}

// -- the pool of old buffers ---------------------------------------------------------------------

TEST_F(UpdateTest, UpdateThatWorksInPlaceRunsInItsOwnBuffer) {
  const Function f = function({x}, {}, {.updates = {{a, a.var() * 2.0 + x}}});
  const Storage own = storage(a);
  const void* at = address(a);
  const Tensor t = vector_of({1, 1});
  f(t);
  const MemoryScope scope;
  f(t);
  EXPECT_EQ(scope.calls(), 0u);
  EXPECT_TRUE(storage(a).is(own));
  EXPECT_EQ(address(a), at);
  EXPECT_EQ(values(a), (std::vector<double>{5, 5}));
}

// A value computed in the container's own memory may have other strides.
TEST_F(UpdateTest, UpdateInPlaceThatIsAViewWithOtherStridesIsTheNewValue) {
  SharedVariable m = shared(Tensor::from(std::vector<double>{1, 2, 3, 4}, Extents{2, 2}));
  const Storage own = m.container().value().storage();
  const std::uint64_t version = m.container().version();
  const Function f = function({}, {}, {.updates = {{m, ops::transpose(m.var() * 2.0)}}});
  f();
  EXPECT_EQ(values(m), (std::vector<double>{2, 6, 4, 8}));
  f();
  EXPECT_EQ(values(m), (std::vector<double>{4, 8, 12, 16}));
  EXPECT_EQ(m.container().version(), version + 2);
  EXPECT_TRUE(m.container().value().storage().is(own));
}

// Of many updates in place, those whose memory a clone shares get new memory; the clones keep their
// values.
TEST_F(UpdateTest, OfManyInPlaceThoseThatAreSharedGetMemoryOfTheirOwn) {
  std::vector<SharedVariable> list;
  std::vector<Storage> own;
  Updates updates;
  for (int i = 0; i < 50; ++i) {
    list.push_back(shared(vector_of({1.0 * i, 2.0})));
    updates.emplace_back(list.back(), list.back().var() + x);
  }
  const Function f = function({x}, {}, {.updates = updates});
  f(vector_of({1, 1}));
  const Tensor clone = list[7].get_value(), lent = list[8].get_value({.borrow = true});
  CallReport report;
  const Tensor one = vector_of({1, 1});
  f.call({&one, 1}, {}, &report);
  EXPECT_EQ(report.entry_copy_bytes, 16);
  EXPECT_EQ(values(clone), (std::vector<double>{8, 3}));
  EXPECT_EQ(values(lent), (std::vector<double>{10, 4}));
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(values(list[static_cast<std::size_t>(i)]), (std::vector<double>{i + 2.0, 4}));
  }
  // If the memory of one of them is passed as an argument, it is not written before it is read.
  f(list[9].get_value({.borrow = true}));
  EXPECT_EQ(values(list[9]), (std::vector<double>{22, 8}));
  EXPECT_EQ(values(list[49]), (std::vector<double>{62, 8}));
  // The same bytes, from another container.
  const Tensor inside = list[3].get_value({.borrow = true});
  f(Tensor::from_blob(const_cast<void*>(inside.raw_data()), DType::float64, {2}, {1}, {}, false));
  EXPECT_EQ(values(list[3]), (std::vector<double>{2 * (5 + 11.0), 16}));
  EXPECT_EQ(values(list[49]), (std::vector<double>{62 + 16.0, 16}));
}

TEST_F(UpdateTest, ADefaultOfTwoArgumentsIsReadByBothAndUpdatedOnce) {
  const Function f = function({In(x, {.value = a.container(), .implicit = false}),
                               In(y, {.value = a.container(), .implicit = false})},
                              {x * 1.0, y * 2.0}, {.updates = {{a, a.var() + x}}});
  auto r = f();
  EXPECT_EQ(values(r[0]), (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(values(r[1]), (std::vector<double>{1, 1}));
  EXPECT_EQ(values(a), (std::vector<double>{1, 1}));
  r = f(vector_of({3, 4}));
  EXPECT_EQ(values(r[1]), (std::vector<double>{2, 2}));
  EXPECT_EQ(values(a), (std::vector<double>{4, 5}));
}

// A <- B, B <- A + 1 moves and writes without allocating.
TEST_F(UpdateTest, OneContainerMovesAndTheOtherIsWrittenIntoTheFreedMemory) {
  const Storage of_a = storage(a), of_b = storage(b);
  const Function f = function({}, {}, {.updates = {{a, b}, {b, a.var() + 1.0}}});
  const MemoryScope scope;
  f();
  EXPECT_EQ(scope.calls(), 0u);
  EXPECT_EQ(values(a), (std::vector<double>{-0.5, -0.5}));
  EXPECT_EQ(values(b), (std::vector<double>{1.5, 1.5}));
  EXPECT_TRUE(storage(a).is(of_b));
  EXPECT_TRUE(storage(b).is(of_a));
}

TEST_F(UpdateTest, UpdateThatCannotWorkInPlaceAlternatesBetweenTwoBuffers) {
  const Function f = function({}, {}, {.updates = {{a, ops::roll(a.var(), 1, 0) + a.var()}}});
  for (int i = 0; i < 3; ++i) f();
  const MemoryScope scope;
  for (int i = 0; i < 4; ++i) f();
  EXPECT_EQ(scope.calls(), 0u);
  EXPECT_EQ(values(a), (std::vector<double>{64, 64}));
}

// -- all at once ---------------------------------------------------------------------------------

TEST_F(UpdateTest, AllValuesAreComputedFromOldOnes) {
  const Function f = function({x}, {a.var() + b.var()},
                              {.updates = {{a, a.var() + x}, {b, a.var() * b.var() + x}}});
  const Tensor r = f(vector_of({1, 1}))[0];
  EXPECT_EQ(values(r), (std::vector<double>{0, 0}));
  EXPECT_EQ(values(a), (std::vector<double>{1.5, 1.5}));
  EXPECT_EQ(values(b), (std::vector<double>{0.75, 0.75}));
}

TEST_F(UpdateTest, UpdateByItselfIsNoOperation) {
  const Storage own = storage(a);
  const auto version = a.version();
  const SharedVariable alias = a.clone();
  function({}, {}, {.updates = {{a, alias.var()}}})();
  EXPECT_TRUE(storage(a).is(own));
  EXPECT_EQ(a.version(), version);
}

// function({}, {}, {.updates = {{A, B}}}): different Storages, equal values, later writes stay
// separate.
TEST_F(UpdateTest, ContainersStayIndependentThroughManyCalls) {
  const Function copy_b = function({}, {}, {.updates = {{a, b}}});
  const Function change_a = function({}, {}, {.updates = {{a, a.var() + 1.0}}});
  const Function change_b = function({}, {}, {.updates = {{b, b.var() * 2.0}}});
  copy_b();
  change_a();
  change_b();
  expect_independent();
  EXPECT_EQ(values(a), (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(values(b), (std::vector<double>{-1, -1}));
}

TEST_F(UpdateTest, UpdatesReachAContainerThroughAnyOfItsVariables) {
  const SharedVariable alias = a.clone();
  const Function f = function({x}, {alias.var() + a.var()}, {.updates = {{alias, a.var() + x}}});
  EXPECT_EQ(values(f(vector_of({1, 1}))[0]), (std::vector<double>{1, 1}));
  EXPECT_EQ(values(a), (std::vector<double>{1.5, 1.5}));
}

TEST_F(UpdateTest, UpdateMayChangeTheShapeThatIsLeftOpen) {
  const Function f = function({x}, {}, {.updates = {{c, ops::join(0, std::vector{c.var(), x})}}});
  f(vector_of({1}));
  f(vector_of({2, 3}));
  EXPECT_EQ(values(c), (std::vector<double>{0.5, 0.5, 1, 2, 3}));
}

// -- section 9: overlap of arguments -------------------------------------------------------------

struct OverlapTest : ::testing::Test {
  Variable x = make_input({DType::float64, {kUnknown}, {}}, "x");
  Variable y = make_input({DType::float64, {kUnknown}, {}}, "y");

  // f overwrites x before y is read.
  Function overwriting = function({In(x, {.is_mutable = true}), y}, {(x + y) * y});
};

TEST_F(OverlapTest, LentArgumentThatAnotherOverlapsIsReplacedByACopy) {
  const Tensor all_of_it = Tensor::arange(4, DType::float64);
  EXPECT_EQ(values(overwriting(all_of_it(slice(0, 3)), all_of_it(slice(1, 4)))[0]),
            (std::vector<double>{1, 6, 15}));
  EXPECT_EQ(values(all_of_it), (std::vector<double>{0, 1, 2, 3}));
}

// Only functions with an overwritten input or container compare memory.
TEST_F(OverlapTest, FunctionsThatOverwriteNothingCopyNothing) {
  const Tensor a = Tensor::arange(4, DType::float64);
  const auto copied = [&](const Function& f) {
    CallReport report;
    std::vector<Tensor> results(f.output_count());
    const Tensor arguments[] = {a(slice(0, 3)), a(slice(1, 4))};
    f.call(arguments, results, &report);
    return report.entry_copy_bytes;
  };
  const In lent(x, {.is_mutable = true}), loan(y, {.is_mutable = false, .borrow = true});
  EXPECT_EQ(copied(function({x, y}, {(x + y) * y})), 0);
  EXPECT_EQ(copied(function({lent, loan}, {ops::roll(x, 1, 0) * y})), 0) << "lent for nothing";
  EXPECT_EQ(copied(overwriting), 24);
  SharedVariable s = shared(a(slice(0, 3)), {.borrow = true});
  EXPECT_EQ(copied(function({x, y}, {x + y + s.var()})), 0);
  EXPECT_EQ(copied(function({x, y}, {x + y}, {.updates = {{s, s.var() + x}}})), 24);
}

TEST_F(OverlapTest, InterleavedElementsDoNotOverlap) {
  const Tensor all_of_it = Tensor::arange(4, DType::float64);
  overwriting(all_of_it(slice(0, {}, 2)), all_of_it(slice(1, {}, 2)));
  EXPECT_EQ(values(all_of_it)[1], 1.0);
  EXPECT_NE(values(all_of_it)[0], 0.0);  // overwritten in place
}

TEST_F(OverlapTest, OfSeveralOverwrittenArgumentsTheFirstIsKept) {
  const Function f = function({In(x, {.is_mutable = true}), In(y, {.is_mutable = true})},
                              {Out(x + 1.0, {.borrow = true}), Out(y * 3.0, {.borrow = true})});
  const Tensor a = vector_of({1, 2});
  const auto r = f(a, a);
  EXPECT_EQ(values(r[0]), (std::vector<double>{2, 3}));
  EXPECT_EQ(values(r[1]), (std::vector<double>{3, 6}));
  EXPECT_TRUE(shares_storage(r[0], a));
  EXPECT_FALSE(shares_storage(r[1], a));
}

TEST_F(OverlapTest, VectorAndMatrixAreCompared) {
  const Variable m = make_input({DType::float64, {kUnknown, kUnknown}, {}}, "m");
  const Function f = function({In(x, {.is_mutable = true}), m}, {x + 1.0, ops::sum(m)});
  const Tensor a = Tensor::ones({2, 3});
  const auto r = f(a(0), a);
  EXPECT_EQ(r[1].item<double>(), 6.0);
  EXPECT_EQ(values(a), (std::vector<double>(6, 1.0)));
}

TEST_F(OverlapTest, FloatAndComplexViewsAreCompared) {
  const Variable z = make_input({DType::complex128, {kUnknown}, {}}, "z");
  const Function f = function({In(x, {.is_mutable = true}), z}, {x + 1.0, ops::sum(z)});
  const Tensor c = Tensor::ones({3}, DType::complex128);
  const auto r = f(c.view_as_real()(all, 0), c);
  EXPECT_EQ(r[1].item<std::complex<double>>(), 3.0);
  EXPECT_EQ(c.at<std::complex<double>>({0}), 1.0);
}

TEST_F(OverlapTest, ArgumentAndContainerAreCompared) {
  SharedVariable s = shared(vector_of({1, 2}));
  const Function f = function({x}, {x * 1.0}, {.updates = {{s, s.var() + x}}});
  const Tensor inside = s.get_value({.borrow = true});
  EXPECT_EQ(values(f(inside)[0]), (std::vector<double>{1, 2}));
  EXPECT_EQ(values(inside), (std::vector<double>{1, 2}));
  EXPECT_EQ(values(s), (std::vector<double>{2, 4}));
  EXPECT_FALSE(shares_storage(s.container().value(), inside));
}

TEST_F(OverlapTest, LentArgumentAndContainerAreCompared) {
  SharedVariable s = shared(vector_of({1, 2}));
  const Function f = function({In(x, {.is_mutable = true})}, {x + s.var()});
  EXPECT_EQ(values(f(s.get_value({.borrow = true}))[0]), (std::vector<double>{2, 4}));
  EXPECT_EQ(values(s), (std::vector<double>{1, 2}));
}

TEST_F(OverlapTest, LazyClonesNeverOverlap) {
  const Tensor a = vector_of({1, 2});
  EXPECT_EQ(values(overwriting(a, a.lazy_clone())[0]), (std::vector<double>{2, 8}));
  EXPECT_EQ(values(a), (std::vector<double>{1, 2}));
}

TEST_F(OverlapTest, TrustedArgumentsAreNotComparedWithOneAnother) {
  const Function f = function({In(x, {.is_mutable = true}), y}, {Out(x + y, {.borrow = true})},
                              {.trust_input = true});
  const Tensor a = vector_of({1, 2});
  EXPECT_TRUE(shares_storage(f(a, a)[0], a));
  const Function careful =
      function({In(x, {.is_mutable = true}), y}, {Out(x + y, {.borrow = true})});
  EXPECT_FALSE(shares_storage(careful(a, a)[0], a));
}

}  // namespace
}  // namespace palimpsest
