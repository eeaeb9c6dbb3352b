// SPDX-License-Identifier: Apache-2.0
// Internal: the result of a solver as an object.
#pragma once

#include "palimpsest/python/arrays.hpp"
#include "palimpsest/solve/solve.hpp"

namespace palimpsest::python {

/// `kind`: what b was, and so what x is.
struct ResultObject {
  SolveResult result;
  Kind kind;
  nb::object A = {}, b = {};  // of a DataArray b: what x has its labels from
};

}  // namespace palimpsest::python
