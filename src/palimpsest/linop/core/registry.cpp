// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <mutex>

#include "palimpsest/base/immortal.hpp"
#include "palimpsest/linop/core/builtin_types.hpp"
#include "palimpsest/linop/core/replace_linop.hpp"

namespace palimpsest {
namespace {

struct Registry {
  Registry() {
    for (const auto& type : linop_types::kBuiltIn) types.emplace(type().name, &type());
  }
  Mutex mutex;
  std::map<std::string, const LinopType*, std::less<>> types;
};

Registry& registry() {
  return immortal([] { return Registry(); });
}

}  // namespace

bool register_linop(const LinopType& type) {
  if (type.name.empty()) throw ValueError("[register_linop] the name is empty");
  Registry& known = registry();
  const std::lock_guard guard(known.mutex);
  if (!known.types.emplace(type.name, &type).second) {
    throw ValueError("[register_linop] '" + type.name +
                     "' is already registered. Try a name with a prefix of yours");
  }
  return true;
}

void replace_linop(const LinopType& type) {
  if (type.name.empty()) throw ValueError("[replace_linop] the name is empty");
  Registry& known = registry();
  const std::lock_guard guard(known.mutex);
  known.types.insert_or_assign(type.name, &type);
}

const LinopType* find_linop(std::string_view name) {
  Registry& known = registry();
  const std::lock_guard guard(known.mutex);
  const auto found = known.types.find(name);
  return found == known.types.end() ? nullptr : found->second;
}

std::vector<std::string> linop_names() {
  Registry& known = registry();
  const std::lock_guard guard(known.mutex);
  std::vector<std::string> names;
  for (const auto& [name, type] : known.types) names.push_back(name);
  return names;
}

}  // namespace palimpsest
