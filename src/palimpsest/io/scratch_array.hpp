// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "palimpsest/base/api.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

/// Array that is written piece by piece: in memory, or in a file without a name if it is larger
/// than memory. Unwritten elements are zero. The file vanishes with its last user, even after a
/// crash.
///
/// Errors   IoError: no such folder, no right to write there, a full disk
/// Cost     in a file: no memory; disk space for the written elements
class ScratchArray {
 public:
  ScratchArray(const std::string& folder, Extents shape, DType dtype);
  /// The same interface to an ordinary tensor.
  static ScratchArray in_memory(Extents shape, DType dtype);
  /// A file in no folder that stays zero: stands for one that is not written yet, in a plan.
  static ScratchArray unwritten(Extents shape, DType dtype);
  ScratchArray(ScratchArray&& other) noexcept;
  ScratchArray& operator=(ScratchArray&&) = delete;
  ~ScratchArray();

  const Extents& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  /// `count` elements from the row-major position `first` on. InternalError: there are fewer.
  void write(index_t first, const void* elements, index_t count);
  void read(index_t first, void* elements, index_t count) const;
  /// The array, on the mapped file or in memory; later writes may or may not show.
  Tensor map() const;

 private:
  ScratchArray(Extents shape, DType dtype) : shape_(std::move(shape)), dtype_(dtype) {}

  Tensor memory_;  // undefined: in a file
  std::string folder_;
  Extents shape_;
  DType dtype_;
  int descriptor_ = -1;
};

}  // namespace palimpsest
