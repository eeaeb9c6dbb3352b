// SPDX-License-Identifier: Apache-2.0
// Every op of the registry, on its samples, in DebugMode with all destination patterns:
// declarations are true for every layout of inputs and number of threads.
#include <gtest/gtest.h>

#include <random>

#include "contract/applied.hpp"
#include "ops/op_runner.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/inspect/debug/debug_mode.hpp"
#include "palimpsest/ops/ops.hpp"

namespace palimpsest {
namespace {

using testing::applied;
using testing::Applied;

// Finite checks are off: samples reach the ends of domains, such as the logarithm of 0.
DebugOptions everything() {
  return {.patience = 1, .check_finite = false, .preallocated = {"ALL"}, .threads = {2, 7}};
}

// Variable inputs of the node, and their values.
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
    result.inputs.push_back(In(v, {.is_mutable = lent, .borrow = lent}));
    result.values.push_back(values[i]);
  }
  return result;
}

Outputs outputs_of(const std::vector<Variable>& list) {
  return std::vector<Out>(list.begin(), list.end());
}

std::vector<Tensor> call(const Function& f, const std::vector<Tensor>& values) {
  std::vector<Tensor> results(f.output_count());
  f.call(values, results);
  return results;
}

// NaN equals NaN.
void expect_equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t k = 0; k < a.size(); ++k)
    EXPECT_EQ(testing::distance(a[k], b[k]), 0) << a[k] << "\n" << b[k];
}

// -- layouts -------------------------------------------------------------------------------------

// A row, broadcast over all.
Tensor broadcast(const Tensor& t) {
  if (t.rank() == 0 || t.shape(0) < 2) return t;
  return t.narrow(0, 0, 1).expand(t.shape());
}

// Data that do not start at the start of an allocation.
Tensor unaligned(const Tensor& t) {
  Tensor whole = Tensor::empty({t.numel() + 1}, t.dtype());
  Tensor part = whole(slice(1, {})).view(t.shape());
  part.copy_from(t);
  return part;
}

// Windows of a line of its values: rows share elements.
Tensor windows(const Tensor& t) {
  if (t.numel() == 0) return t;
  Strides ones(t.rank(), 1);
  return t.clone().as_strided(t.shape(), ones, 0);
}

struct Relaying {
  const char* name;
  Tensor (*relay)(const Tensor&);
  bool keeps_values;
};
constexpr Relaying kLayouts[] = {
    {"with steps", testing::with_gaps, true},
    {"reversed", testing::with_negative_strides, true},
    {"transposed", testing::column_major, true},
    {"unaligned", unaligned, true},
    {"broadcast", broadcast, false},
    {"of overlapping rows", windows, false},
};

// Their last input is an order of points, which depends on the values of another input.
bool takes_any_values(std::string_view op) {
  return op != "Interpolate" && op != "InterpolateAdjoint";
}

// All inputs of one inexact dtype are views of one line of numbers.
std::vector<Tensor> views_of_one_buffer(const std::vector<Tensor>& values) {
  std::vector<Tensor> result = values;
  for (const DType dtype : {DType::float32, DType::float64, DType::complex64, DType::complex128}) {
    index_t longest = 0;
    for (const Tensor& t : values)
      longest = t.dtype() == dtype ? std::max(longest, t.numel()) : longest;
    const Tensor line = ops::sample_values({longest + static_cast<index_t>(values.size())}, dtype);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Tensor& t = values[i];
      if (t.dtype() != dtype || t.numel() == 0) continue;
      result[i] =
          line.as_strided(t.shape(), contiguous_strides(t.shape()), static_cast<index_t>(i));
    }
  }
  return result;
}

// -- the laws ------------------------------------------------------------------------------------

constexpr int kShards = 6;

// The samples are divided into several cases, which ctest runs in parallel.
class OpDebug : public ::testing::TestWithParam<int> {
 protected:
  template <class Law>
  void for_each_sample(Law&& law) const {
    int number = 0;
    for (const ops::OpEntry& entry : ops::op_samples()) {
      for (const ops::OpSample& sample : entry.samples()) {
        if (number++ % kShards != GetParam()) continue;
        SCOPED_TRACE(std::string(entry.name) + ": " + sample.name);
        try {
          law(entry, sample);
        } catch (const Error& error) {
          ADD_FAILURE() << error.what();
        }
      }
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Shard, OpDebug, ::testing::Range(0, kShards));

TEST_P(OpDebug, OpsDoWhatTheyDeclare) {
  for_each_sample([](const ops::OpEntry& entry, const ops::OpSample& sample) {
    const Applied a = applied(entry, sample);
    const Arguments given = arguments_of(a.node, a.values);
    const Function f =
        function(given.inputs, outputs_of(a.node.outputs()), {.mode = DebugMode(everything())});
    const Function plain = function(given.inputs, outputs_of(a.node.outputs()));
    expect_equal(call(f, given.values), call(plain, given.values));
  });
}

TEST_P(OpDebug, WhateverTheLayoutOfTheirInputs) {
  const DebugOptions options{.patience = 1, .check_finite = false, .preallocated = {"previous"}};
  for_each_sample([&](const ops::OpEntry& entry, const ops::OpSample& sample) {
    const Applied a = applied(entry, sample);
    const Arguments given = arguments_of(a.node, a.values);
    const Function f =
        function(given.inputs, outputs_of(a.node.outputs()), {.mode = DebugMode(options)});
    const Function plain = function(given.inputs, outputs_of(a.node.outputs()));
    const auto check = [&](const char* name, const std::vector<Tensor>& values) {
      SCOPED_TRACE(name);
      expect_equal(call(f, values), call(plain, values));
    };
    const bool any_values = takes_any_values(entry.name);
    for (const auto& [name, relay, keeps_values] : kLayouts) {
      if (!keeps_values && !any_values) continue;
      std::vector<Tensor> values;
      for (const Tensor& t : given.values) values.push_back(relay(t));
      check(name, values);
    }
    if (any_values) check("of one buffer", views_of_one_buffer(given.values));
  });
}

// In modes that do not reorder arithmetic, bits depend on values alone.
TEST_P(OpDebug, ExactModesGiveTheSameBitsWhateverTheLayout) {
  for_each_sample([](const ops::OpEntry& entry, const ops::OpSample& sample) {
    const Applied a = applied(entry, sample);
    const Arguments given = arguments_of(a.node, a.values);
    const Function f = function(given.inputs, outputs_of(a.node.outputs()), {.mode = NoRewrite()});
    const std::vector<Tensor> expected = call(f, given.values);
    for (const auto& [name, relay, keeps_values] : kLayouts) {
      if (!keeps_values) continue;
      SCOPED_TRACE(name);
      std::vector<Tensor> values;
      for (const Tensor& t : given.values) values.push_back(relay(t));
      expect_equal(call(f, values), expected);
    }
  });
}

TEST_P(OpDebug, InPlaceVariantsDoWhatTheyDeclare) {
  for_each_sample([](const ops::OpEntry& entry, const ops::OpSample& sample) {
    const Applied a = applied(entry, sample);
    const auto n = static_cast<unsigned>(std::min<std::size_t>(a.node.input_count(), 4));
    std::set<std::string> seen;
    for (unsigned subset = 1; subset < 1U << n; ++subset) {
      std::set<int> allowed;
      for (unsigned i = 0; i < n; ++i) {
        if ((subset >> i & 1U) != 0) allowed.insert(static_cast<int>(i));
      }
      const OpPtr op = a.node.op().inplace_on_inputs(a.node, allowed);
      if (!op || !seen.insert(op->str()).second) continue;
      SCOPED_TRACE(op->str());
      const Apply node = op->make_node(a.node.inputs());
      bool destroys_constant = false;
      for (int i : overwritten_inputs(node)) {
        EXPECT_TRUE(allowed.contains(i));
        destroys_constant |= node.input(static_cast<std::size_t>(i)).is_constant();
      }
      if (destroys_constant) continue;
      const Arguments given = arguments_of(node, a.values, true);
      const Arguments kept = arguments_of(a.node, a.values);
      const Function f = function(given.inputs, outputs_of(node.outputs()),
                                  {.mode = DebugMode(everything()), .accept_inplace = true});
      const Function pure = function(kept.inputs, outputs_of(a.node.outputs()));
      std::vector<Tensor> lent;
      for (const Tensor& t : given.values) lent.push_back(t.clone());
      const auto got = call(f, lent), expected = call(pure, kept.values);
      for (std::size_t k = 0; k < got.size(); ++k) {
        EXPECT_LE(testing::distance(got[k], expected[k]), testing::tolerance(expected[k].dtype()));
      }
    }
  });
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
        return ops::reshape(ops::ravel(v), shape_of(v));
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

  // The mean with another value of its type, so that values stay bounded.
  Variable combined(const Variable& v) {
    const Variable w = any();
    if (!(v.type() == w.type()) || !is_inexact(v.dtype())) return v.copy();
    return (v + w) * 0.5;
  }

  std::mt19937 random_;
  std::vector<Variable> values_, outputs_;
  int size_ = 0;
};

TEST_P(OpDebug, GraphsAroundThemAreCompiledRightly) {
  const DebugOptions options{
      .patience = 2, .check_finite = false, .preallocated = {"ALL"}, .preallocated_ndim = 1};
  unsigned seed = static_cast<unsigned>(GetParam());
  for_each_sample([&](const ops::OpEntry& entry, const ops::OpSample& sample) {
    const Applied a = applied(entry, sample);
    const Arguments given = arguments_of(a.node, a.values);
    const GraphAround graph(a, seed += kShards);
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto run = [&](const Mode& mode) {
      return call(function(given.inputs, outputs_of(graph.outputs()), {.mode = mode}),
                  given.values);
    };
    const auto fast = run(Mode::fast_run), naive = run(Mode::no_rewrite);
    for (std::size_t k = 0; k < fast.size(); ++k) {
      EXPECT_LE(testing::distance(fast[k], naive[k]), testing::tolerance(naive[k].dtype()));
    }
    expect_equal(run(DebugMode(options)), fast);
  });
}

// -- sizes and wrong inputs ----------------------------------------------------------------------

// The sample with every axis of every input cut to `n`. If this is invalid, an error is thrown.
TEST_P(OpDebug, ArraysOfNoneAndOfOneElementAreInferredAsTheyAre) {
  const DebugOptions debug{.patience = 1, .check_finite = false};
  int legal = 0;
  for_each_sample([&](const ops::OpEntry&, const ops::OpSample& sample) {
    for (const index_t n : {0, 1}) {
      SCOPED_TRACE("axes of " + std::to_string(n));
      std::vector<Variable> variables;
      std::vector<In> inputs;
      std::vector<Tensor> values;
      for (Tensor t : sample.inputs) {
        for (std::size_t k = 0; k < t.rank(); ++k) {
          const auto axis = static_cast<index_t>(k);
          t = t.narrow(axis, 0, std::min(n, t.shape(axis)));
        }
        values.push_back(t);
        variables.push_back(testing::input_like(t));
        inputs.push_back(variables.back());
      }
      try {
        FunctionOptions options{.on_unused_input = Reaction::ignore};
        const Outputs outputs = outputs_of({sample.build(variables)});
        const std::vector<Tensor> expected = call(function(inputs, outputs, options), values);
        ++legal;
        options.mode = DebugMode(debug);
        expect_equal(call(function(inputs, outputs, options), values), expected);
      } catch (const ValueError&) {
      } catch (const TypeError&) {
      }
    }
  });
  EXPECT_GT(legal, 20);
}

TEST_P(OpDebug, WrongInputsAreRefusedByName) {
  int refused = 0;
  for_each_sample([&](const ops::OpEntry& entry, const ops::OpSample& sample) {
    const Applied a = applied(entry, sample);
    const auto try_out = [&](const std::vector<Variable>& inputs) {
      try {
        a.node.op().make_node(inputs);
      } catch (const Error& error) {
        ++refused;
        const std::string text = error.what();
        EXPECT_TRUE(dynamic_cast<const ValueError*>(&error) ||
                    dynamic_cast<const TypeError*>(&error))
            << text;
        EXPECT_EQ(text.front(), '[') << text;
      }
    };
    const std::vector<Variable> inputs(a.node.inputs().begin(), a.node.inputs().end());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      std::vector<Variable> wrong = inputs;
      TensorType other = inputs[i].type();
      other.shape.push_back(7);
      wrong[i] = make_input(other);
      try_out(wrong);
    }
    std::vector<Variable> many = inputs;
    many.insert(many.end(), 60, make_input({DType::float64, {}, {}}));
    try_out(many);
  });
  EXPECT_GT(refused, 20);
}

}  // namespace
}  // namespace palimpsest
