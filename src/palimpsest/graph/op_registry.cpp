// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/graph/op_registry.hpp"

#include <map>
#include <mutex>

#include "palimpsest/base/immortal.hpp"

namespace palimpsest {
namespace {

struct Registry {
  Mutex mutex;
  std::map<std::string, OpFactory, std::less<>> factories;  // guarded by mutex
};

Registry& registry() {
  return immortal([] { return Registry(); });
}

}  // namespace

void register_op(std::string name, OpFactory factory) {
  Registry& known = registry();
  const std::lock_guard guard(known.mutex);
  const auto [it, is_new] = known.factories.try_emplace(std::move(name), std::move(factory));
  if (!is_new) throw ValueError("[register_op] '" + it->first + "' is registered already");
}

OpPtr restore_op(std::string_view name, std::string_view parameters) {
  OpFactory factory;
  {
    Registry& known = registry();
    const std::lock_guard guard(known.mutex);
    const auto it = known.factories.find(name);
    if (it == known.factories.end()) {
      throw IoError("[restore_op] unknown op '" + std::string(name) +
                    "'. Try to register it first, with register_op");
    }
    factory = it->second;
  }
  const auto unreadable = [&](const std::string& why) {
    return FormatError("[restore_op] " + std::string(name) + "{" + std::string(parameters) +
                       "}: " + why);
  };
  OpPtr op;
  try {
    op = factory(name, parameters);
  } catch (const Error& error) {
    throw unreadable(error.what());
  }
  if (!op || op->name() != name || op->parameters() != parameters) {
    throw unreadable("these are not the parameters of such an op" +
                     (op ? ": got " + op->str() : std::string()));
  }
  return op;
}

}  // namespace palimpsest
