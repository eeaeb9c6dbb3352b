// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/graph/op_registry.hpp"

#include "palimpsest/base/immortal.hpp"
#include "palimpsest/graph/registry.hpp"

namespace palimpsest {
namespace {

Registry<OpFactory>& op_registry() {
  return immortal([] { return Registry<OpFactory>(); });
}

}  // namespace

void register_op(std::string name, OpFactory factory) {
  if (!op_registry().add(name, std::move(factory))) {
    throw ValueError("[register_op] '" + name + "' is registered already");
  }
}

OpPtr restore_op(std::string_view name, std::string_view parameters) {
  const OpFactory factory = op_registry().find(name);
  if (!factory) {
    throw IoError("[restore_op] unknown op '" + std::string(name) +
                  "'. Try to register it first, with register_op");
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
