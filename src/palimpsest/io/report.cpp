// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/io/report.hpp"

#include "palimpsest/io/prelude.hpp"
#include "palimpsest/tensor/checked_json.hpp"
#include "palimpsest/tensor/content_hash.hpp"

namespace palimpsest {

namespace {

/// Text for JSON; empty if it is not UTF-8.
std::string utf8_string(std::string_view text) {
  try {
    return io_detail::text_of_json(io_detail::Json(text));
  } catch (const FormatError&) {
    return {};
  }
}

/// Text for JSON. UTF-8 stays UTF-8; other bytes, as in file names of other encodings, are written
/// as \xNN.
std::string json_string(std::string_view text) {
  std::string json = utf8_string(text);
  if (!json.empty()) return json;
  std::string shown;
  for (std::size_t i = 0, length = 1; i < text.size(); i += length) {
    for (length = 1; length <= 4 && utf8_string(text.substr(i, length)).empty();) ++length;
    if (length <= 4) {
      shown += text.substr(i, length);
    } else {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i]));
      length = 1;
    }
  }
  return utf8_string(shown);
}

std::string json_number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

/// The lines after the first one shifted to the right; strings hold no line ends of their own.
std::string indented(std::string_view json) {
  std::string result;
  for (const char c : json) {
    result += c;
    if (c == '\n') result += "  ";
  }
  return result;
}

template <class T, class ToJson>
std::string json_array(const std::vector<T>& values, ToJson to_json) {
  std::string result = "[";
  for (const T& value : values) {
    if (result.size() > 1) result += ", ";
    result += to_json(value);
  }
  return result + "]";
}

}  // namespace

void write_text_atomically(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

std::string file_digest(const std::string& path) {
  constexpr index_t kPieceBytes = index_t{1} << 20;
  const io_detail::InputFile file(path);
  ContentHasher hasher;
  std::vector<char> piece(static_cast<std::size_t>(std::min(kPieceBytes, file.size())));
  for (index_t at = 0; at < file.size(); at += kPieceBytes) {
    const index_t n = std::min(kPieceBytes, file.size() - at);
    file.read_at(at, piece.data(), n);
    hasher.add(piece.data(), static_cast<std::size_t>(n));
  }
  return hasher.digits();
}

JsonReport& JsonReport::set_raw(std::string_view key, std::string json) {
  const auto known = std::find_if(members_.begin(), members_.end(),
                                  [&](const auto& member) { return member.first == key; });
  if (known != members_.end()) {
    known->second = std::move(json);
  } else {
    members_.emplace_back(key, std::move(json));
  }
  return *this;
}

JsonReport& JsonReport::set(std::string_view key, bool value) {
  return set_raw(key, value ? "true" : "false");
}

JsonReport& JsonReport::set(std::string_view key, double value) {
  return set_raw(key, json_number(value));
}

JsonReport& JsonReport::set(std::string_view key, std::string_view value) {
  return set_raw(key, json_string(value));
}

JsonReport& JsonReport::set(std::string_view key, const JsonReport& value) {
  return set_raw(key, value.body());
}

JsonReport& JsonReport::set(std::string_view key, const std::vector<double>& values) {
  return set_raw(key, json_array(values, json_number));
}

JsonReport& JsonReport::set(std::string_view key, const std::vector<std::string>& values) {
  return set_raw(key, json_array(values, json_string));
}

JsonReport& JsonReport::set(std::string_view key, const std::vector<JsonReport>& values) {
  return set_raw(key, json_array(values, [](const JsonReport& value) { return value.body(); }));
}

std::string JsonReport::body() const {
  if (members_.empty()) return "{}";
  std::string result = "{";
  for (const auto& [key, json] : members_) {
    if (result.size() > 1) result += ",";
    result += "\n  " + json_string(key) + ": " + indented(json);
  }
  return result + "\n}";
}

std::string JsonReport::line() const {
  std::string result = "{";
  for (const auto& [key, value] : members_) {
    if (result.size() > 1) result += ", ";
    result += json_string(key) + ": " + value;
  }
  return result + "}\n";
}

std::string JsonReport::text() const { return body() + "\n"; }

}  // namespace palimpsest
