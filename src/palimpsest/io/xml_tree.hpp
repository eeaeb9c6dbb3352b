// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace palimpsest::io_detail {

/// An element of an XML document: its name without namespace, its text, its children in order.
/// Attributes are checked for form and dropped.
struct XmlNode {
  std::string name;
  std::string text;
  std::vector<XmlNode> children;

  /// The first descendant along a path of names, `encodedSpace/matrixSize/x`; nullptr if none.
  const XmlNode* find(std::string_view path) const;
};

/// The root element. Documents with a DOCTYPE, which could define entities, are refused.
///
/// Errors   FormatError naming the byte: not well formed, nested deeper than 64
XmlNode parse_xml(const std::string& path, std::string_view document);

/// Text with `<`, `>`, `&` and quotes written as entities.
std::string xml_escaped(std::string_view text);

}  // namespace palimpsest::io_detail
