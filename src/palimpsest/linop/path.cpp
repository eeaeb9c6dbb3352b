// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "palimpsest/linop/node.hpp"

namespace palimpsest {
namespace {

struct Step {
  const NamedLinop* container;
  std::size_t index;
};
thread_local std::vector<Step> steps;

}  // namespace

PathScope::PathScope(const NamedLinop& container, std::size_t index) {
  steps.push_back({&container, index});
}
PathScope::~PathScope() { steps.pop_back(); }

std::string path_of(const NamedLinop& A) {
  std::string text;
  for (const Step& step : steps) {
    text += step.container->name() + "[" + std::to_string(step.index) + "]/";
  }
  return text + A.name();
}

std::string who(const NamedLinop& A) { return "[" + path_of(A) + "] "; }

}  // namespace palimpsest
