// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/variable.hpp"

namespace PALIMPSEST_API palimpsest {

/// An input of a graph; std::nullopt is an unknown extent.
///
///     Variable image = tensor(DType::complex64, {std::nullopt, 256, 256}, "image");
Variable tensor(DType dtype, const std::vector<std::optional<index_t>>& shape,
                std::string name = {});

// Inputs by their number of axes, of unknown extents, but for the 1 of `row` (1, ?) and `col`
// (?, 1), along which these broadcast. Without a dtype: config().default_float. With a letter in
// front: b w i l for int8 16 32 64, f d for float32 64, c z for complex64 128. With an s behind:
// one per name.
//
//     Variable a = matrix("a"), k = lscalar("k");
//     auto [x, y] = dvectors("x", "y");

namespace detail {
/// A letter of the list above, or 0 for the default; -1 and -2 axes are a row and a column.
Variable input_of_kind(char letter, int n_axes, std::optional<DType> dtype, std::string name);
}  // namespace detail

#define PALIMPSEST_INPUT(letter, prefix, kind, n_axes)                     \
  inline Variable prefix##kind(std::string name = {}) {                    \
    return detail::input_of_kind(letter, n_axes, {}, std::move(name));     \
  }                                                                        \
  template <class... Names>                                                \
  std::array<Variable, sizeof...(Names)> prefix##kind##s(Names... names) { \
    return {prefix##kind(std::string(names))...};                          \
  }
#define PALIMPSEST_INPUTS(kind, n_axes)                                          \
  inline Variable kind(std::string name = {}, std::optional<DType> dtype = {}) { \
    return detail::input_of_kind(0, n_axes, dtype, std::move(name));             \
  }                                                                              \
  template <class... Names>                                                      \
  std::array<Variable, sizeof...(Names)> kind##s(Names... names) {               \
    return {kind(std::string(names))...};                                        \
  }                                                                              \
  PALIMPSEST_INPUT('b', b, kind, n_axes)                                         \
  PALIMPSEST_INPUT('w', w, kind, n_axes)                                         \
  PALIMPSEST_INPUT('i', i, kind, n_axes)                                         \
  PALIMPSEST_INPUT('l', l, kind, n_axes)                                         \
  PALIMPSEST_INPUT('f', f, kind, n_axes)                                         \
  PALIMPSEST_INPUT('d', d, kind, n_axes)                                         \
  PALIMPSEST_INPUT('c', c, kind, n_axes)                                         \
  PALIMPSEST_INPUT('z', z, kind, n_axes)
PALIMPSEST_INPUTS(scalar, 0)
PALIMPSEST_INPUTS(vector, 1)
PALIMPSEST_INPUTS(matrix, 2)
PALIMPSEST_INPUTS(tensor3, 3)
PALIMPSEST_INPUTS(tensor4, 4)
PALIMPSEST_INPUTS(tensor5, 5)
PALIMPSEST_INPUTS(row, -1)
PALIMPSEST_INPUTS(col, -2)
#undef PALIMPSEST_INPUTS
#undef PALIMPSEST_INPUT

}  // namespace palimpsest
