// SPDX-License-Identifier: Apache-2.0
// The ops that files may hold.
#include "palimpsest/ops/registry.hpp"

#include <mutex>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/ops/registered_ops.hpp"

namespace palimpsest::ops {

void register_library_ops() {
  const ForkSection whole;
  static constinit std::once_flag once;
  std::call_once(once, [] {
    for (const auto register_ops : kRegisteredOps) register_ops();
  });
}

}  // namespace palimpsest::ops
