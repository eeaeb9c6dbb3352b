// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/base/dtype.hpp"

namespace PALIMPSEST_API palimpsest {

/// Writes a text file whole or not at all. IoError as AtomicFile.
void write_text_atomically(const std::string& path, std::string_view text);

/// XXH3-128 of a file's bytes, 32 hexadecimal digits; read a piece at a time. IoError: it cannot be
/// read.
std::string file_digest(const std::string& path);

/// A JSON object that keeps the order in which its members were set.
///
/// Numbers are written so that they read back to the same double; NaN and infinities, which JSON
/// lacks, as null. Bytes of a text that are not UTF-8 become \xNN. Setting a key again replaces its
/// value.
class JsonReport {
 public:
  JsonReport& set(std::string_view key, bool value);
  JsonReport& set(std::string_view key, double value);
  JsonReport& set(std::string_view key, std::string_view value);
  JsonReport& set(std::string_view key, const char* value) {
    return set(key, std::string_view(value));
  }
  JsonReport& set(std::string_view key, const JsonReport& value);
  JsonReport& set(std::string_view key, const std::vector<double>& values);
  JsonReport& set(std::string_view key, const std::vector<std::string>& values);
  JsonReport& set(std::string_view key, const std::vector<JsonReport>& values);
  template <std::integral T>
  requires(!std::same_as<T, bool>) JsonReport& set(std::string_view key, T value) {
    return set_raw(key, std::to_string(value));
  }

  /// `{"key": value, ...}` over several lines, indented by two blanks, with a line end.
  std::string text() const;
  /// The same on one line, of members that are no objects.
  std::string line() const;
  /// text() into a file, whole or not at all. IoError as AtomicFile.
  void write(const std::string& path) const { write_text_atomically(path, text()); }

 private:
  JsonReport& set_raw(std::string_view key, std::string json);
  std::string body() const;

  std::vector<std::pair<std::string, std::string>> members_;  // key -> JSON text
};

}  // namespace palimpsest
