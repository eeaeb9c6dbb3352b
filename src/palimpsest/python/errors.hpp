// SPDX-License-Identifier: Apache-2.0
// Internal: messages of errors.
#pragma once

#include <string>

#include "palimpsest/python/convert.hpp"

namespace palimpsest::python {

/// Adds to `__notes__`, which Python shows from 3.11 on.
void add_note(nb::python_error& error, nb::handle note);

/// A message with its advice, "Try ..", in the syntax of Python.
std::string in_python(const std::string& message);

}  // namespace palimpsest::python
