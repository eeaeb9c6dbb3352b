// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <optional>

#include "palimpsest/graph/origin.hpp"
#include "palimpsest/linop/core/workers.hpp"

// Common parts of Add, Concat and Stack: children that may run side by side.
namespace palimpsest {

/// Workers as attributes, before others.
Attributes with_workers(const Workers& workers, Attributes others = {});

/// The check of such a type: ValueError "num_workers", TypeError for attributes of another kind.
void check_workers(const NamedLinop& A);

/// While it lives, new steps are steps of the children of a container.
class WorkersScope {
 public:
  explicit WorkersScope(const NamedLinop& A);

 private:
  std::optional<OriginScope> limit_;
};

}  // namespace palimpsest
