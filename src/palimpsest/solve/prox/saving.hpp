// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/solve/prox/prox.hpp"
#include "palimpsest/tensor/archive.hpp"

namespace PALIMPSEST_API palimpsest {

/// Writes a proximal function with all its parts, in the format of operators: memory shared by its
/// parts and operators, each storage once. A reader of the path sees the old file or the new one.
///
/// Errors   FormatError "closure": a function of a user, or an operator that is one; "unknown
///          type": a type that is not registered - both before a byte is written; IoError
void save(const Prox& g, const std::string& path);
/// The same bytes as save() for the same function.
std::vector<std::byte> to_bytes(const Prox& g);

/// The function of a file, mapped as load() maps operators. Types of users must be registered.
///
/// Errors   FormatError: a fault of the file, and "not a proximal function", "unknown type",
///          "newer"; IoError
Prox load_prox(const std::string& path, const ArchiveOptions& options = {});
Prox prox_from_bytes(std::span<const std::byte> bytes, const ArchiveOptions& options = {});

}  // namespace palimpsest
