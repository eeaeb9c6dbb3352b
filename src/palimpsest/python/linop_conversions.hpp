// SPDX-License-Identifier: Apache-2.0
// Internal: attributes, tiles and renamings of operators.
#pragma once

#include <functional>

#include "palimpsest/linop/core/attribute.hpp"
#include "palimpsest/linop/core/linop_type.hpp"
#include "palimpsest/linop/testing/testing.hpp"
#include "palimpsest/named/named_shape.hpp"
#include "palimpsest/python/convert.hpp"

namespace palimpsest::python {

template <>
struct From<NamedShape> {
  static constexpr auto name = nb::detail::const_name("NamedShape");
  static NamedShape from(nb::handle object);
};
nb::object to_python(const NamedShape& shape);

/// The class of Python that an operator was made by; not valid for other operators.
nb::handle python_class_of(const NamedLinop& A);
/// Sets a parameter of an operator of such a class to an array, or an attribute to another value.
void set_value(NamedLinop& A, const std::string& key, nb::handle value);
/// Gives an instance of such a class its operator.
void begin_object(nb::handle self, const NamedLinop& A);
/// Changes the operator of an object.
void change_object(nb::handle self, const std::function<void(NamedLinop&)>& change);

nb::object attribute_object(const Attribute& attribute);
Attribute attribute_of(nb::handle object);
/// A NamedDimension or Dims, not a text that spells one.
bool is_dims(nb::handle object);
/// The modules of Python that define the types of an operator and of its parts.
/// Errors   FormatError "closure": a type that no module has by its name
nb::tuple modules_of(const NamedLinop& A);
/// The dense matrix. Without a dtype: real if A gives real results for real inputs.
Tensor matrix_of(const NamedLinop& A, TestOptions options);
Tile tile_of(nb::handle object);
nb::dict tile_object(const Tile& tile);
Renaming renaming_of(nb::handle object);
/// The items of a dict, or pairs. TypeError naming what is expected.
std::vector<std::pair<nb::object, nb::object>> pairs_in(nb::handle object, const char* expected);
/// A dict or pairs: the order counts.
std::vector<std::pair<ND, index_t>> ordered_sizes(nb::handle object);

}  // namespace palimpsest::python
