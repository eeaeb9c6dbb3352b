// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/graph/function_graph.hpp"
#include "palimpsest/tensor/archive.hpp"

namespace PALIMPSEST_API palimpsest {

/// Writes functions to a file: their optimized graphs, what their inputs and outputs are, and the
/// present values of the shared variables that they use, each container and each storage once. Not
/// written: frames and results, so the size does not change by calling; plans, which come out the
/// same again; profiles.
///
/// Errors  NotSupported: an op that has no registered factory (register_op), before a byte is
///         written; StateError: a container that this thread holds; IoError: as AtomicFile
void save_functions(const std::string& path, std::span<const Function> functions);

/// The functions again. Those that had a container in common have one in common again, and none
/// with the functions that were saved. Nothing is rewritten again, and nothing depends on the
/// config of the one who loads. Constants and containers share the pages of the file until they are
/// written.
///
/// Errors  IoError: no such file, or an op that is not registered; FormatError: what the file says
///         is not what functions are
std::vector<Function> load_functions(const std::string& path, const ArchiveOptions& options = {});

std::vector<std::byte> functions_to_bytes(std::span<const Function> functions);
std::vector<Function> functions_from_bytes(std::span<const std::byte> bytes);

/// Copies with containers of their own, which share the data lazily with the originals: functions
/// on one container are on one container again.
std::vector<Function> deepcopy(std::span<const Function> functions);
Function deepcopy(const Function& function);

/// Writes shared variables, with their present values, to one file: each container and each storage
/// once.
///
/// Errors  ValueError: an undefined variable; StateError: a container that this thread holds;
///         IoError: as AtomicFile
void save_shared(const std::string& path, std::span<const SharedVariable> variables);
/// The variables again, in their order and with their names. Those of one container are on one
/// again.
///
///     for (const SharedVariable& saved : load_shared("state.pal"))
///       f.container(saved.name()).set_value(saved.get_value());
///
/// Errors  IoError; FormatError: what the file says is not what shared variables are
std::vector<SharedVariable> load_shared(const std::string& path,
                                        const ArchiveOptions& options = {});

/// Writes a graph: nodes, variables, tags, protected inputs, names of the rewrites that introduced
/// nodes. Features, marks and values of shared variables are not written; a shared variable becomes
/// a plain input.
///
/// Errors  NotSupported: an op that has no registered factory (register_op), before a byte is
///         written; IoError: as AtomicFile
void save_graph(const std::string& path, const FunctionGraph& graph);
/// The graph again, validated: destroyers and protection as before.
/// Errors  IoError: no such file, or an op that is not registered; FormatError: no graph
FunctionGraph load_graph(const std::string& path, const ArchiveOptions& options = {});

}  // namespace palimpsest
