// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "palimpsest/base/api.hpp"
#include "palimpsest/graph/op.hpp"

namespace PALIMPSEST_API palimpsest {

/// Makes the op of that name whose parameters() is that text.
using OpFactory = std::function<OpPtr(std::string_view name, std::string_view parameters)>;

/// Ops that are to be restored from files need a factory under their name().
/// Errors   ValueError: the name is taken
void register_op(std::string name, OpFactory factory);

/// The op whose str() was `name{parameters}`. The made op is compared with that text, so that the
/// restored op is the saved one.
/// Errors   IoError: no op of that name is registered; FormatError: no such parameters
OpPtr restore_op(std::string_view name, std::string_view parameters);

}  // namespace palimpsest
