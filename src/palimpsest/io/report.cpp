// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/io/report.hpp"

#include "palimpsest/io/prelude.hpp"
#include "palimpsest/tensor/content_hash.hpp"

namespace palimpsest {

namespace {

/// The length of the UTF-8 character that the text begins with; 0 if it begins with none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned first = byte(0), second = byte(1);
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    // Neither longer than needed nor a surrogate.
    const bool is_allowed = first == 0xE0 ? second >= 0xA0 : first != 0xED || second < 0xA0;
    return is_allowed && continues(1) && continues(2) ? 3 : 0;
  }
  if (first < 0xF0 || first > 0xF4) return 0;
  const bool is_allowed = first == 0xF0 ? second >= 0x90 : first != 0xF4 || second < 0x90;
  return is_allowed && continues(1) && continues(2) && continues(3) ? 4 : 0;
}

/// Text for JSON. UTF-8 stays UTF-8; other bytes, as in file names of other encodings, are written
/// as \xNN.
std::string json_string(std::string_view text) {
  std::string result = "\"";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const std::size_t length = utf8_length(text.substr(i));
    if (length == 0) {
      result += fmt::format("\\\\x{:02x}", static_cast<unsigned char>(c));
      continue;
    }
    if (length > 1) {
      result += text.substr(i, length);
      i += length - 1;
      continue;
    }
    switch (c) {
      case '"':
        result += "\\\"";
        break;
      case '\\':
        result += "\\\\";
        break;
      case '\n':
        result += "\\n";
        break;
      case '\t':
        result += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
          result += c;
        }
    }
  }
  return result + "\"";
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
