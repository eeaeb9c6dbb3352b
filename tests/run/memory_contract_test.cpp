// SPDX-License-Identifier: Apache-2.0
// Sharing of memory after a call. Checks Storages and addresses, not only values.
#include <gtest/gtest.h>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/vectors.hpp"

namespace palimpsest {
namespace {

using testing::values;
using testing::vector_of;

struct MemoryContract : ::testing::Test {
  Variable x = make_input({DType::float64, {kUnknown}, {}}, "x");
  Variable y = make_input({DType::float64, {kUnknown}, {}}, "y");
  // x as workspace, and the argument's memory as result where possible.
  Function lent = function({In(x, {.is_mutable = true}), y}, {Out(x + y, {.borrow = true})});
  const Out first_half = Out(ops::index(x, {slice(0, 1)}));

  static CallReport report_of(const Function& f, std::vector<Tensor> arguments,
                              std::vector<Tensor>* results = nullptr) {
    CallReport report;
    std::vector<Tensor> local(f.output_count());
    f.call(arguments, results ? *results : local, &report);
    return report;
  }
};

using EntryTable = MemoryContract;
using OutputTable = MemoryContract;

// Kernels take scratch of fixed size from their thread, which keeps it.
TEST_F(MemoryContract, PlansAnnounceTheScratchThatThreadsKeep) {
  for (const index_t threads : {1, 3}) {
    const ConfigScope scope({.threads = threads});
    const Function f = function({x}, ops::exp(x) * 2.0);
    EXPECT_EQ(f.plan(std::vector<Tensor>{vector_of({1, 2})}).external_bytes, threads * 2097152);
    const Function none = function({x}, x);
    EXPECT_EQ(none.plan(std::vector<Tensor>{vector_of({1, 2})}).external_bytes, 0);
  }
}

// -- the table of entries ------------------------------------------------------------------------

TEST_F(EntryTable, ArgumentThatPassesUnchangedIsUsedByReferenceWithAnyStrides) {
  const Function f = function({x}, {Out(x * 2.0, {.borrow = true})});
  const Tensor big = Tensor::arange(1000, DType::float64);
  f(big(slice(999, {}, -3)));
  const MemoryScope scope;
  EXPECT_EQ(f(big(slice(999, {}, -3)))[0].at<double>({1}), 1992.0);
  EXPECT_EQ(scope.calls(), 0u);
  EXPECT_EQ(report_of(f, {big(slice(999, {}, -3))}).entry_copy_bytes, 0);
}

TEST_F(EntryTable, ConvertedOrMovedArgumentIsAPrivateCopyThatMayBeOverwritten) {
  Tensor ints = Tensor::ones({2}, DType::int32);
  EXPECT_EQ(values(lent(ints, vector_of({1, 2}))[0]), (std::vector<double>{2, 3}));
  EXPECT_EQ(ints.to_vector<int>(), (std::vector<int>{1, 1}));
  Tensor elsewhere = Tensor::ones({2}, DType::float64, Device::parse("cpu:1"));
  EXPECT_EQ(values(lent(elsewhere, vector_of({1, 2}))[0]), (std::vector<double>{2, 3}));
  EXPECT_EQ(values(elsewhere), (std::vector<double>{1, 1}));
}

TEST_F(EntryTable, ArgumentThatIsNotLentIsNeverWritten) {
  SharedVariable s = shared(vector_of({1, 1}));
  const Function f =
      function({In(x, {.is_mutable = true}), y}, {(x + y) * y}, {.updates = {{s, s.var() + y}}});
  const Tensor a = vector_of({1, 2});
  f(a, a);  // overlaps the lent argument
  EXPECT_EQ(values(a), (std::vector<double>{1, 2}));
  const Tensor inside = s.get_value({.borrow = true});
  f(vector_of({0, 0}), inside);  // overlaps the container
  EXPECT_EQ(values(inside), (std::vector<double>{2, 3}));
  EXPECT_EQ(values(s.get_value()), (std::vector<double>{4, 6}));
}

TEST_F(EntryTable, LentArgumentThatOwnsItsDataIsOverwritten) {
  Tensor a = vector_of({1, 2});
  const void* address = a.raw_data();
  const Tensor r = lent(a, vector_of({3, 4}))[0];
  EXPECT_EQ(r.raw_data(), address);
  EXPECT_EQ(values(a), (std::vector<double>{4, 6}));
  EXPECT_EQ(report_of(lent, {a, a.clone()}).entry_copy_bytes, 0);
}

TEST_F(EntryTable, LentArgumentWhoseDataACloneSharesKeepsItsValue) {
  const Tensor a = vector_of({1, 2}), clone = a.lazy_clone();
  const void* address = a.raw_data();
  const Tensor r = lent(a, vector_of({3, 4}))[0];
  EXPECT_EQ(values(r), (std::vector<double>{4, 6}));
  EXPECT_EQ(values(a), (std::vector<double>{1, 2}));
  EXPECT_EQ(values(clone), (std::vector<double>{1, 2}));
  EXPECT_EQ(a.raw_data(), address);
  EXPECT_FALSE(shares_storage(r, a));
  EXPECT_EQ(report_of(lent, {a, vector_of({3, 4})}).entry_copy_bytes, 16);
}

TEST_F(EntryTable, LentArgumentThatIsForeignReadOnlyIsCopied) {
  std::vector<double> memory{1, 2};
  const Tensor a = Tensor::from_blob(memory.data(), DType::float64, {2}, {1}, {}, false);
  EXPECT_EQ(values(lent(a, vector_of({3, 4}))[0]), (std::vector<double>{4, 6}));
  EXPECT_EQ(memory, (std::vector<double>{1, 2}));
  EXPECT_EQ(a.raw_data(), memory.data());
  EXPECT_EQ(report_of(lent, {a, vector_of({3, 4})}).entry_copy_bytes, 16);
}

TEST_F(EntryTable, LentForeignMemoryThatMayBeWrittenIsOverwritten) {
  std::vector<double> memory{1, 2};
  const Tensor a = Tensor::from_blob(memory.data(), DType::float64, {2}, {1}, {}, true);
  EXPECT_EQ(lent(a, vector_of({3, 4}))[0].raw_data(), memory.data());
  EXPECT_EQ(memory, (std::vector<double>{4, 6}));
}

TEST_F(EntryTable, LentArgumentWhoseElementsOverlapIsCopied) {
  const Tensor one = vector_of({5}), a = one.expand({3});
  EXPECT_EQ(values(lent(a, vector_of({1, 2, 3}))[0]), (std::vector<double>{6, 7, 8}));
  EXPECT_EQ(one.item<double>(), 5.0);
}

TEST_F(EntryTable, ContainerWhoseDataACloneSharesGetsANewBuffer) {
  SharedVariable s = shared(vector_of({1, 2}));
  const Function f = function({}, {}, {.updates = {{s, s.var() + 1.0}}});
  f();
  const Storage storage = s.container().value().storage();
  const void* address = s.container().value().raw_data();
  const Tensor clone = s.get_value();
  const CallReport report = report_of(f, {});
  EXPECT_EQ(report.entry_copy_bytes, 16);
  EXPECT_EQ(values(clone), (std::vector<double>{2, 3}));
  EXPECT_EQ(clone.raw_data(), address);
  EXPECT_EQ(values(s.get_value()), (std::vector<double>{3, 4}));
  EXPECT_NE(s.container().value().raw_data(), address);
  EXPECT_TRUE(s.container().value().storage().is(storage));
}

TEST_F(EntryTable, PlanBoundsTheCopiesThatAStateCanForce) {
  const Tensor a = vector_of({1, 2});
  const Plan& plan = lent.plan(std::vector<Tensor>{a, a});
  EXPECT_EQ(plan.entry_copy_bytes, 16);
  EXPECT_LE(report_of(lent, {a, a}).entry_copy_bytes, plan.entry_copy_bytes);
}

// -- the table of outputs: computed by a step ----------------------------------------------------

TEST_F(OutputTable, ComputedResultIsOwnedByTheCaller) {
  const Function f = function({x}, {x * 2.0});
  const Tensor first = f(vector_of({1}))[0], second = f(vector_of({2}))[0];
  EXPECT_FALSE(shares_storage(first, second));
  EXPECT_EQ(first.item<double>(), 2.0);
  EXPECT_EQ(first.storage().use_count(), 1u);  // no other owner
  EXPECT_FALSE(first.is_shared());
}

TEST_F(OutputTable, BorrowedComputedResultIsTheFramesAndRewritten) {
  const Function f = function({x}, {Out(x * 2.0, {.borrow = true})});
  const Tensor a = vector_of({1, 2}), b = vector_of({5, 6});
  const Tensor first = f(a)[0];
  const MemoryScope scope;
  const Tensor second = f(b)[0];
  EXPECT_EQ(scope.calls(), 0u);
  EXPECT_EQ(first.raw_data(), second.raw_data());
  EXPECT_EQ(values(first), (std::vector<double>{10, 12}));
}

TEST_F(OutputTable, CloneOfABorrowedResultKeepsItsValue) {
  const Function f = function({x}, {Out(x * 2.0, {.borrow = true})});
  const Tensor clone = f(vector_of({1, 2}))[0].lazy_clone();
  f(vector_of({5, 6}));
  EXPECT_EQ(values(clone), (std::vector<double>{2, 4}));
}

// -- an argument, or a view of one, not overwritten ----------------------------------------------

TEST_F(OutputTable, ArgumentAsResultIsALazyClone) {
  const Function f = function({x}, {Out(x)});
  Tensor a = vector_of({1, 2});
  const MemoryScope scope;
  Tensor r = f(a)[0];
  EXPECT_EQ(scope.calls(), 0u);
  EXPECT_FALSE(shares_storage(r, a));
  EXPECT_TRUE(r.storage().shares_data(a.storage()));
  r.fill(7.0);
  EXPECT_EQ(values(a), (std::vector<double>{1, 2}));
  a.fill(8.0);
  EXPECT_EQ(values(r), (std::vector<double>{7, 7}));
}

TEST_F(OutputTable, BorrowNeedsBothSidesToShowTheArgumentItself) {
  const Tensor a = vector_of({1, 2});
  const Out out(x, {.borrow = true});
  EXPECT_FALSE(shares_storage(function({x}, {out})(a)[0], a));
  const In loan(x, {.is_mutable = false, .borrow = true});
  EXPECT_TRUE(shares_storage(function({loan}, {out})(a)[0], a));
  EXPECT_FALSE(shares_storage(function({loan}, {Out(x)})(a)[0], a));
}

// In(a), Out(a(0, all), {.borrow = true}) shares no Storage with the argument.
TEST_F(OutputTable, BorrowedRowOfAnArgumentSharesNoStorageWithIt) {
  const Variable m = make_input({DType::float64, {kUnknown, kUnknown}, {}}, "m");
  const Function f = function({m}, {Out(ops::index(m, {index_t{0}}), {.borrow = true})});
  const Tensor a = Tensor::ones({3, 4});
  const Tensor r = f(a)[0];
  EXPECT_FALSE(shares_storage(r, a));
  EXPECT_EQ(r.shape(), (Extents{4}));
}

TEST_F(OutputTable, SmallViewOfAnArgumentIsACompactCopy) {
  const Function f = function({x}, {Out(ops::index(x, {slice(0, 2)}))});
  const Tensor a = Tensor::arange(100, DType::float64);
  const Tensor r = f(a)[0];
  EXPECT_FALSE(r.storage().shares_data(a.storage()));
  EXPECT_EQ(r.storage().nbytes(), 16u);
  const Tensor half = function({x}, {Out(ops::index(x, {slice(0, 60)}))})(a)[0];
  EXPECT_TRUE(half.storage().shares_data(a.storage()));
}

TEST_F(OutputTable, ArgumentThatIsASmallViewOfItsStorageIsCopied) {
  const Function f = function({x}, {Out(x)});
  const Tensor a = Tensor::arange(100, DType::float64)(slice(0, 10));
  const Tensor r = f(a)[0];
  EXPECT_FALSE(r.storage().shares_data(a.storage()));
  EXPECT_EQ(r.storage().nbytes(), 80u);
  EXPECT_EQ(report_of(f, {a}).entry_copy_bytes, 80);
  const Argument argument(a);
  const Plan plan = f.plan_of_call({&argument, 1});
  EXPECT_EQ(plan.entry_copy_bytes, 80);
  EXPECT_EQ(plan.peak_bytes, f.plan({&a, 1}).peak_bytes + 80);
  EXPECT_EQ(plan.outputs[0].how, Handover::compact);
}

TEST_F(OutputTable, ViewOfForeignMemoryIsACopy) {
  std::vector<double> memory{1, 2};
  const Tensor a = Tensor::from_blob(memory.data(), DType::float64, {2}, {1}, {}, true);
  const Tensor r = function({x}, {Out(x)})(a)[0];
  memory[0] = 9;
  EXPECT_EQ(values(r), (std::vector<double>{1, 2}));
}

// -- in the memory of an argument that was overwritten -------------------------------------------

TEST_F(OutputTable, ResultInALentArgumentIsAnIndependentLazyClone) {
  const Function f = function({In(x, {.is_mutable = true})}, {Out(x + 1.0)});
  Tensor a = vector_of({1, 2});
  const void* address = a.raw_data();
  const MemoryScope scope;
  const Tensor r = f(a)[0];
  EXPECT_EQ(scope.calls(), 0u);
  EXPECT_EQ(r.raw_data(), address);  // no copy
  EXPECT_FALSE(shares_storage(r, a));
  a.fill(0.0);
  EXPECT_EQ(values(r), (std::vector<double>{2, 3}));
}

TEST_F(OutputTable, BorrowedResultInALentArgumentIsThatStorage) {
  Tensor a = vector_of({1, 2});
  EXPECT_TRUE(shares_storage(lent(a, vector_of({1, 1}))[0], a));
}

// -- a container, not updated --------------------------------------------------------------------

TEST_F(OutputTable, ContainerAsResultIsALazyCloneUnlessBorrowed) {
  SharedVariable s = shared(vector_of({1, 2}));
  Tensor r = function({}, {Out(s)})()[0];
  EXPECT_FALSE(shares_storage(r, s.container().value()));
  EXPECT_TRUE(r.storage().shares_data(s.container().value().storage()));
  r.fill(9.0);
  EXPECT_EQ(values(s.get_value()), (std::vector<double>{1, 2}));
  const Tensor own = function({}, {Out(s, {.borrow = true})})()[0];
  EXPECT_TRUE(shares_storage(own, s.container().value()));
}

TEST_F(OutputTable, SmallViewOfAContainerIsACompactCopy) {
  SharedVariable s = shared(Tensor::arange(100, DType::float64));
  const Tensor r = function({}, {ops::index(s.var(), {slice(0, 3)})})()[0];
  EXPECT_EQ(r.storage().nbytes(), 24u);
  EXPECT_FALSE(r.storage().shares_data(s.container().value().storage()));
}

// -- a container that is updated -----------------------------------------------------------------

TEST_F(OutputTable, OldValueOfAnUpdatedContainerComesInItsOldStorage) {
  for (const bool borrow : {false, true}) {
    SharedVariable s = shared(vector_of({1, 2}));
    const Storage old = s.container().value().storage();
    const Function f =
        function({}, {Out(s, {.borrow = borrow})}, {.updates = {{s, s.var() * 2.0}}});
    const Tensor r = f()[0];
    EXPECT_TRUE(r.storage().is(old));
    EXPECT_FALSE(shares_storage(r, s.container().value()));
    EXPECT_EQ(values(r), (std::vector<double>{1, 2}));
    EXPECT_EQ(values(s.get_value()), (std::vector<double>{2, 4}));
    f();
    EXPECT_EQ(values(r), (std::vector<double>{1, 2}));
  }
}

// -- a constant ----------------------------------------------------------------------------------

TEST_F(OutputTable, ConstantAsResultIsALazyCloneEvenIfBorrowed) {
  for (const bool borrow : {false, true}) {
    const Function f = function({}, {Out(constant(vector_of({1, 1})), {.borrow = borrow})});
    const MemoryScope scope;
    Tensor r = f()[0];
    EXPECT_EQ(scope.calls(), 0u);
    const Tensor other = f()[0];
    EXPECT_FALSE(shares_storage(r, other));
    EXPECT_EQ(r.raw_data(), other.raw_data());
    r.fill(4.0);
    EXPECT_EQ(values(f()[0]), (std::vector<double>{1, 1}));
  }
}

// -- equal to, or overlapping, another output or update ------------------------------------------

TEST_F(OutputTable, OfEqualResultsOneOwnsAndTheOthersAreClones) {
  const Variable e = x + y;
  auto r = function({x, y}, {e, e, ops::reshape(e, {2, 1})})(vector_of({1, 2}), vector_of({3, 4}));
  EXPECT_FALSE(shares_storage(r[0], r[1]));
  EXPECT_FALSE(shares_storage(r[0], r[2]));
  EXPECT_FALSE(shares_storage(r[1], r[2]));
  EXPECT_EQ(r[0].raw_data(), r[1].raw_data());
  EXPECT_EQ(r[0].raw_data(), r[2].raw_data());
  r[0].fill(0.0);
  EXPECT_EQ(values(r[1]), (std::vector<double>{4, 6}));
  EXPECT_EQ(values(r[2]), (std::vector<double>{4, 6}));
}

TEST_F(OutputTable, ResultAndUpdateOfOneExpressionAreIndependent) {
  SharedVariable s = shared(vector_of({1, 2}));
  const Variable e = s.var() + x;
  const Function f = function({x}, {e}, {.updates = {{s, e}}});
  Tensor r = f(vector_of({1, 1}))[0];
  EXPECT_FALSE(shares_storage(r, s.container().value()));
  r.fill(9.0);
  EXPECT_EQ(values(s.get_value()), (std::vector<double>{2, 3}));
  const Tensor next = f(vector_of({1, 1}))[0];
  EXPECT_EQ(values(r), (std::vector<double>{9, 9}));
  EXPECT_EQ(values(next), (std::vector<double>{3, 4}));
}

TEST_F(OutputTable, BorrowedAndOwnedResultsOfOneExpressionAreIndependentOfTheNextCall) {
  const Variable e = x * 2.0;
  const Function f = function({x}, {Out(e, {.borrow = true}), Out(e)});
  const auto r = f(vector_of({1}));
  f(vector_of({5}));
  EXPECT_EQ(r[1].item<double>(), 2.0);
}

TEST_F(OutputTable, OfOneExpressionTheOwnedResultHasTheMemoryWhateverTheOrder) {
  const Variable e = x * 2.0;
  for (const bool is_first_borrowed : {false, true}) {
    const Function f = function(
        {x}, {Out(e, {.borrow = is_first_borrowed}), Out(e, {.borrow = !is_first_borrowed})});
    const Plan& plan = f.plan(std::vector<Tensor>{vector_of({1, 2})});
    EXPECT_EQ(plan.outputs[is_first_borrowed ? 1 : 0].how, Handover::own);
    EXPECT_EQ(plan.outputs[is_first_borrowed ? 0 : 1].how, Handover::clone);
  }
}

TEST_F(OutputTable, BorrowNeverChangesAResult) {
  SharedVariable s = shared(vector_of({1, 2}));
  for (const bool borrow : {false, true}) {
    const Function f =
        function({x}, {Out(x, {.borrow = borrow}), Out(x + s.var(), {.borrow = borrow}),
                       Out(s, {.borrow = borrow})});
    const auto r = f(vector_of({3, 4}));
    EXPECT_EQ(values(r[0]), (std::vector<double>{3, 4}));
    EXPECT_EQ(values(r[1]), (std::vector<double>{4, 6}));
    EXPECT_EQ(values(r[2]), (std::vector<double>{1, 2}));
  }
}

// The rules hold for each device.
TEST_F(OutputTable, ContractHoldsOnAnotherDevice) {
  const Device device = Device::parse("cpu:1");
  const Variable v = make_input({DType::float64, {kUnknown}, device}, "v");
  SharedVariable s = shared(vector_of({1, 2}), {.device = device});
  const Function f = function({v}, {Out(v), Out(v + s.var())}, {.updates = {{s, s.var() + v}}});
  Tensor a = vector_of({3, 4}).to(device);
  const auto r = f(a);
  EXPECT_EQ(r[0].device(), device);
  EXPECT_FALSE(shares_storage(r[0], a));
  EXPECT_TRUE(r[0].storage().shares_data(a.storage()));
  EXPECT_EQ(values(r[1]), (std::vector<double>{4, 6}));
  EXPECT_EQ(values(s.get_value()), (std::vector<double>{4, 6}));
}

// In(a) not lent, 2 * a: unchanged.
TEST_F(MemoryContract, ArgumentStaysUnchanged) {
  const Tensor a = vector_of({1, 2});
  function({x}, {2.0 * x})(a);
  EXPECT_EQ(values(a), (std::vector<double>{1, 2}));
}

}  // namespace
}  // namespace palimpsest
