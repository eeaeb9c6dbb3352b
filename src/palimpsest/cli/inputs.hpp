// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "palimpsest/cli/failure.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest::cli {

/// Runs a reader; whatever it finds wrong with the file becomes a UsageError that names the file.
template <class Reader>
auto read_input(const std::string& path, Reader&& reader) {
  try {
    return std::forward<Reader>(reader)();
  } catch (const UsageError&) {
    throw;
  } catch (const OutOfMemory&) {
    throw;
  } catch (const Error& error) {
    const std::string text = error.what();
    throw UsageError(text.find(path) == std::string::npos ? "[" + path + "] " + text : text);
  }
}

/// UsageError naming the first element that is NaN or infinite, if there is one.
///
/// DTypes   float32, complex64; dense
void check_finite(const std::string& path, const Tensor& data, const std::string& what);

}  // namespace palimpsest::cli
