// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <string>
#include <string_view>

#include "palimpsest/base/error.hpp"

namespace palimpsest::io_detail {

/// Throws an IoError from an errno: the file, the attempted action, the system's reason, the
/// remedy.
[[noreturn]] void fail_io(std::string_view path, std::string_view tried, int error_number);

/// FormatError: `[path] what`.
[[noreturn]] void fail_format(std::string_view path, std::string_view what);

/// Text out of a file, fit for a message: quoted, unprintable bytes as \xNN, cut when long.
std::string quoted(std::string_view text);

}  // namespace palimpsest::io_detail
