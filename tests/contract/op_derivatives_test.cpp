// SPDX-License-Identifier: Apache-2.0
// The laws of derivatives for every op of the registry, on its samples.
#include <gtest/gtest.h>

#include <complex>
#include <set>

#include "contract/applied.hpp"
#include "ops/op_runner.hpp"
#include "palimpsest/ops/ops.hpp"

namespace palimpsest {
namespace {

using testing::Applied;
using testing::distance;
using testing::for_each_sample;
using testing::run_op;

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

Tensor scaled(std::complex<double> s, const Tensor& t) {
  if (!is_complex(t.dtype())) return combined(s.real(), t, 0, t);
  auto x = t.to(DType::complex128).to_vector<std::complex<double>>();
  for (auto& element : x) element *= s;
  return Tensor::from(x, t.shape()).to(t.dtype());
}

bool is_double(DType dtype) { return is_inexact(dtype) && real_of(dtype) == DType::float64; }

// Values for all variables that a derivative of the node may use: inputs and output.
testing::Bindings bindings_of(const Applied& a) {
  testing::Bindings result{{a.node.output(0), run_op(a.node, a.values)}};
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    if (!a.node.input(i).is_constant()) result.emplace_back(a.node.input(i), a.values[i]);
  }
  return result;
}

// Ops compared with a difference in double precision, and ops without derivative. Real and complex
// inputs count separately.
struct Coverage {
  std::set<std::string> differentiable, compared, without;
};

std::string with_field(const Op& op, DType dtype) {
  return op.name() + (is_complex(dtype) ? " of complex" : " of real");
}

void check_pullback(const Applied& a, Coverage& coverage) {
  const Op& op = a.node.op();
  const Variable y = a.node.output(0);
  // StopGradient intentionally has no derivative.
  if (!is_inexact(y.dtype()) || op.name() == "StopGradient") return;
  testing::Bindings bindings = bindings_of(a);
  const Variable w = testing::input_like(bindings[0].second);
  const Tensor cotangent_of_y = ops::sample_values(bindings[0].second.shape(), y.dtype(), 77);
  std::vector<Variable> cotangents;
  try {
    std::vector<Variable> of_outputs(a.node.output_count());
    of_outputs[0] = w;
    cotangents = op.pullback(a.node, of_outputs);
  } catch (const NotSupported&) {
    coverage.without.insert(op.name());
    return;
  }
  ASSERT_EQ(cotangents.size(), a.node.input_count());
  bindings.emplace_back(w, cotangent_of_y);
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const DType dtype = a.values[i].dtype();
    if (!is_inexact(dtype)) {
      EXPECT_FALSE(cotangents[i].defined());
      continue;
    }
    if (!op.uses_elements(a.node, static_cast<int>(i))) continue;
    coverage.differentiable.insert(with_field(op, dtype));
    const bool linear = op.linear_in(a.node, static_cast<int>(i)) != Linearity::no;
    const bool precise = is_double(dtype) && is_double(y.dtype());
    if (!linear && !precise) continue;
    if (precise) coverage.compared.insert(with_field(op, dtype));
    const Tensor v = ops::sample_values(a.values[i].shape(), dtype, 99);
    const double expected =
        testing::real_inner(cotangent_of_y, difference(a, i, v, linear ? 1 : 1e-6));
    if (a.values[i].numel() == 0 && std::isnan(expected)) continue;  // inf - inf
    double got = 0;
    if (cotangents[i].defined()) {
      EXPECT_EQ(cotangents[i].dtype(), dtype);
      if (!cotangents[i].is_root() && cotangents[i].owner().op().name() == "RefusedCotangent") {
        EXPECT_THROW(testing::evaluate(cotangents[i], bindings), NotSupported);
        continue;
      }
      const Tensor cotangent = testing::evaluate(cotangents[i], bindings);
      EXPECT_EQ(cotangent.shape(), a.values[i].shape());
      got = testing::real_inner(cotangent, v);
    }
    const double precision = !precise ? 1e-4 : linear ? 1e-12 : 1e-6;
    EXPECT_NEAR(got, expected, precision * (1 + std::abs(expected))) << "input " << i;
  }
}

TEST(OpDerivatives, PullbackIsTheAdjointOfTheDerivative) {
  Coverage coverage;
  for_each_sample([&](const Applied& a) { check_pullback(a, coverage); });
  // Equal singular values have no derivative; an op that refuses a derivative throws an error.
  const std::set<std::string> without{"NuclearNorms", "SoftenSingularValues", "Svd"};
  EXPECT_EQ(coverage.without, without);
  coverage.differentiable.erase("Cast of complex");  // from one precision to another
  for (const std::string& name : coverage.differentiable) {
    EXPECT_TRUE(coverage.compared.contains(name)) << name << " has no sample in double precision";
  }
  // For every op both a real and a complex input are compared, unless it takes only one of them.
  const std::set<std::string> real_only{"Arctan2", "Clip", "Erf",     "FloorDiv", "FusedMax",
                                        "Hypot",   "Max",  "Maximum", "Min",      "MakeComplex",
                                        "Minimum", "Mod",  "Cast",    "RealFft",  "ViewAsComplex"};
  const std::set<std::string> complex_only{"Fft", "RealFftBack", "ViewAsReal"};
  for (const std::string& entry : coverage.compared) {
    const std::string name = entry.substr(0, entry.find(' '));
    if (!real_only.contains(name)) {
      EXPECT_TRUE(coverage.compared.contains(name + " of complex")) << name;
    }
    if (!complex_only.contains(name)) {
      EXPECT_TRUE(coverage.compared.contains(name + " of real")) << name;
    }
  }
  EXPECT_GT(coverage.compared.size(), 60U);
}

TEST(OpDerivatives, PushforwardIsTheDerivative) {
  int n_compared = 0;
  for_each_sample([&](const Applied& a) {
    const Variable y = a.node.output(0);
    if (!is_inexact(y.dtype()) || a.node.op().name() == "StopGradient") return;
    testing::Bindings bindings = bindings_of(a);
    std::vector<Variable> wrt, tangents;
    Tensor expected;
    for (std::size_t i = 0; i < a.values.size(); ++i) {
      if (!is_inexact(a.values[i].dtype())) continue;
      if (!is_double(a.values[i].dtype()) || !is_double(y.dtype())) return;
      const bool linear = a.node.op().linear_in(a.node, static_cast<int>(i)) != Linearity::no;
      const Tensor v = ops::sample_values(a.values[i].shape(), a.values[i].dtype(), 99 + i);
      const Tensor part = difference(a, i, v, linear ? 1 : 1e-6);
      expected = expected.defined() ? combined(1, expected, 1, part) : part;
      wrt.push_back(a.node.input(i));
      tangents.push_back(testing::input_like(v));
      bindings.emplace_back(tangents.back(), v);
    }
    if (wrt.empty()) return;
    std::vector<Variable> result;
    try {
      result = pushforward({&y, 1}, wrt, tangents);
    } catch (const NotSupported&) {
      return;  // the test of the pullback lists these ops
    }
    ++n_compared;
    EXPECT_EQ(result[0].dtype(), y.dtype());
    const bool has_moved = !std::isnan(testing::real_inner(expected, expected));  // not inf - inf
    if (has_moved) {
      EXPECT_LE(distance(testing::evaluate(result[0], bindings), expected), 1e-6);
    }
  });
  EXPECT_GT(n_compared, 150);
}

// The application as a function of its input i alone. Other inputs in which it is linear become
// zeros.
Apply in_one_input(const Applied& a, std::size_t i) {
  std::vector<Variable> inputs(a.node.inputs().begin(), a.node.inputs().end());
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (k != i && a.node.op().linear_in(a.node, static_cast<int>(k)) != Linearity::no) {
      inputs[k] = constant(Tensor::zeros(a.values[k].shape(), a.values[k].dtype()));
    }
  }
  return a.node.op().make_node(inputs);
}

TEST(OpDerivatives, LinearAdjointPassesTheDotTest) {
  std::set<std::string> linear, tested;
  for_each_sample([&](const Applied& a) {
    for (std::size_t i = 0; i < a.values.size(); ++i) {
      const Linearity linearity = a.node.op().linear_in(a.node, static_cast<int>(i));
      if (linearity == Linearity::no) continue;
      if (is_inexact(a.values[i].dtype())) linear.insert(a.node.op().name());
      const Apply node = a.node.op().is_linear_sum(a.node) ? in_one_input(a, i) : a.node;
      const Variable y = node.output(0), x = node.input(i);
      if (x.is_constant() || !is_inexact(x.dtype())) continue;
      tested.insert(a.node.op().name());
      EXPECT_EQ(is_linear(y, x), linearity);
      testing::Bindings bindings;
      for (std::size_t k = 0; k < a.values.size(); ++k) {
        if (!node.input(k).is_constant()) bindings.emplace_back(node.input(k), a.values[k]);
      }
      const Tensor image = testing::evaluate(y, bindings);
      const Variable w = testing::input_like(image);
      bindings.emplace_back(w, ops::sample_values(image.shape(), y.dtype(), 66));
      const Tensor adjoint = testing::evaluate(linear_adjoint(y, x, w), bindings);
      const bool precise = is_double(x.dtype()) && is_double(y.dtype());
      const auto expect_equal = [&](double got, double expected) {
        EXPECT_NEAR(got, expected, (precise ? 1e-12 : 1e-4) * (1 + std::abs(expected)));
      };
      const Tensor& v = a.values[i];
      const Tensor& u = bindings.back().second;
      expect_equal(testing::real_inner(adjoint, v), testing::real_inner(u, image));
      if (linearity != Linearity::complex || !is_complex(x.dtype())) continue;
      const std::complex<double> imaginary(0, 1);  // Im<u, v> = Re<u, -i v>
      expect_equal(testing::real_inner(adjoint, scaled(-imaginary, v)),
                   testing::real_inner(u, scaled(-imaginary, image)));
    }
  });
  EXPECT_EQ(linear, tested);
}

TEST(OpDerivatives, LinearityIsWhatItSays) {
  std::set<Linearity> seen;
  for_each_sample([&](const Applied& a) {
    const Op& op = a.node.op();
    for (std::size_t i = 0; i < a.values.size(); ++i) {
      const Linearity linearity = op.linear_in(a.node, static_cast<int>(i));
      if (linearity == Linearity::no || !is_inexact(a.values[i].dtype())) continue;
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
