// SPDX-License-Identifier: Apache-2.0
// Internal: walks and copies of graphs, and what a value or an application has beyond its
// computation. Everything that copies, replaces or rebuilds parts of a graph passes it on by these
// functions.
#pragma once

#include <functional>

#include "palimpsest/graph/variable.hpp"

namespace palimpsest {

/// Gives a copy of a value its name and its tags.
void copy_marks(const Variable& from, const Variable& to);
/// Gives a copy or a twin of an application the place where it was built, its origin, and the names
/// and tags of its outputs.
void copy_marks(const Apply& from, const Apply& to);
/// Gives a new value in the place of an old one the old one's tags, and its name unless it has one.
/// FunctionGraph does so with each replacement that is new in the graph.
void pass_marks(const Variable& old, const Variable& with);

/// All values that outputs need, themselves among them, each once: inputs of applications in the
/// order of applications_of, then outputs.
std::vector<Variable> values_of(std::span<const Variable> outputs,
                                std::span<const Variable> inputs = {});

/// Gives the copy of an application for copies of its inputs.
using TwinMaker = std::function<Apply(const Apply&, std::span<const Variable>)>;
/// The same op on other inputs of the same types.
Apply applied_again(const Apply& node, std::span<const Variable> inputs);
/// Copies a graph as clone_graph does, but each application by `twin`. Marks pass to the copies.
std::vector<Variable> map_graph(std::span<const Variable> outputs, std::span<const Variable> inputs,
                                std::span<const Variable> replacements, const TwinMaker& twin);

}  // namespace palimpsest
