// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/graph/inferred_shapes.hpp"

#include <algorithm>

namespace palimpsest {
namespace {

bool fits(const Extents& got, const Extents& expected) {
  return std::equal(
      got.begin(), got.end(), expected.begin(), expected.end(),
      [](index_t a, index_t b) { return a == kUnknown || (a >= 0 && (b == kUnknown || a == b)); });
}

std::string text_of(const Apply& node, const std::vector<Extents>& got, int output) {
  const std::string text = "[" + node.op().name() + "] infer_shapes: got ";
  if (output < 0) {
    return text + std::to_string(got.size()) + (got.size() == 1 ? " shape" : " shapes") +
           ", expected one for each output, " + std::to_string(node.output_count());
  }
  const auto k = static_cast<std::size_t>(output);
  return text + extents_text(got[k]) + " for output " + std::to_string(k) +
         ", expected a shape that its type admits, " + node.output(k).type().str();
}

}  // namespace

InferredShapesError::InferredShapesError(const Apply& node, std::vector<Extents> got, int output)
    : ShapeError(text_of(node, got, output)),
      facts_(std::make_shared<const Facts>(Facts{node, std::move(got), output})) {}

std::vector<Extents> inferred_shapes(const Apply& node, std::span<const Extents> inputs) {
  std::vector<Extents> shapes = node.op().infer_shapes(node, inputs);
  if (shapes.size() != node.output_count()) {
    throw InferredShapesError(node, std::move(shapes), -1);
  }
  for (std::size_t k = 0; k < shapes.size(); ++k) {
    if (fits(shapes[k], node.output(k).type().shape)) continue;
    throw InferredShapesError(node, std::move(shapes), static_cast<int>(k));
  }
  return shapes;
}

}  // namespace palimpsest
