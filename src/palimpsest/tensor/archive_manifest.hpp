// SPDX-License-Identifier: Apache-2.0
// Internal: the head of an archive, as text and checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "palimpsest/base/shape.hpp"

namespace palimpsest {

struct ArchivedStorage {
  std::uint64_t offset = 0;  // in the file
  std::uint64_t bytes = 0;
  std::uint64_t hash = 0;
};

struct ArchivedTensor {
  std::size_t storage = 0;
  DType dtype = DType::float64;
  Extents shape;
  Strides strides;
  index_t offset = 0;  // in elements
};

struct ArchiveManifest {
  std::string kind, content;
  std::vector<ArchivedStorage> storages;
  std::vector<ArchivedTensor> tensors;
};

inline constexpr std::size_t kArchivePage = 4096;

/// Header and manifest. Gives each storage its offset in the file, in their order; `file_bytes`
/// becomes the total.
std::string archive_head(ArchiveManifest& manifest, std::uint64_t* file_bytes);

/// Reads a manifest back from a whole file. FormatError.
ArchiveManifest read_archive_head(std::span<const std::byte> file, std::string_view name);

}  // namespace palimpsest
