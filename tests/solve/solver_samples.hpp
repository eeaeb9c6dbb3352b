// SPDX-License-Identifier: Apache-2.0
// Every registered solver with problems that show its options.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "palimpsest/solve/frame/solver.hpp"

namespace palimpsest::testing {

struct SolverSample {
  std::string solver, variant;
  std::function<Problem(DType)> problem;
  Extents data;  // of b: images S N of extents 2 and 24, or 3 of them along C
  bool has_batch = true;
  friend std::ostream& operator<<(std::ostream& stream, const SolverSample& s);
};

/// What stands in a problem for the operator S N -> C S N with 3 coils; none: that operator.
using CoilsMadeOf = std::function<NamedLinop(const NamedLinop&)>;
std::vector<SolverSample> solver_samples(const CoilsMadeOf& made_of = {});

}  // namespace palimpsest::testing
