// SPDX-License-Identifier: Apache-2.0
// Internal: texts that all kinds of devices have in common.
#pragma once

#include <string>
#include <string_view>

#include "palimpsest/device/backend.hpp"

namespace palimpsest {

/// Line that gives the text behind it line 1 of the file with its name.
std::string first_line(const KernelText& text);
/// The first line of a compiler's log that reports an error; `otherwise` if none does.
std::string first_complaint(std::string_view log, std::string_view otherwise);

std::string does_not_compile(std::string_view text, std::string_view device,
                             std::string_view complaint);
std::string foreign_binary(std::string_view text, std::string_view device,
                           std::string_view complaint);
std::string forked_text(std::string_view device);

}  // namespace palimpsest
