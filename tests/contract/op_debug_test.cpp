// SPDX-License-Identifier: Apache-2.0
// Every op of the registry, on its samples, in DebugMode with all destination patterns: what it
// declares is what it does, whatever the layout of its inputs and the number of threads.
#include <gtest/gtest.h>

#include <random>

#include "contract/applied.hpp"
#include "ops/op_runner.hpp"
#include "palimpsest/compile/debug/debug_mode.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/ops/ops.hpp"

namespace palimpsest {
namespace {

using testing::applied;
using testing::Applied;
using testing::for_each_sample;

DebugOptions everything() { return {.patience = 1, .preallocated = {"ALL"}, .threads = {2, 7}}; }

// Inputs of the node that a caller gives, and their values.
struct Arguments {
  std::vector<In> inputs;
  std::vector<Tensor> values;
};

Arguments arguments_of(const Apply& node, const std::vector<Tensor>& values, bool lent = false) {
  Arguments result;
  std::vector<Variable> seen;
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    const Variable& v = node.input(i);
    if (v.is_constant() || std::find(seen.begin(), seen.end(), v) != seen.end()) continue;
    seen.push_back(v);
    result.inputs.push_back(In(v, {.borrow = lent, .is_mutable = lent}));
    result.values.push_back(values[i]);
  }
  return result;
}

std::vector<Tensor> call(const Function& f, const std::vector<Tensor>& values) {
  std::vector<Tensor> results(f.output_count());
  f.call(values, results);
  return results;
}

// A view of every second row of overlapping windows: elements share bytes.
Tensor overlapping(const Tensor& t) {
  if (t.rank() == 0 || t.shape(0) < 2) return t;
  return t.narrow(0, 0, 1).expand(t.shape());
}

// The start of the data is not that of an allocation.
Tensor unaligned(const Tensor& t) {
  Tensor whole = Tensor::empty({t.numel() + 1}, t.dtype());
  Tensor part = whole(slice(1, {})).view(t.shape());
  part.copy_from(t);
  return part;
}

TEST(OpDebug, OpsDoWhatTheyDeclare) {
  for_each_sample([](const Applied& a) {
    const Arguments given = arguments_of(a.node, a.values);
    const Function f = function(given.inputs, a.node.outputs(),
                                {.mode = DebugMode(everything()), .accept_inplace = true});
    const Function plain = function(given.inputs, a.node.outputs(), {.accept_inplace = true});
    try {
      const auto got = call(f, given.values), expected = call(plain, given.values);
      for (std::size_t k = 0; k < got.size(); ++k) EXPECT_TRUE(equal(got[k], expected[k]));
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  });
}

TEST(OpDebug, WhateverTheLayoutOfTheirInputs) {
  const DebugOptions options{.patience = 1, .preallocated = {"previous"}};
  for_each_sample([&](const Applied& a) {
    const Arguments given = arguments_of(a.node, a.values);
    const Function f = function(given.inputs, a.node.outputs(), {.mode = DebugMode(options)});
    for (auto relaid : {testing::with_gaps, testing::with_negative_strides, testing::column_major,
                        overlapping, unaligned}) {
      std::vector<Tensor> values;
      for (const Tensor& t : given.values) values.push_back(relaid(t));
      try {
        call(f, values);
      } catch (const Error& error) {
        ADD_FAILURE() << error.what();
      }
    }
  });
}

TEST(OpDebug, InPlaceVariantsDoWhatTheyDeclare) {
  int variants = 0;
  for_each_sample([&](const Applied& a) {
    const auto n = static_cast<unsigned>(std::min<std::size_t>(a.node.input_count(), 4));
    std::set<std::string> seen;
    for (unsigned subset = 1; subset < 1U << n; ++subset) {
      std::set<int> allowed;
      for (unsigned i = 0; i < n; ++i) {
        if ((subset >> i & 1U) != 0) allowed.insert(static_cast<int>(i));
      }
      const OpPtr op = a.node.op().inplace_on_inputs(a.node, allowed);
      if (!op || !seen.insert(op->str()).second) continue;
      const Apply node = op->make_node(a.node.inputs());
      bool destroys_constant = false;
      for (int i : overwritten_inputs(node)) {
        EXPECT_TRUE(allowed.contains(i));
        destroys_constant =
            destroys_constant || node.input(static_cast<std::size_t>(i)).is_constant();
      }
      if (destroys_constant) continue;
      ++variants;
      const Arguments given = arguments_of(node, a.values, true);
      const Arguments kept = arguments_of(a.node, a.values);
      const Function f = function(given.inputs, node.outputs(),
                                  {.mode = DebugMode(everything()), .accept_inplace = true});
      const Function pure = function(kept.inputs, a.node.outputs());
      std::vector<Tensor> lent;
      for (const Tensor& t : given.values) lent.push_back(t.clone());
      try {
        const auto got = call(f, lent), expected = call(pure, kept.values);
        for (std::size_t k = 0; k < got.size(); ++k) {
          EXPECT_LE(testing::distance(got[k], expected[k]),
                    testing::tolerance(expected[k].dtype()));
        }
      } catch (const Error& error) {
        ADD_FAILURE() << op->str() << "\n" << error.what();
      }
    }
  });
  EXPECT_GT(variants, 50);
}

// -- graphs around an op -------------------------------------------------------------------------

class GraphAround {
 public:
  GraphAround(const Applied& a, unsigned seed) : random_(seed) {
    for (const Variable& v : a.node.outputs()) add(v);
    while (size_ < 24) add(step());
    for (int i = 0; i < 3; ++i) outputs_.push_back(values_[random_() % values_.size()]);
    outputs_.push_back(a.node.output(0));
  }
  const std::vector<Variable>& outputs() const { return outputs_; }

 private:
  void add(const Variable& v) {
    values_.push_back(v);
    ++size_;
  }
  const Variable& any() { return values_[random_() % values_.size()]; }

  Variable step() {
    const Variable v = any();
    switch (random_() % 6) {
      case 0:
        return v.rank() > 0 ? ops::roll(v, 1, 0) : v.copy();
      case 1:
        return v.rank() > 0 ? ops::index(v, {slice({}, {}, -1)}) : v.copy();
      case 2:
        return v.T();
      case 3:
        return ops::reshape(ops::reshape(v, {ops::size(v)}), shape_of(v));
      case 4:
        return is_inexact(v.dtype()) ? v * 0.5 : v.copy();
      default:
        return combined(v);
    }
  }

  static ShapeArgument shape_of(const Variable& v) {
    std::vector<Operand> extents;
    for (std::size_t k = 0; k < v.rank(); ++k) extents.push_back(v.shape(static_cast<index_t>(k)));
    return extents;
  }

  // The mean with another value of its type: nothing grows without bound.
  Variable combined(const Variable& v) {
    const Variable w = any();
    if (!(v.type() == w.type()) || !is_inexact(v.dtype())) return v.copy();
    return (v + w) * 0.5;
  }

  std::mt19937 random_;
  std::vector<Variable> values_, outputs_;
  int size_ = 0;
};

TEST(OpDebug, GraphsAroundThemAreCompiledRightly) {
  DebugOptions options{.patience = 2, .preallocated = {"ALL"}, .preallocated_ndim = 1};
  unsigned seed = 1;
  for_each_sample([&](const Applied& a) {
    const Arguments given = arguments_of(a.node, a.values);
    const GraphAround graph(a, seed++);
    try {
      const Function fast = function(given.inputs, graph.outputs());
      const Function naive = function(given.inputs, graph.outputs(), {.mode = Mode::no_rewrite});
      const Function checked =
          function(given.inputs, graph.outputs(), {.mode = DebugMode(options)});
      const auto x = call(fast, given.values), y = call(naive, given.values),
                 z = call(checked, given.values);
      for (std::size_t k = 0; k < x.size(); ++k) {
        EXPECT_LE(testing::distance(x[k], y[k]), testing::tolerance(y[k].dtype()));
        EXPECT_TRUE(equal(x[k], z[k]));
      }
    } catch (const Error& error) {
      ADD_FAILURE() << "seed " << seed - 1 << "\n" << error.what();
    }
  });
}

// -- sizes and wrong inputs ----------------------------------------------------------------------

// The sample with every axis of every input cut to `n`; nothing where that is no legal graph.
TEST(OpDebug, SizesNoneAndOneAreInferredAsTheyAre) {
  int legal = 0;
  for (const ops::OpEntry& entry : ops::op_registry()) {
    for (const ops::OpSample& sample : entry.samples()) {
      for (const index_t n : {0, 1}) {
        SCOPED_TRACE(std::string(entry.name) + ": " + sample.name + " with axes of " +
                     std::to_string(n));
        ops::OpSample small = sample;
        for (Tensor& t : small.inputs) {
          for (std::size_t k = 0; k < t.rank(); ++k) {
            t = t.narrow(static_cast<index_t>(k), 0, std::min(n, t.shape(static_cast<index_t>(k))));
          }
        }
        try {
          const Applied a = applied(entry, small);
          const Arguments given = arguments_of(a.node, a.values);
          const Function f = function(given.inputs, a.node.outputs(),
                                      {.mode = DebugMode({.patience = 1, .check_finite = false})});
          call(f, given.values);
          ++legal;
        } catch (const DebugModeError& error) {
          ADD_FAILURE() << error.what();
        } catch (const InternalError& error) {
          ADD_FAILURE() << error.what();
        } catch (const ValueError&) {
        } catch (const TypeError&) {
        }
      }
    }
  }
  EXPECT_GT(legal, 100);
}

TEST(OpDebug, WrongInputsAreRefusedByName) {
  int refused = 0;
  for (const ops::OpEntry& entry : ops::op_registry()) {
    for (const ops::OpSample& sample : entry.samples()) {
      SCOPED_TRACE(std::string(entry.name) + ": " + sample.name);
      const Applied a = applied(entry, sample);
      const Op& op = a.node.op();
      for (std::size_t i = 0; i < a.node.input_count(); ++i) {
        std::vector<Variable> inputs(a.node.inputs().begin(), a.node.inputs().end());
        TensorType other = inputs[i].type();
        other.shape.push_back(7);
        inputs[i] = make_input(other);
        try {
          op.make_node(inputs);
        } catch (const Error& error) {
          ++refused;
          const std::string text = error.what();
          EXPECT_TRUE(dynamic_cast<const ValueError*>(&error) ||
                      dynamic_cast<const TypeError*>(&error))
              << text;
          EXPECT_EQ(text.front(), '[') << text;
        }
      }
      std::vector<Variable> many(a.node.inputs().begin(), a.node.inputs().end());
      many.insert(many.end(), 60, make_input({DType::float64, {}, {}}));
      try {
        op.make_node(many);
      } catch (const Error& error) {
        ++refused;
        EXPECT_EQ(std::string(error.what()).front(), '[') << error.what();
      }
    }
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace palimpsest
