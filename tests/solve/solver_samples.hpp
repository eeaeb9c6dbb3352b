// SPDX-License-Identifier: Apache-2.0
// Every registered solver, with problems that use its options.
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

/// Replaces the operator S N -> C S N with 3 coils in a problem; empty: keeps that operator.
using CoilsMadeOf = std::function<NamedLinop(const NamedLinop&)>;
std::vector<SolverSample> solver_samples(const CoilsMadeOf& made_of = {});

}  // namespace palimpsest::testing
