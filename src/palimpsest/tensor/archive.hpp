// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

// An archive holds tensors with their sharing, and a description of their owner, in one file:
//
//     0..7     PALIMPS1
//     8..15    u32 version = 1, u32 flags = 0
//     16..47   u64 manifest offset (64), u64 manifest bytes, u64 file bytes, u64 XXH3-64 of the
//              manifest
//     48..63   zero
//     64..     manifest: JSON {"format", "version", "library", "kind", "storages", "tensors",
//              "content"}
//     then     storages, each at a multiple of 4096, zero filled between
//
// All little-endian. Nothing in an archive is executed.

/// Collects tensors and writes them, each storage once and only the bytes that its tensors use.
///
/// Aliases  tensors that share a storage share one again when they are loaded; lazy clones of one
///          another, which only share until a write, become storages of their own
/// Errors   ValueError: an undefined tensor; IoError: as AtomicFile, and then the old file is there
class ArchiveWriter {
 public:
  /// `kind` names the owner of the content, such as `function`.
  explicit ArchiveWriter(std::string kind) : kind_(std::move(kind)) {}
  /// The number under which the content refers to the tensor.
  std::size_t add(const Tensor& t);
  /// `content` is JSON. The same tensors and content give the same bytes.
  void save(const std::string& path, std::string_view content) const;
  std::vector<std::byte> to_bytes(std::string_view content) const;

 private:
  std::string kind_;
  std::vector<Tensor> tensors_;
};

struct ArchiveOptions {
  /// Storages share the pages of the file, which is mapped privately, until they are written: they
  /// take no memory of their own, and several processes share one copy. Only on `cpu`. Damage of
  /// the data themselves is then not looked for, unless with `verify`.
  bool map = true;
  /// Compare mapped storages with their hashes too, which reads them all. Those that are copied
  /// into memory, without `map` and out of bytes, are always compared.
  bool verify = false;
  Device device = {};
};

/// An archive that was read. Its tensors share memory as the saved ones did: all handles on one are
/// aliases, and writes through one show in those that tensor() gives later.
///
/// Errors   IoError: the file cannot be read; FormatError naming the fault and its place: the
///          content violates the format. Nothing is allocated for the data before all is checked
/// Cost     mapped: O(manifest), none of the data is touched but that of bool tensors
class Archive {
 public:
  static Archive load(const std::string& path, const ArchiveOptions& options = {});
  /// Copies the bytes that it needs. `name` stands in messages.
  static Archive from_bytes(std::span<const std::byte> bytes, const ArchiveOptions& options = {},
                            std::string_view name = "archive");

  const std::string& kind() const { return kind_; }
  /// JSON.
  const std::string& content() const { return content_; }
  std::size_t size() const { return tensors_.size(); }
  /// FormatError without a tensor of that number.
  const Tensor& tensor(std::size_t number) const;

 private:
  Archive() = default;
  static Archive open(std::span<const std::byte> bytes, const Storage* mapping,
                      const ArchiveOptions& options, std::string_view name);

  std::string name_, kind_, content_;
  std::vector<Tensor> tensors_;
};

}  // namespace palimpsest
