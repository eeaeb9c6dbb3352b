// SPDX-License-Identifier: Apache-2.0
#include "rewrite/rewrite_runner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "palimpsest/base/config.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/inspect/mode_named.hpp"

namespace palimpsest::testing {
namespace {

using Limits = std::numeric_limits<double>;
using Float = std::numeric_limits<float>;

constexpr double kSpecial[] = {0.0,
                               -0.0,
                               1,
                               -1,
                               0.75,
                               -2.5,
                               3e-39,
                               -1e30,
                               Limits::infinity(),
                               -Limits::infinity(),
                               Limits::quiet_NaN(),
                               7};
constexpr index_t kSpecialCount = std::size(kSpecial);
constexpr double kOrdinary[] = {0.3, -1.25, 2, 0.01, -0.5, 1.75, 3, -2, 0.9, 1, -0.125, 0.6};

std::vector<Rewrite> passes_named(const std::string& name) {
  std::vector<Rewrite> found;
  for (const Rewrite& rewrite : rewrite_list()) {
    if (rewrite.name == name) found.push_back(rewrite);
  }
  EXPECT_FALSE(found.empty()) << "no pass is called " << name;
  return found;
}

int run_pass(const std::string& pass, FunctionGraph& graph) {
  const Rewrite rewrite = passes_named(pass).at(0);
  return rewrite.run(graph, {}).applied;
}

// Numbers as pairs of parts; integers as such.
std::vector<std::complex<double>> numbers(const Tensor& t) {
  return t.to(DType::complex128).to_vector<std::complex<double>>();
}

bool same_double(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

void expect_same_values(const std::string& pass, const RewriteCase& c, Agreement agreement) {
  const std::vector<Variable> inputs = inputs_of({c.value});
  std::vector<Tensor> arguments;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    arguments.push_back(values_for(inputs[i], agreement, static_cast<int>(i)));
  }
  const ConfigScope scope({.on_opt_error = Reaction::raise});
  const std::vector<In> in(inputs.begin(), inputs.end());
  const auto value_in = [&](const Mode& mode) {
    Tensor result;
    function(in, {c.value}, {.mode = mode}).call(arguments, {&result, 1});
    return result;
  };
  const Tensor expected = value_in(NoRewrite()), got = value_in(NoRewrite().including({pass}));
  const bool is_right =
      agreement == Agreement::bits ? same_bits(got, expected) : nearly_equal(got, expected);
  EXPECT_TRUE(is_right) << pass << ", " << c.what << "\nexpected " << expected << "\ngot " << got;
  const Tensor all = value_in(FastRun()), exact = value_in(FastRun().exact());
  EXPECT_TRUE(same_bits(exact, expected))
      << "exact, " << c.what << "\nexpected " << expected << "\ngot " << exact;
  if (agreement == Agreement::rounding) {
    EXPECT_TRUE(nearly_equal(all, expected))
        << "FastRun, " << c.what << "\nexpected " << expected << "\ngot " << all;
  }
}

}  // namespace

std::vector<std::string> op_names(const FunctionGraph& graph) {
  std::vector<std::string> result;
  for (const Apply& node : graph.toposort()) {
    if (node.op().view_map(node).empty()) result.push_back(node.op().name());
  }
  return result;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  const auto x = numbers(a), y = numbers(b);
  return std::equal(x.begin(), x.end(), y.begin(), [](const auto& p, const auto& q) {
    return same_double(p.real(), q.real()) && same_double(p.imag(), q.imag());
  });
}

bool nearly_equal(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  const auto x = numbers(a), y = numbers(b);
  double largest = 1;
  for (const auto& p : y) {
    if (std::isfinite(std::abs(p))) largest = std::max(largest, std::abs(p));
  }
  const double epsilon =
      real_of(a.dtype()) == DType::float32 ? Float::epsilon() : Limits::epsilon();
  return std::equal(x.begin(), x.end(), y.begin(), [&](const auto& p, const auto& q) {
    for (const auto& [u, v] : {std::pair(p.real(), q.real()), std::pair(p.imag(), q.imag())}) {
      if (same_double(u, v)) continue;
      if (!(std::abs(u - v) <= 256 * epsilon * largest)) return false;
    }
    return true;
  });
}

std::vector<Variable> inputs_of(const std::vector<Variable>& values) {
  std::vector<Variable> found;
  const auto add = [&](const Variable& v) {
    if (!v.is_root() || v.is_constant()) return;
    if (std::find(found.begin(), found.end(), v) == found.end()) found.push_back(v);
  };
  for (const Apply& node : applications_of(values)) {
    for (const Variable& v : node.inputs()) add(v);
  }
  for (const Variable& v : values) add(v);
  return found;
}

Tensor values_for(const Variable& input, Agreement agreement, int seed) {
  Extents extents = input.type().shape;
  for (index_t& n : extents) {
    if (n == kUnknown) n = kSpecialCount * kSpecialCount;
  }
  const index_t n = element_count(extents);
  std::vector<std::complex<double>> elements;
  for (index_t i = 0; i < n; ++i) {
    // Two inputs together take all pairs.
    const index_t k = seed % 2 == 0 ? i % kSpecialCount : i / kSpecialCount % kSpecialCount;
    const auto& list = agreement == Agreement::bits ? kSpecial : kOrdinary;
    const double re = list[static_cast<std::size_t>(k)];
    const double im = list[static_cast<std::size_t>((k + 5 + seed) % kSpecialCount)];
    elements.emplace_back(re, im);
  }
  const DType dtype = input.dtype();
  if (is_complex(dtype)) return Tensor::from(elements, extents).to(dtype);
  std::vector<double> parts;
  for (const auto& z : elements) {
    const bool has_value =
        is_inexact(dtype) || (std::isfinite(z.real()) && std::abs(z.real()) < 99);
    parts.push_back(has_value ? z.real() : 1);
  }
  return Tensor::from(parts, extents).to(dtype);
}

void expect_rewritten(const std::string& pass, const RewriteCase& c, Agreement agreement) {
  FunctionGraph graph(inputs_of({c.value}), {c.value});
  EXPECT_GT(run_pass(pass, graph), 0) << pass << ", " << c.what;
  EXPECT_EQ(op_names(graph), c.ops) << pass << ", " << c.what;
  EXPECT_EQ(run_pass(pass, graph), 0) << pass << " again, " << c.what;
  expect_same_values(pass, c, agreement);
}

void expect_rewritten(const std::string& pass, const std::vector<RewriteCase>& cases,
                      Agreement agreement) {
  for (const RewriteCase& c : cases) expect_rewritten(pass, c, agreement);
}

void expect_left_alone(const std::string& pass, const Variable& value, const std::string& what) {
  FunctionGraph graph(inputs_of({value}), {value});
  const std::string before = graph.str();
  EXPECT_EQ(run_pass(pass, graph), 0) << pass << ", " << what << ": " << before;
  EXPECT_EQ(graph.str(), before) << pass << ", " << what;
}

std::vector<std::string> ops_in(const std::vector<Variable>& inputs,
                                const std::vector<Variable>& results, const std::string& mode) {
  const std::vector<In> in(inputs.begin(), inputs.end());
  const std::vector<Out> out(results.begin(), results.end());
  return op_names(function(in, out, {.mode = mode_named(mode)}).graph());
}

}  // namespace palimpsest::testing
