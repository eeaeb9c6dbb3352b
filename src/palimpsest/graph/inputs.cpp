// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/graph/inputs.hpp"

#include "palimpsest/base/config.hpp"

namespace palimpsest {
namespace {

DType dtype_of_letter(char letter) {
  switch (letter) {
    case 'b':
      return DType::int8;
    case 'w':
      return DType::int16;
    case 'i':
      return DType::int32;
    case 'l':
      return DType::int64;
    case 'f':
      return DType::float32;
    case 'd':
      return DType::float64;
    case 'c':
      return DType::complex64;
    case 'z':
      return DType::complex128;
    default:
      return config().default_float;
  }
}

}  // namespace

Variable tensor(DType dtype, const std::vector<std::optional<index_t>>& shape, std::string name) {
  Extents extents;
  for (const std::optional<index_t>& extent : shape) {
    if (extent && *extent < 0) {
      throw ShapeError("[tensor] extent: got " + std::to_string(*extent) +
                       ", expected none negative. Try std::nullopt for an unknown one");
    }
    extents.push_back(extent.value_or(kUnknown));
  }
  if (extents.size() > kMaxRank) {
    throw ShapeError("[tensor] number of axes: got " + std::to_string(extents.size()) +
                     ", expected at most " + std::to_string(kMaxRank));
  }
  return make_input({dtype, std::move(extents), {}}, std::move(name));
}

Variable detail::input_of_kind(char letter, int n_axes, std::optional<DType> dtype,
                               std::string name) {
  Extents shape(static_cast<std::size_t>(n_axes < 0 ? 2 : n_axes), kUnknown);
  if (n_axes < 0) shape[n_axes == -1 ? 0 : 1] = 1;
  return make_input({dtype.value_or(dtype_of_letter(letter)), std::move(shape), {}},
                    std::move(name));
}

}  // namespace palimpsest
