// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/tensor/archive.hpp"
#include "palimpsest/tensor/checked_json.hpp"

// The content of an archive of kind `operator`:
//
//     {"root", "nodes": [{"type", "version", "adjoint", "self_adjoint", "name", "ishape", "oshape",
//      "shapes": [[name, value]], "sizes": [[dim, n]], "params": [[name, {"variable", "view"}]],
//      "attributes": [[name, value]], "children": [number]}],
//      "variables": [{"tensor" or "given", "trainable", "name"}]}
//
// Children come before their parents. An absent parameter or attribute is null; so is the view of a
// parameter that is a whole variable. Attributes that are flags, whole numbers or lists are those
// of JSON; others are objects with one key that names their kind. A variable without a tensor is
// one of those that the reader is given; "given" is its number.
namespace palimpsest::manifest {

using io_detail::CheckedJson;
using io_detail::Json;

inline constexpr std::string_view kKind = "operator";

Json written(const Dims& dims);
Json written(const DimMap& sizes);
Json written(const ShapeValue& value);
Json written(const ElementLayout& layout);
/// Tensors go to the archive.
Json written(const Attribute& attribute, ArchiveWriter& archive);

// FormatErrors throughout.
Dims dims_of(const CheckedJson& json);
DimMap sizes_of(const CheckedJson& json);
ShapeValue shape_value_of(const CheckedJson& json);
ElementLayout layout_of(const CheckedJson& json);
Attribute attribute_of(const CheckedJson& json, const Archive& archive);

/// Counts the visits of a walk through the tree below each node; shared parts are visited once per
/// use. False for more visits than this class can count.
class TreeSize {
 public:
  bool add(std::span<const std::size_t> children);

 private:
  std::vector<std::int64_t> sizes_;
  std::int64_t total_ = 0;
};

}  // namespace palimpsest::manifest
