// SPDX-License-Identifier: Apache-2.0
// Internal: proximal functions and objectives as objects.
#pragma once

#include "palimpsest/python/convert.hpp"
#include "palimpsest/solve/objective.hpp"
#include "palimpsest/solve/prox/prox.hpp"

namespace palimpsest::python {

struct ProxObject {
  static constexpr const char* kName = "Prox";
  Prox value;
};
struct TermObject {
  static constexpr const char* kName = "Term";
  Term value;
};
struct QuadraticObject {
  static constexpr const char* kName = "Quadratic";
  Quadratic value;
};
struct ObjectiveObject {
  static constexpr const char* kName = "Objective";
  Objective value;
};

}  // namespace palimpsest::python
