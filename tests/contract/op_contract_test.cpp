// SPDX-License-Identifier: Apache-2.0
// The laws that every op of the registry obeys, on its samples. Guard zones and unchanged inputs
// are checked by run_op in every one of them.
#include <gtest/gtest.h>
#include <tbb/task_arena.h>

#include <map>
#include <set>

#include "contract/applied.hpp"
#include "ops/op_runner.hpp"
#include "palimpsest/base/config.hpp"
#include "palimpsest/ops/loop/measured_op.hpp"
#include "palimpsest/ops/ops.hpp"
#include "samples/op_samples.hpp"
#include "support/new_counter.hpp"

namespace palimpsest {
namespace {

using testing::applied;
using testing::Applied;
using testing::distance;
using testing::for_each_sample;
using testing::run_op;

void expect_close(const Tensor& a, const Tensor& b) {
  EXPECT_LE(distance(a, b), testing::tolerance(b.dtype())) << a << "\n" << b;
}

std::vector<Tensor> clones(const std::vector<Tensor>& values) {
  std::vector<Tensor> result;
  for (const Tensor& t : values) result.push_back(t.clone());
  return result;
}

TEST(OpContract, EveryOpHasASampleAndItsNameOnce) {
  std::set<std::string_view> names;
  for (const ops::OpEntry& entry : ops::op_samples()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_FALSE(entry.samples().empty()) << entry.name;
  }
}

TEST(OpContract, ShapesThatAreUnknownInTheGraphAreInferredAlike) {
  for (const ops::OpEntry& entry : ops::op_samples()) {
    for (const ops::OpSample& sample : entry.samples()) {
      SCOPED_TRACE(std::string(entry.name) + ": " + sample.name);
      const Applied known = applied(entry, sample);
      EXPECT_TRUE(known.node.output(0).type().is_fully_known() ||
                  !known.node.input(0).type().is_fully_known() ||
                  dynamic_cast<const ops::MeasuredOp*>(&known.node.op()));
      const Tensor expected = run_op(known.node, known.values);
      Applied unknown;
      try {
        unknown = applied(entry, sample, false);
      } catch (const ShapeError& error) {
        // Some ops need known extents and throw an error about it.
        EXPECT_NE(std::string(error.what()).find("Try specify_shape"), std::string::npos);
        continue;
      }
      if (unknown.values.size() != unknown.node.input_count()) continue;
      EXPECT_TRUE(equal(run_op(unknown.node, unknown.values), expected));
    }
  }
}

TEST(OpContract, AViewLiesWhereItSays) {
  int n_views = 0;
  for_each_sample([&](const Applied& a) {
    const AliasMap views = a.node.op().view_map(a.node);
    if (views.empty() || views.at(0).size() > 1) return;  // the run decides which one
    ++n_views;
    ASSERT_EQ(views, (AliasMap{{0, {0}}}));
    const Tensor copy = run_op(a.node, a.values);
    for (const Tensor& in :
         {a.values[0], testing::with_gaps(a.values[0]), testing::with_negative_strides(a.values[0]),
          testing::column_major(a.values[0])}) {
      const auto size = static_cast<index_t>(item_size(in.dtype()));
      const index_t start = in.offset() * size;
      const auto layout =
          a.node.op().view_layout(a.node, 0, {in.dtype(), in.shape(), in.strides(), start});
      if (!layout) continue;
      const auto out_size = static_cast<index_t>(item_size(layout->dtype));
      ASSERT_EQ(layout->byte_offset % out_size, 0);
      const Tensor view(in.storage(), layout->dtype, layout->extents, layout->strides,
                        copy.numel() > 0 ? layout->byte_offset / out_size : 0);
      EXPECT_TRUE(equal(view, copy)) << view << copy;
    }
  });
  EXPECT_GT(n_views, 10);
}

TEST(OpContract, ResultsDoNotDependOnTheLayoutOfInputs) {
  for_each_sample([](const Applied& a) {
    const Tensor expected = run_op(a.node, a.values);
    for (auto relaid :
         {testing::with_gaps, testing::with_negative_strides, testing::column_major}) {
      std::vector<Tensor> values;
      for (const Tensor& t : a.values) values.push_back(relaid(t));
      expect_close(run_op(a.node, values), expected);
    }
  });
}

TEST(OpContract, InputsMayBeBroadcastViews) {
  for_each_sample([](const Applied& a) {
    std::vector<Tensor> broadcast, dense;
    for (const Tensor& t : a.values) {
      const bool can = t.rank() > 0 && t.shape(0) > 0;
      const Tensor view = can ? t.narrow(0, 0, 1).expand(t.shape()) : t;
      broadcast.push_back(view);
      dense.push_back(view.clone());
    }
    expect_close(run_op(a.node, broadcast), run_op(a.node, dense));
  });
}

TEST(OpContract, DestinationsMayLieAnywhereInLargerArrays) {
  for_each_sample([](const Applied& a) {
    const Tensor expected = run_op(a.node, a.values);
    for (const WindowLayout layout : kWindowLayouts) {
      SCOPED_TRACE(name_of(layout));
      expect_close(run_op(a.node, a.values, {.layout = layout}), expected);
    }
  });
}

TEST(OpContract, OldContentOfDestinationsAndScratchNeverShows) {
  for_each_sample([](const Applied& a) {
    const Tensor zeros = run_op(a.node, a.values, {.poison = 0});
    EXPECT_TRUE(equal(run_op(a.node, a.values, {.poison = 0xFF}), zeros));
  });
}

TEST(OpContract, InPlaceEqualsPure) {
  std::set<std::string> names;
  for_each_sample([&](const Applied& a) {
    const Op& op = a.node.op();
    ASSERT_TRUE(overwritten_inputs(a.node).empty());
    EXPECT_EQ(op.inplace_on_inputs(a.node, {}), nullptr);
    const Tensor expected = run_op(a.node, a.values);
    for (int i = 0; i < static_cast<int>(a.node.input_count()); ++i) {
      const OpPtr in_place = op.inplace_on_inputs(a.node, {i});
      if (!in_place) continue;
      names.insert(in_place->name());
      EXPECT_EQ(*in_place->pure(), op);
      EXPECT_FALSE(*in_place == op);
      const Apply node = in_place->make_node(a.node.inputs());
      EXPECT_EQ(in_place->destroy_map(node), (AliasMap{{0, {i}}}));
      EXPECT_TRUE(in_place->view_map(node).empty());
      EXPECT_EQ(node.output(0).type(), a.node.output(0).type());
      for (auto relaid :
           {testing::with_gaps, testing::with_negative_strides, testing::column_major}) {
        std::vector<Tensor> values = clones(a.values);
        expect_close(run_op(node, values), expected);
        Tensor& target = values[static_cast<std::size_t>(i)];
        target = relaid(a.values[static_cast<std::size_t>(i)]);
        expect_close(run_op(node, values), expected);
      }
    }
  });
  for (const char* name : {"AddInPlace", "WhereInPlace", "CastInPlace", "FftInPlace",
                           "SetSubtensorInPlace", "IncSubtensorInPlace"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(OpContract, TheVeryDestroyedVariableIsReadWhereThatIsTolerated) {
  int n_tolerated = 0;
  for_each_sample([&](const Applied& a) {
    const std::size_t n = a.node.input_count();
    for (std::size_t j = 1; j < n; ++j) {
      if (!(a.node.input(0).type() == a.node.input(j).type())) continue;
      std::vector<Variable> inputs(a.node.inputs().begin(), a.node.inputs().end());
      inputs[j] = inputs[0];
      const Apply pure = a.node.op().make_node(inputs);
      const OpPtr in_place = pure.op().inplace_on_inputs(pure, {0});
      if (!in_place) continue;
      const Apply node = in_place->make_node(inputs);
      if (!in_place->tolerate_same(node).contains({0, static_cast<int>(j)})) continue;
      ++n_tolerated;
      std::vector<Tensor> values = clones(a.values);
      values[j] = values[0];
      const Tensor expected = run_op(pure, values);
      expect_close(run_op(node, values), expected);
    }
  });
  EXPECT_GT(n_tolerated, 20);
}

TEST(OpContract, BuildingTwiceGivesEqualOps) {
  for (const ops::OpEntry& entry : ops::op_samples()) {
    for (const ops::OpSample& sample : entry.samples()) {
      EXPECT_EQ(applied(entry, sample).node.op(), applied(entry, sample).node.op());
    }
  }
}

// Ops that print the same must be the same function: no parameter is missing in the text.
TEST(OpContract, EqualOpsComputeTheSame) {
  std::map<std::string, std::vector<Applied>> by_text;
  for_each_sample([&](const Applied& a) { by_text[a.node.op().str()].push_back(a); });
  EXPECT_GT(by_text.size(), 100U);
  for (const auto& [text, group] : by_text) {
    const Applied& first = group.front();
    for (const Applied& other : group) {
      bool same_types = first.values.size() == other.values.size();
      for (std::size_t i = 0; same_types && i < first.values.size(); ++i) {
        same_types = first.node.input(i).type() == other.node.input(i).type() &&
                     first.node.input(i).is_constant() == other.node.input(i).is_constant();
      }
      if (!same_types) continue;
      EXPECT_TRUE(equal(run_op(first.node, first.values), run_op(other.node, first.values)))
          << text;
    }
  }
}

TEST(OpContract, RunningAllocatesNothing) {
  for_each_sample([](const Applied& a) {
    std::vector<Layout> layouts;
    std::vector<ConstView> views;
    for (const Tensor& t : a.values) {
      layouts.push_back({t.dtype(), t.shape(), t.strides(), 0});
      views.push_back(t.view_of());
    }
    const Op& op = a.node.op();
    Tensor out =
        Tensor::empty(testing::result_extents(a.node, a.values)[0], a.node.output(0).dtype());
    std::vector<Tensor> others = testing::further_destinations(a.node, a.values);
    std::vector<MutableView> outputs{out.mutable_view()};
    for (Tensor& t : others) outputs.push_back(t.mutable_view());
    std::vector<std::byte> scratch(op.scratch_bytes(a.node, layouts) + 64);
    auto address = reinterpret_cast<std::uintptr_t>(scratch.data());
    RunContext context(views, outputs,
                       {scratch.data() + (64 - address % 64) % 64, scratch.size() - 64});
    // The first run makes plans. Another thread takes scratch when it first gets work, maybe later.
    const ConfigScope alone({.threads = 1});
    tbb::task_arena(1).execute([&] {
      op.run(context);
      const testing::NewCounter counter;
      op.run(context);
      EXPECT_EQ(counter.count(), 0U);
    });
  });
}

}  // namespace
}  // namespace palimpsest
