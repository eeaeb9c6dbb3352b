// SPDX-License-Identifier: Apache-2.0
// Internal: messages of errors.
#pragma once

#include <string>

namespace palimpsest::python {

/// A message whose advice, "Try ..", is written as a user of Python would write it.
std::string in_python(const std::string& message);

}  // namespace palimpsest::python
