// SPDX-License-Identifier: Apache-2.0
// Internal: a virtual array, the output of a stencil, computed when it is read.
#pragma once

#include "palimpsest/kernels/arrays/stencil_line.hpp"
#include "palimpsest/kernels/arrays/strided_loop.hpp"

namespace palimpsest {

/// Input of a program: the output of a stencil of step 1, or of its adjoint, on an array.
struct FilteredInput {
  int input = 0;
  Stencil stencil = {};
  bool is_adjoint = false;
  friend bool operator==(const FilteredInput&, const FilteredInput&) = default;
};

/// The result of a stencil of step 1, or of its adjoint, as a virtual array: dense, row-major,
/// computed when read. Owns no memory.
class FilteredRows {
 public:
  /// The stencil must outlive it.
  FilteredRows(const Stencil& stencil, bool is_adjoint, const ConstView& x);
  /// Writes n elements first, first + 1, ... (row-major numbers) densely to `to`.
  ///
  /// Math     bit for bit run_stencil, or run_stencil_adjoint, of x dense in row-major order
  void read(index_t first, index_t n, std::byte* to) const;

 private:
  template <class T>
  void read_as(index_t first, index_t n, T* to) const;
  template <class T>
  void along(const std::byte* x, index_t first, index_t n, T* to) const;
  template <class T>
  void across(const std::byte* x, index_t here, index_t n, T* to) const;
  template <class Body>
  void for_ends(Body&& body) const;
  template <class Body>
  void for_terms(index_t k, Body&& body) const;
  // The element that tap m of result k reads, if it lies within the ends.
  index_t element_of(index_t k, std::size_t m) const {
    const index_t shift = line_.offset() + static_cast<index_t>(m);
    return is_adjoint_ ? k - shift : k + shift;
  }

  StencilLine line_;
  bool is_adjoint_;
  DType dtype_;
  StridedLoop<1> loop_;
  int axis_ = 0;  // of the stencil in the loop
  // Range of results in a line that have exactly one term per tap.
  index_t plain_begin_ = 0, plain_end_ = 0;
};

}  // namespace palimpsest
