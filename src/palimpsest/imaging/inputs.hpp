// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "palimpsest/base/api.hpp"
#include "palimpsest/base/error.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

/// Runs a reader. An error in the file becomes a ValueError that begins with the file's name
/// instead of the library's tag (`[scan] ..`). An error elsewhere, such as a full disk under
/// scratch files, stays an IoError.
template <class Reader>
auto read_input(const std::string& path, Reader&& reader) {
  try {
    return std::forward<Reader>(reader)();
  } catch (const OutOfMemory&) {
    throw;
  } catch (const Error& error) {
    const std::string text = error.what();
    const bool names_file = text.find(path) != std::string::npos;
    const bool is_io = dynamic_cast<const IoError*>(&error) != nullptr;
    if (is_io && !names_file && dynamic_cast<const FormatError*>(&error) == nullptr) throw;
    if (names_file) throw ValueError(text);
    const std::size_t tag = text.starts_with('[') ? text.find("] ") : std::string::npos;
    throw ValueError("[" + path + "] " + (tag == std::string::npos ? text : text.substr(tag + 2)));
  }
}

/// Names of an array's values in messages.
struct Values {
  /// `k-space`, `the coil maps`.
  std::string name;
  /// Advice for a wrong value, from `Try` on.
  std::string advice;
};
const Values& kspace_values();
const Values& coil_map_values();
const Values& image_values();

/// The error for an array with `count` NaN or infinite elements, the first of them at `index`.
ValueError not_finite(const std::string& path, const Values& what, index_t count,
                      const Extents& index);
/// ValueError naming the first element that is NaN or infinite, if there is one.
///
/// DTypes   float32, complex64; dense
void check_finite(const std::string& path, const Tensor& data, const Values& what);

}  // namespace palimpsest
