// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "palimpsest/graph/function_graph.hpp"

namespace palimpsest::testing {

/// Required agreement of values with and without a pass.
enum class Agreement {
  bits,     // also for NaN, infinities, both zeros, tiny and huge numbers
  rounding  // for numbers of ordinary size
};

/// An expression and the ops that remain of it, without views, in the order of the graph.
struct RewriteCase {
  std::string what;
  Variable value;
  std::vector<std::string> ops;
};

/// The pass of the library with this name turns the expression into those ops, a second run does
/// nothing, and a function compiled with this pass alone gives the result of one without passes.
/// Unknown extents are large enough for all pairs of special values of two inputs.
void expect_rewritten(const std::string& pass, const RewriteCase& c, Agreement agreement);
void expect_rewritten(const std::string& pass, const std::vector<RewriteCase>& cases,
                      Agreement agreement);

/// Expects that the pass leaves a similar expression alone.
void expect_left_alone(const std::string& pass, const Variable& value,
                       const std::string& what = {});

/// The ops of a graph in its order, without views.
std::vector<std::string> op_names(const FunctionGraph& graph);

/// The ops of the optimized function of these results in this mode, without views.
std::vector<std::string> ops_in(const std::vector<Variable>& inputs,
                                const std::vector<Variable>& results, const std::string& mode);

/// Compares bits; all NaN are equal.
bool same_bits(const Tensor& a, const Tensor& b);
/// Within some rounding errors of the largest number; NaN and infinities must agree.
bool nearly_equal(const Tensor& a, const Tensor& b);

/// The inputs that a value is computed from, in the order of their creation in the graph.
std::vector<Variable> inputs_of(const std::vector<Variable>& values);
/// Values for an input, special or ordinary ones; `seed` differs between inputs.
Tensor values_for(const Variable& input, Agreement agreement, int seed);

}  // namespace palimpsest::testing
