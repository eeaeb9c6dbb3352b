// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <mutex>

#include "palimpsest/base/error.hpp"
#include "palimpsest/base/fork.hpp"
#include "palimpsest/base/immortal.hpp"
#include "palimpsest/solve/frame/solver_type.hpp"

namespace palimpsest {
namespace {

struct Registry {
  Mutex mutex;
  std::map<std::string, const SolverType*, std::less<>> types;
};

Registry& registry() {
  return immortal([] { return Registry(); });
}

}  // namespace

bool register_solver(const SolverType& type) {
  if (type.declare == nullptr || type.step == nullptr) {
    throw ValueError("[" + std::string(type.name) + "] " +
                     (type.declare == nullptr ? "declare" : "step") +
                     ": got none, expected a function");
  }
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  if (!known.types.emplace(std::string(type.name), &type).second) {
    throw ValueError("[" + std::string(type.name) +
                     "] a solver of this name is already registered");
  }
  return true;
}

const SolverType* find_solver(std::string_view name) {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  const auto found = known.types.find(name);
  return found == known.types.end() ? nullptr : found->second;
}

std::vector<std::string> solver_names() {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  std::vector<std::string> names;
  for (const auto& [name, type] : known.types) names.push_back(name);
  return names;
}

}  // namespace palimpsest
