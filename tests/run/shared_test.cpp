// SPDX-License-Identifier: Apache-2.0
// Shared variables: Storages and addresses, not only values.
#include "palimpsest/run/shared.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using V = std::vector<double>;

const void* address(const SharedVariable& s) { return s.get_value({.borrow = true}).raw_data(); }
double first(const Tensor& t) { return t.at<double>({0}); }

// Foreign memory that others may write, such as a NumPy array.
Tensor foreign(std::vector<double>& memory, bool writable = true) {
  return Tensor::from_blob(memory.data(), DType::float64, {static_cast<index_t>(memory.size())},
                           {1}, {}, writable);
}

// -- constructors --------------------------------------------------------------------------------

// The three constructors of the seed, over a Tensor.
TEST(SharedVariable, BorrowsATensorOnlyWhenAsked) {
  Tensor ones = Tensor::ones({2});
  const SharedVariable by_default = shared(ones), not_lent = shared(ones, {.borrow = false}),
                       lent = shared(ones, {.borrow = true}),
                       second = shared(ones, {.borrow = true});
  ones.copy_from(Tensor::full<double>({2}, 2.0));
  EXPECT_EQ(first(by_default.get_value()), 1.0);
  EXPECT_EQ(first(not_lent.get_value()), 1.0);
  EXPECT_EQ(first(lent.get_value()), 2.0);
  EXPECT_TRUE(shares_storage(lent.container().value(), ones));
  EXPECT_EQ(address(lent), ones.raw_data());
  // A second variable that borrows the same tensor gets a separate Storage.
  EXPECT_FALSE(shares_storage(second.container().value(), ones));
  EXPECT_EQ(first(second.get_value()), 1.0);
}

// The same over foreign memory, as a NumPy array is.
TEST(SharedVariable, BorrowsForeignMemoryOnlyWhenAsked) {
  std::vector<double> memory{1, 1};
  const Tensor ones = foreign(memory);
  const SharedVariable by_default = shared(ones), not_lent = shared(ones, {.borrow = false}),
                       lent = shared(ones, {.borrow = true});
  for (double& x : memory) x += 1;
  EXPECT_EQ(first(by_default.get_value()), 1.0);
  EXPECT_EQ(first(not_lent.get_value()), 1.0);
  EXPECT_EQ(first(lent.get_value()), 2.0);
  EXPECT_EQ(address(lent), memory.data());
}

TEST(SharedVariable, WithoutBorrowTheValueIsALazyCloneThatCopiesNothing) {
  const Tensor t = Tensor::ones({1000});
  const MemoryScope scope;
  const SharedVariable s = shared(t);
  EXPECT_EQ(scope.calls(), 0u);
  EXPECT_FALSE(shares_storage(s.container().value(), t));
  EXPECT_EQ(address(s), t.raw_data());
}

TEST(SharedVariable, UpdateInPlaceShowsInTheLentTensor) {
  Tensor t = Tensor::ones({2});
  SharedVariable s = shared(t, {.borrow = true});
  function({}, {}, {.updates = {{s, s.var() + 1.0}}})();
  EXPECT_EQ(first(t), 2.0);
}

TEST(SharedVariable, FirstUpdateOfReadOnlyForeignMemoryWritesANewBuffer) {
  std::vector<double> memory{1, 1};
  SharedVariable s = shared(foreign(memory, false), {.borrow = true});
  EXPECT_EQ(address(s), memory.data());
  const Function f = function({}, {}, {.updates = {{s, s.var() + 1.0}}});
  f();
  EXPECT_EQ(memory[0], 1.0);
  EXPECT_EQ(first(s.get_value()), 2.0);
  const void* own = address(s);
  f();
  EXPECT_EQ(address(s), own);
}

TEST(SharedVariable, BorrowIsAHintWhereAConversionIsNeeded) {
  Tensor ints = Tensor::ones({2}, DType::int32);
  const SharedVariable s({DType::float64, {kUnknown}, {}}, ints, {.borrow = true});
  ints.fill(5);
  EXPECT_EQ(first(s.get_value()), 1.0);
}

TEST(SharedVariable, BorrowAcrossDevicesIsWithoutEffect) {
  Tensor t = Tensor::ones({2});
  const SharedVariable s = shared(t, {.borrow = true, .device = Device::parse("cpu:1")});
  EXPECT_EQ(s.type().device, Device::parse("cpu:1"));
  t.fill(5.0);
  EXPECT_EQ(first(s.get_value()), 1.0);
}

TEST(SharedVariable, KeepsTheExtentsOfItsValueUnlessTheyAreLeftOpen) {
  const Tensor value = Tensor::ones({1, 3});
  EXPECT_EQ(shared(value).type().str(), "float64 (1, 3)");
  EXPECT_EQ(shared(value, {.shape = std::nullopt}).type().str(), "float64 (?, ?)");
  EXPECT_EQ(shared(value, {.shape = {std::nullopt, 3}}).type().str(), "float64 (?, 3)");
  EXPECT_EQ(shared(value, {.shape = Extents{kUnknown, 3}}).type().str(), "float64 (?, 3)");
  EXPECT_EQ(shared(value, {.shape = value.shape()}).type().str(), "float64 (1, 3)");
  expect_error<ShapeError>([] { shared(Tensor::ones({2}), {.shape = Extents{3}}); },
                           "got (2,), expected float64 (3,)");
}

TEST(SharedVariable, AValueOfOtherExtentsNeedsAnOpenShape) {
  SharedVariable fixed = shared(Tensor::ones({2}), {.name = "w"});
  SharedVariable open = shared(Tensor::ones({2}), {.shape = std::nullopt});
  expect_error<ShapeError>(
      [&] {
        fixed.set_value({1.0, 2.0, 3.0});
      },
      "[shared variable 'w'] shape: got (3,), expected float64 (2,). Try "
      "{.shape = std::nullopt}");
  expect_error<ShapeError>([&] { fixed.exchange(Tensor::ones({3})); }, "{.shape = std::nullopt}");
  open.set_value({1.0, 2.0, 3.0});
  EXPECT_EQ(open.get_value().shape(), Extents{3});
}

// The extents of a computed value may be known only when a function runs.
TEST(SharedVariable, AnUpdateOfOtherExtentsFailsBeforeAnythingRuns) {
  SharedVariable s = shared(Tensor::ones({3}), {.name = "s"});
  const Variable x = dvector("x");
  const Function f = function({x}, ops::sum(x), {.updates = {{s, x * 2.0}}});
  EXPECT_EQ(f({1.0, 2.0, 3.0}).item<double>(), 6.0);
  EXPECT_EQ(s.get_value().to_vector<double>(), (std::vector<double>{2, 4, 6}));
  const auto version = s.version();
  try {
    f({1.0, 2.0});
    FAIL();
  } catch (const ShapeError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("got (2,), expected (3,)"), std::string::npos) << text;
    EXPECT_NE(text.find("the value of 's'. Try shared(value, {.shape = std::nullopt})"),
              std::string::npos)
        << text;
  }
  EXPECT_EQ(s.version(), version);
  EXPECT_EQ(s.get_value().to_vector<double>(), (std::vector<double>{2, 4, 6}));
  expect_error<ShapeError>(
      [&] {
        function({}, {}, {.updates = {{s, Tensor::ones({4})}}});
      },
      "expected float64 (3,)");
  expect_error<TypeError>(
      [&] {
        function({}, {}, {.updates = {{s, constant(V(4))}}});
      },
      "expected float64 (3,)");
  // A replacement of a shared variable has its extents as well.
  const Function g = function({x}, s + 1.0, {.givens = {{s, x}}});
  EXPECT_EQ(g({1.0, 2.0, 3.0}).tensor().shape(), Extents{3});
  expect_error<ShapeError>([&] { g({1.0, 2.0}); }, "the value of 's'. Try shared");
}

TEST(SharedVariable, AnUpdateWhoseExtentsAreCheckedRunsWithoutACopy) {
  SharedVariable s = shared(Tensor::ones({1000}), {.name = "s"});
  const Variable x = dvector("x");
  const Function f = function({x}, {}, {.updates = {{s, x * 2.0}}});
  const Tensor value = Tensor::ones({1000});
  const Plan& plan = f.plan(std::vector<Tensor>{value});
  EXPECT_EQ(plan.peak_bytes, 8000);
  f(value);
  EXPECT_EQ(first(s.get_value()), 2.0);
}

TEST(SharedVariable, NumbersAndListsOfThemAreValues) {
  EXPECT_EQ(shared(3).type().str(), "int64 ()");
  EXPECT_EQ(shared(3.0, {.borrow = true}).type().str(), "float64 ()");
  EXPECT_EQ(shared(3.0, {.borrow = true}).get_value().item<double>(), 3.0);
  EXPECT_EQ(shared(std::vector<float>{1, 2}).type().str(), "float32 (2,)");
  EXPECT_EQ(shared({1, 2, 3}).type().str(), "int64 (3,)");
}

TEST(SharedVariable, VariableAsValueIsATypeError) {
  const Variable v = make_input({DType::float64, {}, {}}, "v");
  expect_error<TypeError>([&] { shared(v); }, "Variable v");
  expect_error<TypeError>([] { shared(Tensor()); }, "undefined");
}

// A vector shared with .shape has a length in the graph.
TEST(SharedVariable, LengthIsKnownOnlyWhereTheShapeIsFixed) {
  EXPECT_EQ(shared(std::vector<double>{1, 2}).length(), 2);
  expect_error<ValueError>(
      [] {
        shared(std::vector<double>{1, 2}, {.name = "w", .shape = std::nullopt}).length();
      },
      "'w' has no length");
}

TEST(SharedVariable, AContainerCanHaveSeveralVariables) {
  SharedVariable s = shared(Tensor::ones({2}), {.name = "s"});
  SharedVariable t = s.clone();
  EXPECT_FALSE(s.var() == t.var());
  EXPECT_TRUE(s.is(t));
  t.set_value(Tensor::zeros({2}));
  EXPECT_EQ(first(s.get_value()), 0.0);
  const SharedVariable u(s.type(), s.container_ptr());
  EXPECT_TRUE(u.is(s));
  expect_error<TypeError>(
      [&] {
        SharedVariable({DType::float32, {kUnknown}, {}}, s.container_ptr());
      },
      "expected the container's, float64 (2,)");
}

TEST(SharedVariable, UndefinedHandleIsAValueError) {
  expect_error<ValueError>([] { SharedVariable().get_value(); }, "undefined");
  expect_error<ValueError>([] { SharedVariable({}, std::shared_ptr<Container>()); }, "empty");
}

TEST(SharedVariable, ValueWithOverlappingElementsIsMadeDense) {
  const SharedVariable s = shared(Tensor::ones({1}).expand({4}), {.borrow = true});
  EXPECT_FALSE(has_internal_overlap(s.get_value()));
  EXPECT_EQ(s.get_value().shape(), (Extents{4}));
}

// -- get_value -----------------------------------------------------------------------------------

TEST(SharedVariable, GetValueIsIndependentUnlessBorrowed) {
  const SharedVariable s = shared(Tensor::ones({2}));
  const MemoryScope scope;
  Tensor copy = s.get_value();
  EXPECT_EQ(scope.calls(), 0u);  // lazy
  EXPECT_FALSE(shares_storage(copy, s.container().value()));
  copy.fill(5.0);
  EXPECT_EQ(first(s.get_value()), 1.0);
  Tensor lent = s.get_value({.borrow = true});
  EXPECT_TRUE(shares_storage(lent, s.container().value()));
  lent.fill(5.0);
  EXPECT_EQ(first(s.get_value()), 5.0);
}

TEST(SharedVariable, ValueLivesWhereTheFirstOneDidUnlessTheInternalOneIsAskedFor) {
  const Device device = Device::parse("cpu:1");
  const SharedVariable s = shared(Tensor::ones({2}), {.device = device});
  EXPECT_EQ(s.get_value().device(), Device{});
  EXPECT_EQ(s.get_value({.borrow = true}).device(), Device{});
  const Tensor lazy = s.get_value({.return_internal_type = true});
  EXPECT_EQ(lazy.device(), device);
  EXPECT_FALSE(shares_storage(lazy, s.container().value()));
  const Tensor own = s.get_value({.borrow = true, .return_internal_type = true});
  EXPECT_TRUE(shares_storage(own, s.container().value()));
}

TEST(SharedVariable, WriteThroughABorrowedHandleShowsInTheNextCall) {
  const SharedVariable s = shared(Tensor::ones({2}));
  const Function f = function({}, {s.var() * 2.0});
  Tensor lent = s.get_value({.borrow = true});
  lent.fill(4.0);
  EXPECT_EQ(first(f()[0]), 8.0);
}

// s.container().value()(all) can be assigned in place; its address stays.
TEST(SharedVariable, ContainersValueCanBeAssignedInPlace) {
  const SharedVariable s = shared(Tensor::ones({2}));
  const void* before = address(s);
  s.container().value()(all).copy_from(Tensor::full<double>({2}, 9.0));
  EXPECT_EQ(address(s), before);
  EXPECT_EQ(first(s.get_value()), 9.0);
}

// -- set_value -----------------------------------------------------------------------------------

TEST(SharedVariable, SetValueDropsTheOldBufferAndNeverWritesIt) {
  SharedVariable s = shared(Tensor::ones({2}));
  const Tensor old = s.get_value({.borrow = true});
  Tensor next = Tensor::full<double>({2}, 3.0);
  s.set_value(next);
  EXPECT_EQ(first(old), 1.0);
  EXPECT_FALSE(shares_storage(s.container().value(), old));
  EXPECT_FALSE(shares_storage(s.container().value(), next));
  next.fill(4.0);
  EXPECT_EQ(first(s.get_value()), 3.0);
}

// The destructor of a value runs its owner's code, which may use the variable again.
TEST(SharedVariable, IsFreeAgainWhenAnOldValueEnds) {
  const auto replace = {
      +[](SharedVariable& s) { s.set_value(Tensor::zeros({2})); },
      +[](SharedVariable& s) { s.zero(); },
      +[](SharedVariable& s) { s.modify([](Tensor& t) { t = Tensor::zeros({2}); }); }};
  for (const auto& change : replace) {
    std::vector<double> memory{1, 2};
    int n_read = 0;
    SharedVariable s = shared(Tensor::zeros({2}));
    const auto end = [&] {
      try {
        n_read += static_cast<int>(s.get_value().numel());
      } catch (const StateError&) {
      }
    };
    s.set_value(Tensor::from_blob(memory.data(), DType::float64, {2}, {1}, end, true),
                {.borrow = true});
    EXPECT_EQ(n_read, 0);
    change(s);
    EXPECT_EQ(n_read, 2);
  }
}

TEST(SharedVariable, SetValueWithBorrowUsesTheCallersStorage) {
  SharedVariable s = shared(Tensor::ones({2}));
  Tensor next = Tensor::full<double>({2}, 3.0);
  s.set_value(next, {.borrow = true});
  EXPECT_TRUE(shares_storage(s.container().value(), next));
  SharedVariable other = shared(Tensor::ones({2}));
  other.set_value(next, {.borrow = true});
  EXPECT_FALSE(shares_storage(other.container().value(), next));
  s.set_value(s.get_value({.borrow = true}), {.borrow = true});  // its own Storage
  EXPECT_TRUE(shares_storage(s.container().value(), next));
}

TEST(SharedVariable, SetValueConvertsByTheFilter) {
  SharedVariable s = shared(Tensor::ones({2}), {.shape = std::nullopt});
  s.set_value(Tensor::full<std::int32_t>({2}, 7));
  EXPECT_EQ(first(s.get_value()), 7.0);
  s.set_value(std::vector<int>{1, 2, 3});
  EXPECT_EQ(s.get_value().numel(), 3);
  SharedVariable strict = shared(Tensor::ones({2}), {.strict = true});
  expect_error<DTypeError>([&] { strict.set_value(Tensor::ones({2}, DType::int32)); }, "int32");
  SharedVariable narrow =
      shared(Tensor::ones({1}, DType::float32), {.name = {}, .allow_downcast = true});
  narrow.set_value(Tensor::full<double>({1}, 0.1));
  EXPECT_EQ(narrow.get_value().at<float>({0}), 0.1f);
}

TEST(SharedVariable, SetValueThatFailsChangesNothing) {
  SharedVariable s = shared(Tensor::ones({2}), {.name = "w", .strict = true, .shape = Extents{2}});
  const auto version = s.version();
  const void* before = address(s);
  expect_error<ShapeError>([&] { s.set_value(Tensor::ones({3})); },
                           "[shared variable 'w'] shape: got (3,), expected float64 (2,)");
  expect_error<DTypeError>([&] { s.set_value(Tensor::ones({2}, DType::float32)); }, "float32");
  expect_error<DeviceError>(
      [&] { s.set_value(Tensor::ones({2}, DType::float64, Device::parse("cpu:1"))); }, "device");
  expect_error<TypeError>([&] { s.set_value(s.var()); }, "evaluate it first");
  EXPECT_EQ(s.version(), version);
  EXPECT_EQ(address(s), before);
  EXPECT_EQ(s.get_value().at<double>({1}), 1.0);
}

TEST(SharedVariable, SetValueOfAnInPlaceResultAllocatesNothing) {
  const Variable x = make_input({DType::float64, {kUnknown}, {}}, "x");
  const Function f = function({In(x, {.is_mutable = true})}, {Out(x + 1.0, {.borrow = true})});
  SharedVariable s = shared(Tensor::ones({1000}));
  const auto step = [&] { s.set_value(f(s.get_value({.borrow = true}))[0], {.borrow = true}); };
  step();
  const void* before = address(s);
  const MemoryScope scope;
  step();
  EXPECT_EQ(scope.calls(), 0u);
  EXPECT_EQ(address(s), before);
  EXPECT_EQ(first(s.get_value()), 3.0);
}

// -- zero, modify, exchange, versions ------------------------------------------------------------

TEST(SharedVariable, ZeroReplacesTheBufferUnlessBorrowed) {
  SharedVariable s = shared(Tensor::ones({2}));
  const Tensor handle = s.get_value({.borrow = true});
  s.zero();
  EXPECT_EQ(first(s.get_value()), 0.0);
  EXPECT_EQ(first(handle), 1.0);
  s.set_value(Tensor::ones({2}));
  const Tensor seen = s.get_value({.borrow = true});
  s.zero({.borrow = true});
  EXPECT_EQ(first(seen), 0.0);
  EXPECT_TRUE(shares_storage(seen, s.container().value()));
}

TEST(SharedVariable, ModifyWorksInPlaceAndKeepsWhatWasWrittenWhenItThrows) {
  SharedVariable s = shared(Tensor::ones({2}));
  const void* before = address(s);
  EXPECT_THROW(s.modify([](Tensor& t) {
    t.set({0}, 5.0);
    throw std::runtime_error("halfway");
  }),
               std::runtime_error);
  EXPECT_EQ(s.get_value().to_vector<double>(), (std::vector<double>{5, 1}));
  EXPECT_EQ(address(s), before);
}

TEST(SharedVariable, ModifyMayReplaceTheValueByOneThatFits) {
  SharedVariable s = shared(Tensor::ones({2}), {.shape = std::nullopt});
  Tensor other = Tensor::zeros({3});
  s.modify([&](Tensor& t) { t = other; });
  other.fill(8.0);
  EXPECT_EQ(s.get_value().to_vector<double>(), (std::vector<double>{0, 0, 0}));
  expect_error<ShapeError>([&] { s.modify([](Tensor& t) {
                                   t = Tensor::ones({1, 1});
                                 }); },
                           "got (1, 1)");
  EXPECT_EQ(s.get_value().numel(), 3);
}

TEST(SharedVariable, ExchangeMovesValuesWithoutCopies) {
  SharedVariable s = shared(Tensor::ones({1000}), {.shape = std::nullopt});
  const void* before = address(s);
  Tensor next = Tensor::zeros({1000});
  const void* of_next = next.raw_data();
  const MemoryScope scope;
  const Tensor old = s.exchange(std::move(next));
  EXPECT_EQ(scope.calls(), 0u);
  EXPECT_EQ(old.raw_data(), before);
  EXPECT_EQ(address(s), of_next);
  Tensor kept = Tensor::full<double>({2}, 7.0);
  s.exchange(kept);
  kept.fill(0.0);
  EXPECT_EQ(first(s.get_value()), 7.0);
}

TEST(SharedVariable, EveryChangeRaisesTheVersion) {
  SharedVariable s = shared(Tensor::ones({2}));
  auto version = s.version();
  const auto expect_raised = [&](const char* by) { EXPECT_GT(s.version(), version++) << by; };
  s.set_value(Tensor::zeros({2}));
  expect_raised("set_value");
  s.modify([](Tensor& t) { t.fill(3.0); });
  expect_raised("modify");
  s.exchange(Tensor::ones({2}));
  expect_raised("exchange");
  s.container().touch();
  expect_raised("touch");
  s.zero();
  expect_raised("zero");
  function({}, {}, {.updates = {{s, s.var() + 1.0}}})();
  expect_raised("update");
  function({}, {s.var() + 1.0})();
  EXPECT_EQ(s.version(), version);
}

TEST(SharedVariable, ContainerHeldByThisThreadIsAStateErrorAndNoDeadlock) {
  SharedVariable s = shared(Tensor::ones({2}), {.name = "s"});
  const Function f = function({}, {s.var() * 2.0});
  s.modify([&](Tensor&) {
    expect_error<StateError>([&] { s.get_value(); }, "'s' is held by this thread already");
    expect_error<StateError>([&] { s.set_value(1.0); }, "[set_value]");
    expect_error<StateError>([&] { f(); }, "'s'");
  });
  EXPECT_EQ(first(f()[0]), 2.0);
}

// -- default updates as a property of the variable -----------------------------------------------

TEST(SharedVariable, DefaultUpdateMustFit) {
  SharedVariable s = shared(Tensor::ones({2}), {.name = "s"});
  expect_error<TypeError>([&] { s.set_default_update(ops::sum(s.var())); },
                          "default update of shared variable 's'");
  EXPECT_FALSE(s.container().default_update().defined());
  s.set_default_update(s.var() + 1.0);
  EXPECT_TRUE(s.container().default_update().defined());
  s.set_default_update(Variable());
  EXPECT_FALSE(s.container().default_update().defined());
}

TEST(SharedVariable, DefaultUpdatesInACircleKeepNothingAlive) {
  std::weak_ptr<Container> a_cell, b_cell;
  {
    SharedVariable a = shared(Tensor::ones({2})), b = shared(Tensor::ones({2}));
    a_cell = a.container_ptr();
    b_cell = b.container_ptr();
    a.set_default_update(a.var() + b.var());
    b.set_default_update(b.var() * a.var());
  }
  EXPECT_TRUE(a_cell.expired());
  EXPECT_TRUE(b_cell.expired());
}

TEST(SharedVariable, DefaultUpdatesInALongCircleKeepNothingAlive) {
  std::weak_ptr<Container> first;
  {
    std::vector<SharedVariable> list;
    for (int i = 0; i < 100; ++i) list.push_back(shared(Tensor::ones({2})));
    for (std::size_t i = list.size(); i > 0; --i) {
      list[i - 1].set_default_update(list[i % list.size()].var() * 2.0);
    }
    first = list[0].container_ptr();
  }
  EXPECT_TRUE(first.expired());
}

// Following each use of the variable separately would take 3^n steps for n uses in sequence.
TEST(SharedVariable, DefaultUpdatesMayReadOneVariableOften) {
  SharedVariable a = shared(Tensor::ones({2})), b = shared(Tensor::ones({2}));
  a.set_default_update(a.var() * a.var() + a.var());
  b.set_default_update(a.var() + b.var());
  const Function f = function({}, b.var());
  f();
  EXPECT_EQ(b.get_value().to_vector<double>(), (std::vector<double>{2, 2}));
}

}  // namespace
}  // namespace palimpsest
