// SPDX-License-Identifier: Apache-2.0
// Internal: values of containers.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "palimpsest/python/arrays.hpp"

namespace palimpsest::python {

/// The value of a container as an array of a kind, or as a Tensor where `internal`.
nb::object value_in_kind(Container& container, Kind kind, bool borrow, bool internal);
/// The values of an array, or of numbers of Python in the dtype of a parameter.
Tensor values_for(const Parameter& p, nb::handle object);
/// Calls a function of Python with the tensor of a container that `modify` gives to its argument.
void change_in_place(const std::function<void(const std::function<void(Tensor&)>&)>& modify,
                     Container& container, nb::handle change);

/// True in a function of ps.linop that builds a graph.
bool is_building();
/// StateError there: it sees types, not values.
void check_not_building();

/// Objects of Python for containers, one for each: by these pickles and deep copies know what two
/// operators, functions or shared variables have in common.
nb::list objects_of(std::span<const std::shared_ptr<Container>> containers);
nb::object object_of(const std::shared_ptr<Container>& container);
std::shared_ptr<Container> container_in(nb::handle object);
std::vector<std::shared_ptr<Container>> containers_in(nb::handle list);

}  // namespace palimpsest::python
