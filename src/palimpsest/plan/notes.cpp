// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/plan/notes.hpp"

#include <algorithm>

#include "palimpsest/base/config.hpp"
#include "palimpsest/base/stack_trace.hpp"
#include "palimpsest/copy/strided_copy.hpp"
#include "palimpsest/graph/origin.hpp"

namespace palimpsest {
namespace {

constexpr index_t kShownElements = 5;
constexpr std::size_t kLongestGraph = 4000;

std::string call_of(const Apply& node) {
  std::string text = node.op().name() + "(";
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    text += (i > 0 ? ", " : "") + node.input(i).str();
  }
  return text + ")";
}

// Elements are shown only of arrays that are cheap to read.
bool is_small(const ConstView& view) {
  constexpr index_t kMostElements = 1000;
  index_t count = 1;
  for (index_t extent : view.extents) {
    count *= extent;
    if (count > kMostElements) return false;
  }
  return view.data != nullptr;
}

// The first elements in row-major order; nothing when memory is so short that they cannot be shown.
std::string first_elements(const ConstView& view) try {
  Tensor all = Tensor::empty(view.extents, view.dtype);
  strided_copy(view, all.mutable_view());
  const index_t count = all.numel(), n = std::min(count, kShownElements);
  const std::string text = to_string(all.view({count})(slice(0, n)));
  const std::size_t begin = text.find('['), end = text.rfind(']');
  return " = " + text.substr(begin, end + 1 - begin) +
         (n < count ? " of " + std::to_string(count) : "");
} catch (const OutOfMemory&) {
  return {};
}

// The calls in which a user built the node, or the node that it replaces.
std::string calls_of(const Apply& node, const char* title) {
  const StackTrace* const origin = node.defined() ? node.node()->built_at.get() : nullptr;
  if (!origin || origin->empty()) return {};
  const bool is_low = config().exception_verbosity == Verbosity::low;
  if (is_low && origin->lines().empty()) return {};
  if (origin->lines().size() == 1) return std::string(title) + " at " + origin->lines().front();
  return std::string(title) + " in:\n" + origin->str();
}

// The path of the operator that the node is built for, or nothing.
std::string place_of(const Apply& node) {
  const Origin* const origin = origin_of(node);
  return origin && origin->place ? "of " + origin->place->str() : std::string();
}

// The same path, the node's rewrite, and the calls that built it.
std::string where_from(const Apply& node) {
  std::string text = place_of(node);
  if (!text.empty()) text.insert(0, "\n  ");
  const StackTrace* const built_at = node.node()->built_at.get();
  if (built_at && !built_at->rewrite().empty()) {
    text += "\n  introduced by the rewrite " + built_at->rewrite();
  }
  return text + calls_of(node, "\n  built");
}

}  // namespace

std::string name_of_step(const Plan& plan, std::size_t step) {
  const Apply& node = plan.steps[step].node;
  const std::string place = place_of(node);
  return "step " + std::to_string(step) + " (" + node.op().name() + ")" +
         (place.empty() ? place : " " + place);
}

std::string describe_step(const Plan& plan, std::size_t step, std::span<const ConstView> inputs) {
  const Apply& node = plan.steps[step].node;
  std::string text = "in step " + std::to_string(step) + ": " + call_of(node);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ConstView& view = inputs[i];
    text += "\n  input " + std::to_string(i) + ": " + node.input(i).str() + ": " +
            std::string(name_of(view.dtype)) + " shape " + to_string(view.extents) + " strides " +
            to_string(view.strides);
    if (is_small(view)) text += first_elements(view);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (config().exception_verbosity == Verbosity::low) break;
    const std::string title = "\n  input " + std::to_string(i) + " was built";
    text += calls_of(node.input(i).owner(), title.c_str());
    if (text.ends_with('\n')) text.pop_back();
  }
  text += where_from(node);
  if (config().exception_verbosity == Verbosity::high) {
    text += "\n  plan:\n" + plan.to_string().substr(0, kLongestGraph);
  }
  return text;
}

std::string describe_node(const Apply& node, std::span<const Extents> inputs) {
  std::string text = "in " + call_of(node) + " with shapes";
  for (const Extents& extents : inputs) text += " " + to_string(extents);
  return text + where_from(node);
}

}  // namespace palimpsest
