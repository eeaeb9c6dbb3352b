// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/io/ismrmrd_header.hpp"

#include <charconv>
#include <pugixml.hpp>
#include <sstream>

#include "palimpsest/io/prelude.hpp"

namespace palimpsest::io_detail {

namespace {

constexpr std::string_view kAxisNames[] = {"x", "y", "z"};
constexpr index_t kLargest = 65535;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// The name of an element without the prefix of its namespace.
std::string_view local_name(const pugi::xml_node& node) {
  const std::string_view name = node.name();
  const auto colon = name.find(':');
  return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

// The first descendant along a path of names, `encodedSpace/matrixSize/x`; empty if there is none.
pugi::xml_node find(const pugi::xml_node& node, std::string_view path) {
  const auto end = std::min(path.find('/'), path.size());
  for (const pugi::xml_node& child : node.children()) {
    if (local_name(child) != path.substr(0, end)) continue;
    if (end == path.size()) return child;
    if (const pugi::xml_node found = find(child, path.substr(end + 1))) return found;
  }
  return {};
}

std::string text_of(const pugi::xml_node& node) {
  std::string text;
  for (const pugi::xml_node& child : node.children()) text += child.value();
  return std::string(trimmed(text));
}

std::string xml_escaped(const std::string& text) {
  pugi::xml_document document;
  document.append_child(pugi::node_pcdata).set_value(text.c_str());
  std::ostringstream stream;
  document.save(stream, "", pugi::format_raw | pugi::format_no_declaration);
  return stream.str();
}

// The only element of the document. A DOCTYPE is refused: its entities are defined nowhere.
pugi::xml_node root_of(const std::string& path, const pugi::xml_document& document) {
  pugi::xml_node root;
  for (const pugi::xml_node& node : document.children()) {
    if (node.type() == pugi::node_doctype) fail_format(path, "has a DOCTYPE in its header.");
    if (node.type() != pugi::node_element) continue;
    if (root) {
      fail_format(path, fmt::format("has a second element <{}> in its header, expected one.",
                                    quoted(node.name())));
    }
    root = node;
  }
  return root;
}

/// Typed access to the elements, with errors that name them.
class HeaderReader {
 public:
  HeaderReader(const std::string& path, const pugi::xml_node& root) : path_(path), root_(root) {}

  std::string text(std::string_view element, std::string_view missing = {}) const {
    const pugi::xml_node node = find(root_, element);
    return node ? text_of(node) : std::string(missing);
  }

  template <class T>
  T number(std::string_view element, T low, T high, std::optional<T> missing = {}) const {
    const pugi::xml_node node = find(root_, element);
    if (!node && missing) return *missing;
    if (!node) fail_format(path_, fmt::format("has no <{}> in its header.", element));
    const std::string found = text_of(node);
    T value{};
    const char* const last = found.data() + found.size();
    const auto [end, problem] = std::from_chars(found.data(), last, value);
    if (problem != std::errc() || end != last || !(value >= low && value <= high)) {
      fail_format(path_, fmt::format("has a wrong <{}> in its header: got {}, expected {} to {}.",
                                     element, quoted(found), low, high));
    }
    return value;
  }

  EncodingSpace space(const std::string& element) const {
    EncodingSpace result;
    for (std::size_t i = 0; i < 3; ++i) {
      const auto name = kAxisNames[i];
      result.matrix[i] =
          number<index_t>(fmt::format("{}/matrixSize/{}", element, name), 1, kLargest);
      result.field_of_view_mm[i] = number<double>(
          fmt::format("{}/fieldOfView_mm/{}", element, name), 0.0, 1e9, std::optional(0.0));
    }
    return result;
  }

  std::optional<EncodingLimit> limit(int step) const {
    const auto element = fmt::format("encoding/encodingLimits/kspace_encoding_step_{}", step);
    if (!find(root_, element)) return {};
    const std::optional<index_t> zero = 0;
    return EncodingLimit{number<index_t>(element + "/minimum", 0, kLargest, zero),
                         number<index_t>(element + "/maximum", 0, kLargest, zero),
                         number<index_t>(element + "/center", 0, kLargest, zero)};
  }

 private:
  const std::string& path_;
  const pugi::xml_node root_;
};

std::string space_text(std::string_view name, const EncodingSpace& space) {
  const auto& n = space.matrix;
  const auto& fov = space.field_of_view_mm;
  return fmt::format(
      "    <{0}>\n"
      "      <matrixSize><x>{1}</x><y>{2}</y><z>{3}</z></matrixSize>\n"
      "      <fieldOfView_mm><x>{4}</x><y>{5}</y><z>{6}</z></fieldOfView_mm>\n"
      "    </{0}>\n",
      name, n[0], n[1], n[2], fov[0], fov[1], fov[2]);
}

std::string limit_text(int step, const std::optional<EncodingLimit>& limit) {
  if (!limit) return {};
  return fmt::format(
      "      <kspace_encoding_step_{0}><minimum>{1}</minimum><maximum>{2}</maximum>"
      "<center>{3}</center></kspace_encoding_step_{0}>\n",
      step, limit->minimum, limit->maximum, limit->center);
}

}  // namespace

RawScanHeader parse_ismrmrd_header(const std::string& path, const std::string& xml) {
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(
      xml.data(), xml.size(), pugi::parse_default | pugi::parse_doctype, pugi::encoding_utf8);
  if (!parsed) {
    fail_format(path, fmt::format("has a malformed XML header: {} at byte {}.",
                                  parsed.description(), parsed.offset));
  }
  const pugi::xml_node root = root_of(path, document);
  if (local_name(root) != "ismrmrdHeader") {
    fail_format(path, fmt::format("has another header than ISMRMRD's: got <{}>, expected "
                                  "<ismrmrdHeader>.",
                                  quoted(local_name(root))));
  }
  const HeaderReader reader(path, root);
  RawScanHeader header;
  header.encoded = reader.space("encoding/encodedSpace");
  header.recon = reader.space("encoding/reconSpace");
  header.step_0_limit = reader.limit(0);
  header.step_1_limit = reader.limit(1);
  header.step_2_limit = reader.limit(2);
  for (std::size_t i = 0; i < 2; ++i) {
    header.acceleration[i] = reader.number<index_t>(
        fmt::format("encoding/parallelImaging/accelerationFactor/kspace_encoding_step_{}", i + 1),
        1, kLargest, index_t{1});
  }
  header.calibration_mode = reader.text("encoding/parallelImaging/calibrationMode");
  header.trajectory = reader.text("encoding/trajectory", "cartesian");
  header.n_coils = reader.number<index_t>("acquisitionSystemInformation/receiverChannels", 0,
                                          kLargest, index_t{0});
  header.h1_frequency_hz = reader.number<double>("experimentalConditions/H1resonanceFrequency_Hz",
                                                 0.0, 1e12, std::optional(0.0));
  header.institution = reader.text("acquisitionSystemInformation/institutionName");
  header.xml = xml;
  return header;
}

std::string make_ismrmrd_header(const RawScanHeader& header) {
  std::string system = fmt::format("    <receiverChannels>{}</receiverChannels>\n", header.n_coils);
  if (!header.institution.empty()) {
    system +=
        fmt::format("    <institutionName>{}</institutionName>\n", xml_escaped(header.institution));
  }
  std::string parallel = fmt::format(
      "    <parallelImaging>\n"
      "      <accelerationFactor><kspace_encoding_step_1>{}</kspace_encoding_step_1>"
      "<kspace_encoding_step_2>{}</kspace_encoding_step_2></accelerationFactor>\n",
      header.acceleration[0], header.acceleration[1]);
  if (!header.calibration_mode.empty()) {
    parallel += fmt::format("      <calibrationMode>{}</calibrationMode>\n",
                            xml_escaped(header.calibration_mode));
  }
  parallel += "    </parallelImaging>\n";
  return fmt::format(
      "<?xml version=\"1.0\"?>\n"
      "<ismrmrdHeader xmlns=\"http://www.ismrm.org/ISMRMRD\">\n"
      "  <acquisitionSystemInformation>\n{}  </acquisitionSystemInformation>\n"
      "  <experimentalConditions>\n"
      "    <H1resonanceFrequency_Hz>{}</H1resonanceFrequency_Hz>\n"
      "  </experimentalConditions>\n"
      "  <encoding>\n{}{}"
      "    <encodingLimits>\n{}{}{}    </encodingLimits>\n"
      "    <trajectory>{}</trajectory>\n{}"
      "  </encoding>\n"
      "</ismrmrdHeader>\n",
      system, std::llround(header.h1_frequency_hz), space_text("encodedSpace", header.encoded),
      space_text("reconSpace", header.recon), limit_text(0, header.step_0_limit),
      limit_text(1, header.step_1_limit), limit_text(2, header.step_2_limit),
      xml_escaped(header.trajectory), parallel);
}

MetaAttributes parse_meta_attributes(const std::string& xml) {
  MetaAttributes attributes;
  pugi::xml_document document;
  if (!document.load_buffer(xml.data(), xml.size(), pugi::parse_default, pugi::encoding_utf8)) {
    return attributes;
  }
  for (const pugi::xml_node& meta : document.child("ismrmrdMeta").children("meta")) {
    attributes.emplace_back(text_of(meta.child("name")), text_of(meta.child("value")));
  }
  return attributes;
}

std::string make_meta_attributes(const MetaAttributes& attributes) {
  if (attributes.empty()) return {};
  std::string text = "<?xml version=\"1.0\"?>\n<ismrmrdMeta>\n";
  for (const auto& [name, value] : attributes) {
    text += fmt::format("  <meta><name>{}</name><value>{}</value></meta>\n", xml_escaped(name),
                        xml_escaped(value));
  }
  return text + "</ismrmrdMeta>\n";
}

}  // namespace palimpsest::io_detail
