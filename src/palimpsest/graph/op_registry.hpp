// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/op.hpp"

namespace PALIMPSEST_API palimpsest {

/// Makes the op of this name from the text of its parameters().
using OpFactory = std::function<OpPtr(std::string_view name, std::string_view parameters)>;

/// Ops that are to be restored from files need a factory under their name().
/// Errors   ValueError: the name is taken
void register_op(std::string name, OpFactory factory);

/// Restores an op from the text `name{parameters}` of its str(). The text of the made op is
/// compared with the given text, so that it is the saved op.
/// Errors   IoError: no op of that name is registered; FormatError: parameters that it does not
///          have
OpPtr restore_op(std::string_view name, std::string_view parameters);

}  // namespace palimpsest
