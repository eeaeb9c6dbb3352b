// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/plan/plan.hpp"

namespace palimpsest {
std::string_view name_of(BufferKind kind) {
  static constexpr std::string_view kNames[] = {"arena",    "output",    "update",
                                                "argument", "container", "constant"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace palimpsest
