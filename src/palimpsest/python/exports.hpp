// SPDX-License-Identifier: Apache-2.0
// Internal: memory that was handed to others.
#pragma once

#include "palimpsest/python/convert.hpp"

namespace palimpsest::python {

/// The memory of a tensor while arrays of others show it: it stays where it is. Arrays keep it
/// alive.
class ExportedMemory {
 public:
  /// Pins what is not pinned: a write.
  ExportedMemory(Tensor tensor, bool writable);
  ~ExportedMemory();
  ExportedMemory(const ExportedMemory&) = delete;
  ExportedMemory& operator=(const ExportedMemory&) = delete;

  const Tensor& tensor() const { return tensor_; }
  /// The description for NumPy, as a capsule that refers to `self`.
  nb::object array_struct(nb::handle self) const;

 private:
  Tensor tensor_;
  std::optional<Storage::Pin> pin_;
  bool writable_;
};

/// The storage that this address was exported from, while it is. Undefined: none.
Storage exported_storage(const void* data);

}  // namespace palimpsest::python
