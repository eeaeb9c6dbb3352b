// SPDX-License-Identifier: Apache-2.0
// Internal: the result of a solver as an object.
#pragma once

#include "palimpsest/python/arrays.hpp"
#include "palimpsest/solve/solve.hpp"

namespace palimpsest::python {

/// `kind`: the kind of array of b, and so of x.
struct ResultObject {
  SolveResult result;
  Kind kind;
  nb::object A = {}, b = {};  // for a DataArray b: the source of the labels of x
};

}  // namespace palimpsest::python
