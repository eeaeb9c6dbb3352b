// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/graph/registry.hpp"

#include "palimpsest/base/immortal.hpp"
#include "palimpsest/linop/core/builtin_types.hpp"
#include "palimpsest/linop/core/replace_linop.hpp"

namespace palimpsest {
namespace {

struct LinopTypes : Registry<const LinopType*> {
  LinopTypes() {
    for (const auto& type : linop_types::kBuiltIn) add(type().name, &type());
  }
};

LinopTypes& linop_registry() {
  return immortal([] { return LinopTypes(); });
}

}  // namespace

bool register_linop(const LinopType& type) {
  if (type.name.empty()) throw ValueError("[register_linop] the name is empty");
  if (!linop_registry().add(type.name, &type)) {
    throw ValueError("[register_linop] '" + type.name +
                     "' is already registered. Try a name with a prefix of yours");
  }
  return true;
}

void replace_linop(const LinopType& type) {
  if (type.name.empty()) throw ValueError("[replace_linop] the name is empty");
  linop_registry().set(type.name, &type);
}

const LinopType* find_linop(std::string_view name) { return linop_registry().find(name); }
std::vector<std::string> linop_names() { return linop_registry().names(); }

}  // namespace palimpsest
