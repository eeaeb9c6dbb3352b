// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"
#include "palimpsest/tensor/archive.hpp"

namespace PALIMPSEST_API palimpsest {

/// Writes an operator with all its parts: the tree, the shared parts, each storage once and only
/// its used bytes. Caches, compiled functions and derived values are not written. A reader of the
/// path sees the old file or the new one.
///
/// Errors   FormatError "closure": a SimpleLinop, whose functions have no name; "unknown type": a
///          type that is not registered; "too deep" - all before a byte is written; IoError
void save(const NamedLinop& A, const std::string& path);
/// The bytes that save() writes for the operator.
std::vector<std::byte> to_bytes(const NamedLinop& A);

/// The same without the values of variables that the operator uses whole. Appends their containers
/// to `left_out`.
std::vector<std::byte> to_bytes(const NamedLinop& A,
                                std::vector<std::shared_ptr<Container>>& left_out);

/// The operator of a file: new nodes and variables with the same sharing. Mapped, which is the
/// default, its storages are pages of the file until they are written, so that it takes no memory
/// and several processes share one copy; the file itself is never changed. Types of users must be
/// registered.
///
/// Errors   FormatError: a fault of the file, and "unknown type", "newer"; IoError
NamedLinop load(const std::string& path, const ArchiveOptions& options = {});
NamedLinop from_bytes(std::span<const std::byte> bytes, const ArchiveOptions& options = {});
/// `given`: for the variables that to_bytes() left out, in their order.
NamedLinop from_bytes(std::span<const std::byte> bytes,
                      std::span<const std::shared_ptr<Container>> given);

}  // namespace palimpsest
