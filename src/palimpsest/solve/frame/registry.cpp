// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/graph/registry.hpp"

#include "palimpsest/base/error.hpp"
#include "palimpsest/base/immortal.hpp"
#include "palimpsest/solve/frame/solver_type.hpp"

namespace palimpsest {
namespace {

Registry<const SolverType*>& solver_registry() {
  return immortal([] { return Registry<const SolverType*>(); });
}

}  // namespace

bool register_solver(const SolverType& type) {
  if (type.declare == nullptr || type.step == nullptr) {
    throw ValueError("[" + std::string(type.name) + "] " +
                     (type.declare == nullptr ? "declare" : "step") +
                     ": got none, expected a function");
  }
  if (!solver_registry().add(type.name, &type)) {
    throw ValueError("[" + std::string(type.name) +
                     "] a solver of this name is already registered");
  }
  return true;
}

const SolverType* find_solver(std::string_view name) { return solver_registry().find(name); }
std::vector<std::string> solver_names() { return solver_registry().names(); }

}  // namespace palimpsest
