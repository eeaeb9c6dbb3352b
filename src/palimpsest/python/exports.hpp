// SPDX-License-Identifier: Apache-2.0
// Internal: memory that was handed to others.
#pragma once

#include "palimpsest/python/convert.hpp"

namespace palimpsest::python {

/// Rights of the arrays that show exported memory.
enum class Access : std::uint8_t {
  read,
  /// The memory stays where it is, and lazy clones of it are copies.
  write,
  /// Of a function that lends it until its next call.
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

 private:
  Tensor tensor_;
  std::optional<Storage::Pin> pin_;
  Access access_;
};

/// The storage that this address was exported from, while it is. Undefined: none.
Storage exported_storage(const void* data);

}  // namespace palimpsest::python
