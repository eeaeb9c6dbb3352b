// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/solve.hpp"

namespace palimpsest {

std::string_view name_of(Status status) {
  switch (status) {
    case Status::converged:
      return "converged";
    case Status::max_iterations:
      return "max_iterations";
    case Status::breakdown:
      return "breakdown";
    case Status::diverged:
      return "diverged";
    case Status::stopped:
      return "stopped";
  }
  return "unknown";
}

}  // namespace palimpsest
