// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/core/threadable.hpp"

#include <algorithm>
#include <limits>

#include "palimpsest/linop/core/node.hpp"

namespace palimpsest {

Workers workers_of(const NamedLinop& A) {
  // Files of older versions lack them.
  Workers workers;
  if (A.has_attr("threaded")) workers.threaded = A.attr("threaded").as_bool();
  if (A.has_attr("num_workers")) workers.num_workers = A.attr("num_workers").as_integer();
  if (workers.num_workers >= 0) return workers;
  throw ValueError(who(A) + "num_workers: got " + std::to_string(workers.num_workers) +
                   ", expected 0 (config.threads) or more");
}

Attributes with_workers(const Workers& workers, Attributes others) {
  Attributes attrs{{"threaded", workers.threaded}, {"num_workers", workers.num_workers}};
  for (auto& other : others) {
    if (other.first != "threaded" && other.first != "num_workers") {
      attrs.push_back(std::move(other));
    }
  }
  return attrs;
}

void check_workers(const NamedLinop& A) { workers_of(A); }

WorkersScope::WorkersScope(const NamedLinop& A) {
  const Workers workers = workers_of(A);
  constexpr index_t kMost = std::numeric_limits<int>::max();
  if (!workers.threaded) {
    limit_.emplace(1);
  } else if (workers.num_workers > 0) {
    limit_.emplace(static_cast<int>(std::min(workers.num_workers, kMost)));
  }
}

}  // namespace palimpsest
