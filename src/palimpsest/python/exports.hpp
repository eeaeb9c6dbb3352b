// SPDX-License-Identifier: Apache-2.0
// Internal: memory that was handed to others.
#pragma once

#include "palimpsest/memory/lent_memory.hpp"
#include "palimpsest/python/convert.hpp"

namespace palimpsest::python {

/// Rights of the arrays that show exported memory.
enum class Access : std::uint8_t {
  read,
  /// The memory stays in place, and lazy clones of it are copies.
  write,
  /// Lent for a time: by a function until its next call, to a step while it runs. Memory that comes
  /// back is taken for that of others.
  read_lent,
  write_lent,
};

/// The memory of a tensor while arrays of others show it, which keep it alive.
class ExportedMemory {
 public:
  ExportedMemory(Tensor tensor, Access access);
  ~ExportedMemory();
  ExportedMemory(const ExportedMemory&) = delete;
  ExportedMemory& operator=(const ExportedMemory&) = delete;

  const Tensor& tensor() const { return tensor_; }
  /// The description for NumPy, as a capsule that refers to `self`.
  nb::object array_struct(nb::handle self) const;
  /// Keeps the arrays of a failing step readable.
  void outlive_step();

 private:
  Tensor tensor_;
  std::optional<Storage::Pin> pin_;
  Access access_;
  std::optional<LentMemory> outliving_;
};

nb::object exported(Tensor tensor, Access access);
/// An array of NumPy over exported memory, which it refers to, as do all its views and copies of it
/// that show the memory.
nb::object numpy_array(nb::handle exported);

/// The storage that this address was exported from, while it is. Undefined: none.
Storage exported_storage(const void* data);

}  // namespace palimpsest::python
