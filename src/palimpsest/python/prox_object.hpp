// SPDX-License-Identifier: Apache-2.0
// Internal: proximal functions and objectives as objects.
#pragma once

#include "palimpsest/python/convert.hpp"
#include "palimpsest/solve/objective.hpp"
#include "palimpsest/solve/prox/prox.hpp"

namespace palimpsest::python {

struct ProxObject {
  Prox value;
};
struct TermObject {
  Term value;
};
struct QuadraticObject {
  Quadratic value;
};
struct ObjectiveObject {
  Objective value;
};

}  // namespace palimpsest::python
