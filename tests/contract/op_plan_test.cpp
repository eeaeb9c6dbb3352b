// SPDX-License-Identifier: Apache-2.0
// The laws of plans, for every sample of every op: the announced peak is the measured one, a warm
// call allocates nothing, and threads change no bit.
#include <gtest/gtest.h>

#include "contract/applied.hpp"
#include "palimpsest/base/config.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/ops/ops.hpp"

namespace palimpsest {
namespace {

struct Sampled {
  std::vector<In> inputs;
  std::vector<Out> outputs;
  std::vector<Tensor> values;
};

// The op twice, so that two steps can run in parallel, and the results of both.
Sampled sampled(const ops::OpEntry& entry, const ops::OpSample& sample) {
  const testing::Applied a = testing::applied(entry, sample);
  Sampled result{{}, {}, sample.inputs};
  for (const Variable& v : a.variables) result.inputs.emplace_back(v);
  std::vector<Variable> inputs(a.node.inputs().begin(), a.node.inputs().end());
  for (Variable& v : inputs) {
    if (!v.is_constant() && v.rank() > 0) v = ops::flip(ops::flip(v, {0}), {0});
  }
  const Apply again = a.node.op().make_node(inputs);
  for (const Apply& node : {a.node, again}) {
    for (const Variable& v : node.outputs())
      result.outputs.emplace_back(v, OutOptions{.borrow = true});
  }
  return result;
}

template <class Law>
void for_each_function(Law&& law) {
  for (const ops::OpEntry& entry : ops::op_samples()) {
    for (const ops::OpSample& sample : entry.samples()) {
      SCOPED_TRACE(std::string(entry.name) + ": " + sample.name);
      law(sampled(entry, sample));
    }
  }
}

TEST(OpPlans, PeakIsMeasuredAsAnnouncedAndWarmCallsAllocateNothing) {
  int n_warm = 0;
  for_each_function([&](const Sampled& s) {
    const Function f = function(s.inputs, s.outputs, {.on_unused_input = Reaction::ignore});
    const Plan& plan = f.plan(s.values);
    if (!plan.run_time_extents.empty()) return;  // each stage has a plan of its own
    if (!plan.arenas.empty()) return;            // this scope watches one device
    std::vector<Tensor> results(f.output_count());
    CallReport report;
    {
      const MemoryScope scope;
      f.call(s.values, results, &report);
      EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), plan.peak_bytes + report.entry_copy_bytes)
          << plan.to_string();
    }
    EXPECT_LE(report.entry_copy_bytes, plan.entry_copy_bytes);
    EXPECT_LE(plan.lower_bound_bytes, plan.arena_bytes);
    // An empty result gets a storage of no bytes, if no tensor can start at its address.
    for (const Tensor& t : results) {
      if (t.numel() == 0) return;
    }
    // Results that view an argument cannot be borrowed from the frame.
    if (plan.entry_copy_bytes > 0 || plan.output_bytes > 0) return;
    ++n_warm;
    const MemoryScope scope;
    f.call(s.values, results, nullptr);
    EXPECT_EQ(scope.calls(), 0u) << plan.to_string();
  });
  EXPECT_GT(n_warm, 100);
}

TEST(OpPlans, ThreadsChangeNoBit) {
  for_each_function([](const Sampled& s) {
    std::vector<Tensor> expected;
    for (const index_t threads : {1, 2, 4}) {
      const ConfigScope scope({.threads = threads, .parallel_grain = 1});
      const Function f = function(s.inputs, s.outputs, {.on_unused_input = Reaction::ignore});
      std::vector<Tensor> results(f.output_count());
      f.call(s.values, results);
      if (expected.empty()) {
        for (const Tensor& t : results) expected.push_back(t.clone());
      }
      for (std::size_t i = 0; i < results.size(); ++i) {
        EXPECT_TRUE(equal(results[i], expected[i])) << f.plan(s.values).to_string();
      }
    }
  });
}

}  // namespace
}  // namespace palimpsest
