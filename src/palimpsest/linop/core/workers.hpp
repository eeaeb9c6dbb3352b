// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

/// Parallel execution of the children of Add, Concat and Stack. Kept as the attributes `threaded`
/// and `num_workers`, which set_attr() changes. Results have the same bits for all values.
struct Workers {
  bool threaded = true;     ///< children may run side by side, as far as the budget allows
  index_t num_workers = 0;  ///< maximum at a time; 0: config.threads

  friend bool operator==(const Workers&, const Workers&) = default;
};

/// Errors   ValueError: fewer than 0 workers; TypeError: attributes of another kind
Workers workers_of(const NamedLinop& A);

}  // namespace palimpsest
