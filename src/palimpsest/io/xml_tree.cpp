// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/io/xml_tree.hpp"

#include <fmt/format.h>

#include <charconv>

#include "palimpsest/base/failure.hpp"

namespace palimpsest::io_detail {

namespace {

constexpr std::size_t kDeepest = 64;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.' || c == ':' || (static_cast<unsigned char>(c) & 0x80) != 0;
}

void append_utf8(std::string& text, unsigned code) {
  const auto put = [&](unsigned byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

class XmlParser {
 public:
  XmlParser(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  XmlNode document() {
    if (accept("\xef\xbb\xbf")) {
      // A byte order mark says nothing: the text is UTF-8 anyway.
    }
    skip_between();
    if (!accept("<")) fail("no element");
    XmlNode root = element(0);
    skip_between();
    if (at_ != text_.size()) fail("text after the last element");
    return root;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    fail_format(path_, fmt::format("has a malformed XML header at its byte {}: {}.", at_, what));
  }

  bool at_end() const { return at_ >= text_.size(); }

  bool accept(std::string_view wanted) {
    if (text_.substr(at_, wanted.size()) != wanted) return false;
    at_ += wanted.size();
    return true;
  }

  void skip_blanks() {
    while (!at_end() && is_blank(text_[at_])) ++at_;
  }

  /// Moves behind the next `closing`; what lies before it.
  std::string_view until(std::string_view closing, std::string_view what) {
    const auto end = text_.find(closing, at_);
    if (end == std::string_view::npos) fail(fmt::format("{} without an end", what));
    const auto result = text_.substr(at_, end - at_);
    at_ = end + closing.size();
    return result;
  }

  /// Blanks, comments and processing instructions around the root element.
  void skip_between() {
    while (true) {
      skip_blanks();
      if (accept("<!--")) {
        until("-->", "a comment");
      } else if (accept("<?")) {
        until("?>", "a processing instruction");
      } else if (text_.substr(at_, 2) == "<!") {
        fail("a DOCTYPE, which is not read");
      } else {
        return;
      }
    }
  }

  std::string_view name() {
    const std::size_t from = at_;
    while (!at_end() && is_name_byte(text_[at_])) ++at_;
    if (at_ == from) fail("no name where one is expected");
    return text_.substr(from, at_ - from);
  }

  /// From behind its `<` to behind its end.
  XmlNode element(std::size_t depth) {
    if (depth >= kDeepest) fail("elements are nested too deep");
    const std::string_view full_name = name();
    XmlNode node;
    node.name = full_name.substr(full_name.find(':') + 1);
    if (!attributes()) return node;
    while (true) {
      const auto next = text_.find('<', at_);
      if (next == std::string_view::npos) fail(fmt::format("<{}> without an end", node.name));
      append_text(node.text, text_.substr(at_, next - at_));
      at_ = next + 1;
      if (accept("/")) {
        if (name() != full_name) fail(fmt::format("another end than that of <{}>", node.name));
        skip_blanks();
        if (!accept(">")) fail("an end tag without '>'");
        return node;
      }
      if (accept("!--")) {
        until("-->", "a comment");
      } else if (accept("![CDATA[")) {
        node.text += until("]]>", "a CDATA section");
      } else if (accept("?")) {
        until("?>", "a processing instruction");
      } else {
        node.children.push_back(element(depth + 1));
      }
    }
  }

  /// To behind the `>` of a start tag; false: the element ends with it.
  bool attributes() {
    while (true) {
      skip_blanks();
      if (accept(">")) return true;
      if (accept("/>")) return false;
      name();
      skip_blanks();
      if (!accept("=")) fail("an attribute without a value");
      skip_blanks();
      if (accept("\"")) {
        until("\"", "an attribute");
      } else if (accept("'")) {
        until("'", "an attribute");
      } else {
        fail("an attribute without quotes");
      }
    }
  }

  void append_text(std::string& text, std::string_view raw) const {
    while (true) {
      const auto entity = raw.find('&');
      text += raw.substr(0, entity);
      if (entity == std::string_view::npos) return;
      const auto end = raw.find(';', entity);
      if (end == std::string_view::npos) fail("an entity without ';'");
      append_entity(text, raw.substr(entity + 1, end - entity - 1));
      raw = raw.substr(end + 1);
    }
  }

  void append_entity(std::string& text, std::string_view entity) const {
    if (entity == "lt") {
      text += '<';
    } else if (entity == "gt") {
      text += '>';
    } else if (entity == "amp") {
      text += '&';
    } else if (entity == "quot") {
      text += '"';
    } else if (entity == "apos") {
      text += '\'';
    } else if (entity.starts_with("#")) {
      const bool hex = entity.starts_with("#x");
      const auto digits = entity.substr(hex ? 2 : 1);
      const char* const last = digits.data() + digits.size();
      unsigned code = 0;
      const auto [end, problem] = std::from_chars(digits.data(), last, code, hex ? 16 : 10);
      if (problem != std::errc() || end != last || code > 0x10ffff)
        fail("a wrong character number");
      append_utf8(text, code);
    } else {
      fail("an unknown entity " + quoted(entity));
    }
  }

  const std::string& path_;
  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

const XmlNode* XmlNode::find(std::string_view path) const {
  const auto slash = path.find('/');
  const auto first = path.substr(0, slash);
  for (const XmlNode& child : children) {
    if (child.name != first) continue;
    return slash == std::string_view::npos ? &child : child.find(path.substr(slash + 1));
  }
  return nullptr;
}

XmlNode parse_xml(const std::string& path, std::string_view document) {
  return XmlParser(path, document).document();
}

std::string xml_escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '&':
        result += "&amp;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

}  // namespace palimpsest::io_detail
