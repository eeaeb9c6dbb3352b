// SPDX-License-Identifier: Apache-2.0
// The laws that every op of the registry obeys, on its samples. Guard zones and unchanged inputs
// are checked by run_op in every one of them.
#include <gtest/gtest.h>

#include <complex>
#include <map>
#include <set>

#include "ops/op_runner.hpp"
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/ops/registry.hpp"
#include "support/new_counter.hpp"

namespace palimpsest {
namespace {

using testing::distance;
using testing::run_op;

// A sample, applied.
struct Applied {
  std::string name;
  std::vector<Variable> variables;
  Apply node;
  std::vector<Tensor> values;  // of the node's inputs
};

Applied applied(const ops::OpEntry& entry, const ops::OpSample& sample, bool known = true) {
  Applied result;
  result.name = std::string(entry.name) + ": " + sample.name;
  for (const Tensor& t : sample.inputs) {
    result.variables.push_back(testing::input_like(t, known));
  }
  result.node = sample.build(result.variables).owner();
  for (const Variable& v : result.node.inputs()) {
    if (v.is_constant()) {
      result.values.push_back(v.constant_value());
      continue;
    }
    const auto at = std::find(result.variables.begin(), result.variables.end(), v);
    if (at == result.variables.end()) {
      ADD_FAILURE() << result.name << ": the sample is of another op";
      break;
    }
    result.values.push_back(sample.inputs[static_cast<std::size_t>(at - result.variables.begin())]);
  }
  return result;
}

template <class F>
void for_each_sample(F&& law) {
  for (const ops::OpEntry& entry : ops::op_registry()) {
    for (const ops::OpSample& sample : entry.samples()) {
      SCOPED_TRACE(std::string(entry.name) + ": " + sample.name);
      law(applied(entry, sample));
    }
  }
}

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
  for (const ops::OpEntry& entry : ops::op_registry()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_FALSE(entry.samples().empty()) << entry.name;
  }
}

TEST(OpContract, ShapesThatAreUnknownInTheGraphAreInferredAlike) {
  for (const ops::OpEntry& entry : ops::op_registry()) {
    for (const ops::OpSample& sample : entry.samples()) {
      SCOPED_TRACE(std::string(entry.name) + ": " + sample.name);
      const Applied known = applied(entry, sample);
      EXPECT_TRUE(known.node.output(0).type().is_fully_known() ||
                  !known.node.input(0).type().is_fully_known());
      const Tensor expected = run_op(known.node, known.values);
      const Applied unknown = applied(entry, sample, false);
      if (unknown.values.size() != unknown.node.input_count()) continue;
      EXPECT_TRUE(equal(run_op(unknown.node, unknown.values), expected));
    }
  }
}

TEST(OpContract, AViewLiesWhereItSays) {
  int n_views = 0;
  for_each_sample([&](const Applied& a) {
    const AliasMap views = a.node.op().view_map(a.node);
    if (views.empty()) return;
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

TEST(OpContract, DestinationsMayBeStrided) {
  for_each_sample([](const Applied& a) {
    expect_close(run_op(a.node, a.values, {.strided_output = true}), run_op(a.node, a.values));
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
  for (const ops::OpEntry& entry : ops::op_registry()) {
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
    std::vector<Extents> extents;
    std::vector<Layout> layouts;
    std::vector<ConstView> views;
    for (const Tensor& t : a.values) {
      extents.push_back(t.shape());
      layouts.push_back({t.dtype(), t.shape(), t.strides(), 0});
      views.push_back(t.view_of());
    }
    const Op& op = a.node.op();
    Tensor out = Tensor::empty(op.infer_shapes(a.node, extents)[0], a.node.output(0).dtype());
    const MutableView outputs[] = {out.mutable_view()};
    std::vector<std::byte> scratch(op.scratch_bytes(a.node, layouts) + 64);
    auto address = reinterpret_cast<std::uintptr_t>(scratch.data());
    RunContext context(views, outputs,
                       {scratch.data() + (64 - address % 64) % 64, scratch.size() - 64});
    op.run(context);  // the first run makes plans
    const testing::NewCounter counter;
    op.run(context);
    EXPECT_EQ(counter.count(), 0U);
  });
}

// -- derivatives -------------------------------------------------------------------------------

Tensor combined(double s, const Tensor& a, double t, const Tensor& b) {
  const auto x = a.to(DType::complex128).to_vector<std::complex<double>>();
  const auto y = b.to(DType::complex128).to_vector<std::complex<double>>();
  if (is_complex(a.dtype())) {
    std::vector<std::complex<double>> sum;
    for (std::size_t i = 0; i < x.size(); ++i) sum.push_back(s * x[i] + t * y[i]);
    return Tensor::from(sum, a.shape()).to(a.dtype());
  }
  std::vector<double> sum;
  for (std::size_t i = 0; i < x.size(); ++i) sum.push_back(s * x[i].real() + t * y[i].real());
  return Tensor::from(sum, a.shape()).to(a.dtype());
}

// The derivative of the node along v in input i, by a central difference of step h.
Tensor difference(const Applied& a, std::size_t i, const Tensor& v, double h) {
  std::vector<Tensor> plus = a.values, minus = a.values;
  plus[i] = combined(1, a.values[i], h, v);
  minus[i] = combined(1, a.values[i], -h, v);
  return combined(0.5 / h, run_op(a.node, plus), -0.5 / h, run_op(a.node, minus));
}

TEST(OpContract, PullbackIsTheAdjointOfTheDerivative) {
  std::set<std::string> without;
  for_each_sample([&](const Applied& a) {
    const Op& op = a.node.op();
    const Variable y = a.node.output(0);
    if (!is_inexact(y.dtype())) return;
    const Tensor value = run_op(a.node, a.values);
    const Variable w = testing::input_like(value);
    std::vector<Variable> cotangents;
    try {
      cotangents = op.pullback(a.node, std::vector<Variable>{w});
    } catch (const NotSupported&) {
      without.insert(op.name());
      return;
    }
    ASSERT_EQ(cotangents.size(), a.node.input_count());
    testing::Bindings bindings{{y, value}, {w, ops::sample_values(value.shape(), y.dtype(), 77)}};
    for (std::size_t i = 0; i < a.values.size(); ++i) {
      if (!a.node.input(i).is_constant()) bindings.emplace_back(a.node.input(i), a.values[i]);
    }
    for (std::size_t i = 0; i < a.values.size(); ++i) {
      const DType dtype = a.values[i].dtype();
      if (!is_inexact(dtype)) {
        EXPECT_FALSE(cotangents[i].defined());
        continue;
      }
      const bool linear = op.linear_in(a.node, static_cast<int>(i)) != Linearity::no;
      const bool is_double =
          real_of(dtype) == DType::float64 && real_of(y.dtype()) == DType::float64;
      if (!linear && !is_double) continue;
      const Tensor v = ops::sample_values(a.values[i].shape(), dtype, 99);
      const double expected =
          testing::real_inner(bindings[1].second, difference(a, i, v, linear ? 1 : 1e-6));
      double got = 0;
      if (cotangents[i].defined()) {
        EXPECT_EQ(cotangents[i].dtype(), dtype);
        const Tensor cotangent = testing::evaluate(cotangents[i], bindings);
        EXPECT_EQ(cotangent.shape(), a.values[i].shape());
        got = testing::real_inner(cotangent, v);
      }
      const double precision = !is_double ? 1e-4 : linear ? 1e-12 : 1e-6;
      EXPECT_NEAR(got, expected, precision * (1 + std::abs(expected))) << "input " << i;
    }
  });
  EXPECT_EQ(without, (std::set<std::string>{"Prod", "Sinc", "Sign"}));
}

Tensor scaled(std::complex<double> s, const Tensor& t) {
  if (!is_complex(t.dtype())) return combined(s.real(), t, 0, t);
  auto x = t.to(DType::complex128).to_vector<std::complex<double>>();
  for (auto& element : x) element *= s;
  return Tensor::from(x, t.shape()).to(t.dtype());
}

TEST(OpContract, LinearityIsWhatItSays) {
  std::set<Linearity> seen;
  for_each_sample([&](const Applied& a) {
    const Op& op = a.node.op();
    for (std::size_t i = 0; i < a.values.size(); ++i) {
      const Linearity linearity = op.linear_in(a.node, static_cast<int>(i));
      if (linearity == Linearity::no) continue;
      seen.insert(linearity);
      const auto result = [&](const Tensor& t) {
        std::vector<Tensor> values = a.values;
        values[i] = t;
        return run_op(a.node, values);
      };
      const Tensor zero = Tensor::zeros(a.values[i].shape(), a.values[i].dtype());
      const Tensor at_zero = result(zero);
      if (!op.is_linear_sum(a.node)) {
        EXPECT_EQ(distance(at_zero, combined(0, at_zero, 0, at_zero)), 0);
      }
      const auto part = [&](const Tensor& t) { return combined(1, result(t), -1, at_zero); };
      const Tensor u = a.values[i], v = ops::sample_values(u.shape(), u.dtype(), 55);
      const bool is_double =
          real_of(at_zero.dtype()) == DType::float64 && real_of(u.dtype()) == DType::float64;
      const double precision = is_double ? 1e-12 : 1e-4;
      EXPECT_LE(distance(part(combined(1, u, 1, v)), combined(1, part(u), 1, part(v))), precision);
      const bool complex_scale = linearity != Linearity::real && is_complex(u.dtype());
      const std::complex<double> s(0.5, complex_scale ? -2 : 0);
      const auto t = linearity == Linearity::conjugate ? std::conj(s) : s;
      EXPECT_LE(distance(part(scaled(s, u)), scaled(t, part(u))), precision);
    }
  });
  EXPECT_EQ(seen, (std::set<Linearity>{Linearity::real, Linearity::complex, Linearity::conjugate}));
}

}  // namespace
}  // namespace palimpsest
