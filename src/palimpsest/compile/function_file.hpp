// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/graph/function_graph.hpp"
#include "palimpsest/tensor/archive.hpp"

namespace PALIMPSEST_API palimpsest {

/// Writes functions to a file: their optimized graphs, the descriptions of their inputs and
/// outputs, and the present values of their shared variables, each container and each storage once.
/// Frames, results, profiles and plans are not written: calls do not change the size, and plans
/// come out the same again.
///
/// Errors  NotSupported: an op without a registered factory (register_op), before a byte is
///         written; StateError: a container that this thread holds; IoError: as AtomicFile
void save_functions(const std::string& path, std::span<const Function> functions);

/// Reads functions. Functions that had a container in common share one again, and none with the
/// saved functions. Nothing is rewritten again, and the config of the reader does not matter.
/// Constants and containers share the pages of the file until they are written.
///
/// Errors  IoError: no such file, or an op that is not registered; FormatError: the content does
///         not describe functions
std::vector<Function> load_functions(const std::string& path, const ArchiveOptions& options = {});

std::vector<std::byte> functions_to_bytes(std::span<const Function> functions);
std::vector<Function> functions_from_bytes(std::span<const std::byte> bytes);
/// The same without the values of shared variables. Appends their containers to `left_out`.
std::vector<std::byte> functions_to_bytes(std::span<const Function> functions,
                                          std::vector<std::shared_ptr<Container>>& left_out);
/// `given`: for the containers that functions_to_bytes() left out, in their order.
std::vector<Function> functions_from_bytes(std::span<const std::byte> bytes,
                                           std::span<const std::shared_ptr<Container>> given);

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
/// Reads variables, in their order and with their names. Variables of one container share one
/// again.
///
///     for (const SharedVariable& saved : load_shared("state.pal"))
///       f.container(saved.name()).set_value(saved.get_value());
///
/// Errors  IoError; FormatError: the content does not describe shared variables
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
