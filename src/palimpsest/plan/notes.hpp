// SPDX-License-Identifier: Apache-2.0
// Internal: notes of run-time errors about the step that they came from.
#pragma once

#include <span>
#include <string>

#include "palimpsest/base/view.hpp"
#include "palimpsest/plan/plan.hpp"

namespace palimpsest {

/// The node, its number, and the types, shapes, strides and first elements of its inputs, as notes
/// of an error, a line each; more with config().exception_verbosity.
std::string describe_step(const Plan& plan, std::size_t step, std::span<const ConstView> inputs);
/// `step 12 (Fft) of A/Chain[1]`.
std::string name_of_step(const Plan& plan, std::size_t step);
/// The node and the shapes of its inputs, before anything ran.
std::string describe_node(const Apply& node, std::span<const Extents> inputs);

}  // namespace palimpsest
