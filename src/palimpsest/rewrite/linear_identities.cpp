// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/rewrite/linear_identities.hpp"

#include <cmath>
#include <optional>

#include "palimpsest/ops/elementwise.hpp"
#include "palimpsest/ops/elementwise_op.hpp"
#include "palimpsest/ops/fft_op.hpp"

namespace palimpsest {
namespace {

template <class T>
const T* op_of(const Variable& v) {
  const Apply owner = v.owner();
  return owner.defined() ? dynamic_cast<const T*>(&owner.op()) : nullptr;
}

double exponent_of(ops::FftScale scale) {
  switch (scale) {
    case ops::FftScale::one:
      return 0;
    case ops::FftScale::root:
      return 0.5;
    case ops::FftScale::inverse:
      return 1;
  }
  throw InternalError("[linear_identities] not a scale");
}

// x * N^p, where N is the number of transformed points; nothing when N is needed and unknown.
std::optional<Variable> scaled_by_points(const Variable& x, const Axes& axes, double p) {
  if (p == 0) return x;
  double points = 1;
  for (index_t axis : axes) {
    const index_t extent = x.type().shape[static_cast<std::size_t>(axis)];
    if (extent == kUnknown) return {};
    points *= static_cast<double>(extent);
  }
  return x * std::pow(points, p);
}

// F' F x, where F' has the opposite sign over the same axes: x times a power of N.
std::optional<Variable> cancel_transforms(const Variable& v) {
  const auto* outer = op_of<ops::Fft>(v);
  if (!outer) return {};
  const Variable between = v.owner().input(0);
  const auto* inner = op_of<ops::Fft>(between);
  if (!inner || inner->forward() == outer->forward() || inner->axes() != outer->axes() ||
      inner->centered() != outer->centered()) {
    return {};
  }
  const double p = 1 - exponent_of(inner->scale()) - exponent_of(outer->scale());
  return scaled_by_points(between.owner().input(0), outer->axes(), p);
}

bool is_conjugation(const Variable& v) {
  const auto* op = op_of<ops::Elementwise>(v);
  return op && op->scalar_op() == ScalarOp::conj;
}

std::optional<Variable> cancel_conjugations(const Variable& v) {
  if (!is_conjugation(v) || !is_conjugation(v.owner().input(0))) return {};
  return v.owner().input(0).owner().input(0);
}

}  // namespace

int apply_linear_identities(FunctionGraph& graph, const RewriteHints&) {
  int applied = 0;
  for (const Apply& node : graph.toposort()) {
    if (!graph.contains(node) || node.output_count() != 1) continue;
    const Variable v = node.output(0);
    for (const auto rule : {cancel_transforms, cancel_conjugations}) {
      const std::optional<Variable> simpler = rule(v);
      if (!simpler || !v.type().is_super(simpler->type())) continue;
      graph.replace(v, *simpler, "apply_linear_identities");
      ++applied;
      break;
    }
  }
  return applied;
}

}  // namespace palimpsest
