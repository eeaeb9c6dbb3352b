// SPDX-License-Identifier: Apache-2.0
// A call that fails, at any op or any allocation, leaves every container as it was,
// bit for bit and in the same Storage.
#include <gtest/gtest.h>

#include <stdexcept>

#include "compile/hook_op.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/expect_error.hpp"
#include "support/vectors.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using testing::hooked;

using testing::values;
using testing::vector_of;

// A snapshot of some containers: Storages, addresses, elements and versions.
class State {
 public:
  explicit State(std::vector<SharedVariable> of) : of_(std::move(of)) {
    for (const SharedVariable& s : of_) {
      const Tensor value = s.container().value();
      storages_.push_back(value.storage());
      elements_.push_back(values(value));
      versions_.push_back(s.version());
    }
  }
  void expect_unchanged(const std::string& after) const {
    for (std::size_t i = 0; i < of_.size(); ++i) {
      EXPECT_TRUE(of_[i].container().value().storage().is(storages_[i])) << i << after;
      EXPECT_EQ(values(of_[i].get_value()), elements_[i]) << i << after;
      EXPECT_EQ(of_[i].version(), versions_[i]) << i << after;
    }
  }

 private:
  std::vector<SharedVariable> of_;
  std::vector<Storage> storages_;
  std::vector<std::vector<double>> elements_;
  std::vector<std::uint64_t> versions_;
};

struct TransactionTest : ::testing::Test {
  Variable x = make_input({DType::float64, {kUnknown}, {}}, "x");
  SharedVariable a = shared(vector_of({1, 2}), {.name = "a"});
  SharedVariable b = shared(vector_of({10, 20}), {.name = "b"});
  int countdown = -1;  // the hook that throws, counted from the start of the call
  std::function<void()> hook = [this] {
    if (countdown-- == 0) throw std::runtime_error("boom");
  };
  static bool overwrites_a_container(const Function& f) {
    for (const Apply& node : f.graph().toposort()) {
      if (!overwritten_inputs(node).empty()) return true;
    }
    return false;
  }
};

TEST_F(TransactionTest, FailureAtAnyOpLeavesEveryContainer) {
  const Variable first = hooked(x, hook, true, 1);
  const Variable second = hooked(first * 2.0, hook, true, 2);
  const Variable third = hooked(second + a.var(), hook, true, 3);
  const Function f =
      function({x}, {third, b.var()}, {.updates = {{a, a.var() + x}, {b, b.var() + second}}});
  const Tensor t = vector_of({1, 1});
  for (int failing = 0; failing < 3; ++failing) {
    const State before({a, b});
    countdown = failing;
    EXPECT_THROW(f(t), OpError) << failing;
    before.expect_unchanged(" after hook " + std::to_string(failing));
  }
  countdown = -1;
  EXPECT_EQ(values(f(t)[0]), (std::vector<double>{3, 4}));
  EXPECT_EQ(values(a.get_value()), (std::vector<double>{2, 3}));
  EXPECT_EQ(values(b.get_value()), (std::vector<double>{12, 22}));
}

TEST_F(TransactionTest, StepsThatCanFailComeBeforeThoseThatOverwriteAContainer) {
  const Variable risky = hooked(x, hook);
  const Function f = function({x}, {risky}, {.updates = {{a, a.var() * 2.0}}});
  const std::vector<Apply> order = f.graph().toposort();
  ASSERT_EQ(order.size(), 2u);
  EXPECT_EQ(order[0].op().name(), "Hook");
  EXPECT_EQ(overwritten_inputs(order[1]).size(), 1u);  // still in place
}

TEST_F(TransactionTest, StepThatCanFailAndNeedsTheNewValueKeepsTheUpdatePure) {
  const Variable next = a.var() * 2.0;
  const Function f = function({}, {hooked(next, hook)}, {.updates = {{a, next}}});
  EXPECT_FALSE(overwrites_a_container(f));
  const State before({a});
  countdown = 0;
  EXPECT_THROW(f(), OpError);
  before.expect_unchanged("");
  f();
  EXPECT_EQ(values(a.get_value()), (std::vector<double>{2, 4}));
  const Function safe = function({},
                                 {hooked(
                                     next, [] {}, false)},
                                 {.updates = {{a, next}}});
  EXPECT_TRUE(overwrites_a_container(safe));
}

TEST_F(TransactionTest, IndexOutOfRangeLeavesEveryContainer) {
  const Variable i = make_input({DType::int64, {kUnknown}, {}}, "i");
  const Function f =
      function({i}, {ops::gather(b.var(), std::vector{i})}, {.updates = {{a, a.var() + 1.0}}});
  const State before({a, b});
  EXPECT_THROW(f(Tensor::full<std::int64_t>({1}, 5)), ValueError);
  before.expect_unchanged("");
  EXPECT_EQ(values(f(Tensor::full<std::int64_t>({1}, 1))[0]), (std::vector<double>{20}));
  EXPECT_EQ(values(a.get_value()), (std::vector<double>{2, 3}));
}

// Functions whose calls allocate in all possible places.
struct Case {
  std::string name;
  Function f;
  std::vector<Tensor> arguments;
  std::function<void()> prepare = [] {};  // before every call
};

TEST_F(TransactionTest, FailureOfAnyAllocationLeavesEveryContainerAndTheNextCallWorks) {
  std::vector<double> memory{5, 6};
  const Tensor foreign =
      Tensor::from_blob(memory.data(), DType::float64, {2}, {1}, {}, /*writable=*/true);
  Tensor held;  // shares the data of a container
  const Updates in_place{{a, a.var() + x}, {b, b.var() * 2.0}};
  const std::vector<Case> cases = {
      {"results",
       function({x}, {ops::roll(x, 1, 0), x + a.var()}, {.updates = in_place}),
       {vector_of({1, 1})}},
      {"exchanged buffers",
       function({x}, {}, {.updates = {{a, ops::roll(a.var() + x, 1, 0)}, {b, a.var() + 1.0}}}),
       {vector_of({1, 1})}},
      {"shared containers",
       function({x}, {x * 2.0}, {.updates = in_place}),
       {vector_of({1, 1})},
       [&] { held = a.get_value(); }},
      {"foreign arguments", function({x}, {x}, {.updates = {{a, x}, {b, b.var() + x}}}), {foreign}},
      {"converted arguments",
       function({x}, {x + 1.0}, {.updates = in_place}),
       {Tensor::ones({2}, DType::int32)}},
      {"overlapping arguments",
       function({In(x, {.is_mutable = true})}, {x + 1.0, a.var()}, {.updates = {{b, b.var() * x}}}),
       {vector_of({1}).expand({2})}},
      {"small views",
       function({x}, {ops::index(x, {slice(0, 1)}), ops::index(a.var(), {slice(0, 1)})},
                {.updates = {{b, b.var() + 1.0}}}),
       {Tensor::arange(10, DType::float64)(slice(0, 2))}},
      {"old values", function({x}, {a.var(), b.var()}, {.updates = in_place}), {vector_of({1, 1})}},
      {"exchange", function({}, {}, {.updates = {{a, b}, {b, a}}}), {}},
  };
  for (const Case& c : cases) {
    bool succeeded = false;
    for (std::uint64_t n = 0; !succeeded; ++n) {
      ASSERT_LT(n, 50u) << c.name;
      c.f.free();
      c.prepare();
      const State before({a, b});
      std::vector<Tensor> results(c.f.output_count());
      try {
        const FailingAllocator injected(n);
        c.f.call(c.arguments, results);
        succeeded = true;
      } catch (const OutOfMemory&) {
        before.expect_unchanged(" after allocation " + std::to_string(n) + " of " + c.name);
      }
    }
    held = Tensor();
    EXPECT_EQ(memory, (std::vector<double>{5, 6})) << c.name;
  }
}

TEST_F(TransactionTest, NothingIsAllocatedOnceTheStepsRun) {
  // The last step is the hook, so later allocations of the call would be counted here.
  const MemoryScope scope;
  std::uint64_t at_last_step = 0;
  const Variable last = hooked(x + a.var(), [&] { at_last_step = scope.calls(); });
  const Function f = function({x}, {last, x, a.var(), ops::index(x, {slice(0, 1)})},
                              {.updates = {{b, last}, {a, x}}});
  std::vector<double> memory{5, 6};
  const Tensor foreign =
      Tensor::from_blob(memory.data(), DType::float64, {2}, {1}, {}, /*writable=*/true);
  for (const Tensor& t : {vector_of({1, 2}), foreign}) {
    f(t);
    EXPECT_EQ(scope.calls(), at_last_step);
  }
}

TEST_F(TransactionTest, LentArgumentsMayHaveChangedButContainersHaveNot) {
  const Function f = function({In(x, {.is_mutable = true})}, {hooked(x * 3.0, hook)},
                              {.updates = {{a, a.var() + 1.0}}});
  const State before({a});
  countdown = 0;
  EXPECT_THROW(f(vector_of({1, 2})), OpError);
  before.expect_unchanged("");
}

}  // namespace
}  // namespace palimpsest
