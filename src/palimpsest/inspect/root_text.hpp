// SPDX-License-Identifier: Apache-2.0
// Internal: text of variables that no op computes.
#pragma once

#include <string>

#include "palimpsest/graph/variable.hpp"

namespace palimpsest {

/// The name; the value of a nameless constant of one element; else the type in angle brackets.
std::string root_text(const Variable& v);

}  // namespace palimpsest
