// SPDX-License-Identifier: Apache-2.0
// Internal: owners of the objects of ops that are written in Python.
#pragma once

#include <span>
#include <vector>

#include "palimpsest/python/convert.hpp"

namespace palimpsest::python {

/// Copies a graph down to `inputs` if it has ops of Python. Ops of the copy refer to their objects
/// weakly, or keep them. Returns the objects. The owner of a graph with weak references keeps these
/// objects in view of Python's garbage collector: an op may refer to the function it is part of.
std::vector<nb::object> hold_ops(std::vector<Variable>& graph, std::span<const Variable> inputs,
                                 bool weak);

}  // namespace palimpsest::python
