// SPDX-License-Identifier: Apache-2.0
// Internal: the result of a solver as an object.
#pragma once

#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/options.hpp"
#include "palimpsest/solve/solve.hpp"

namespace palimpsest::python {

/// `kind`: the kind of array of b, and so of x.
struct ResultObject {
  SolveResult result;
  Kind kind;
  std::shared_ptr<GlobalObject> labels = {};  // for a DataArray b: (A, b), which give those of x
};

}  // namespace palimpsest::python
