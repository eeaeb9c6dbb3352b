// SPDX-License-Identifier: Apache-2.0
// Internal: graphs in the content of an archive.
//
// A graph is its variables, numbered, and its nodes in order: {"variables": [..], "nodes":
// [{"op", "parameters", "inputs", "outputs"}], "inputs", "outputs", "protected", "last"}. A
// variable is an input, a constant (with a tensor) or an output of a node. Instead of parameters, a
// loop has {"loop": {"reads", "states", "n_captured", "steps", "n_step_arrays", "has_count",
// "keeps_room", "until", "body"}}. The body is a graph.
#pragma once

#include "palimpsest/graph/function_graph.hpp"
#include "palimpsest/tensor/archive.hpp"
#include "palimpsest/tensor/checked_json.hpp"

namespace palimpsest {

/// Errors  NotSupported: an op that could not be restored
io_detail::Json written(const FunctionGraph& graph, ArchiveWriter& archive);
io_detail::Json written(const TensorType& type);

/// Errors  FormatError: no graph; IoError: an op that is not registered
FunctionGraph graph_of(const io_detail::CheckedJson& json, const Archive& archive);
TensorType type_of(const io_detail::CheckedJson& json);

}  // namespace palimpsest
