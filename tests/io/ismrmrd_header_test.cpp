// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/io/ismrmrd_header.hpp"

#include "io/files.hpp"
#include "palimpsest/io/xml_tree.hpp"
#include "support/expect_error.hpp"

namespace palimpsest::io_detail {
namespace {

using testing::expect_error;

std::string text_at(const std::string& document, const std::string& path) {
  const XmlNode root = parse_xml("f", document);
  const XmlNode* node = root.find(path);
  return node == nullptr ? "(none)" : node->text;
}

TEST(XmlTree, FindsElementsWithoutTheirNamespace) {
  EXPECT_EQ(
      text_at("<?xml version='1.0'?><!-- c --><m:a x=\"<\" y='2'><m:b/><c><d> 7 </d></c></m:a>",
              "c/d"),
      " 7 ");
  EXPECT_EQ(text_at("\xef\xbb\xbf<a><b>1</b ><b>2</b></a>\n<!-- end -->", "b"), "1");
  EXPECT_EQ(text_at("<a/>", "b"), "(none)");
}

TEST(XmlTree, ReadsEntitiesCommentsAndCdata) {
  EXPECT_EQ(
      text_at("<a><b>1 &lt; &#50;&amp;<!-- no --><?no?><![CDATA[<&>]]>&#x20ac;&gt;&quot;&apos;"
              "</b></a>",
              "b"),
      "1 < 2&<&>\xe2\x82\xac>\"'");
  EXPECT_EQ(text_at("<a><b>" + xml_escaped("<&\">") + "</b></a>", "b"), "<&\">");
}

TEST(XmlTree, RefusesWhatIsNotWellFormed) {
  const std::pair<std::string, std::string> wrong[] = {
      {"", "no element"},
      {"text", "no element"},
      {"<a>", "<a> without an end"},
      {"<a><b></a>", "another end than that of <b>"},
      {"<a></a", "an end tag without '>'"},
      {"<a/><b/>", "text after the last element"},
      {"<a b></a>", "an attribute without a value"},
      {"<a b=c></a>", "an attribute without quotes"},
      {"<a b=\"c></a>", "an attribute without an end"},
      {"<a>&nbsp;</a>", "an unknown entity"},
      {"<a>&#x110000;</a>", "a wrong character number"},
      {"<a>&amp</a>", "an entity without ';'"},
      {"<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>", "a DOCTYPE"},
      {"<a><!-- </a>", "a comment without an end"},
      {"< a/>", "no name where one is expected"},
  };
  for (const auto& [document, text] : wrong) {
    expect_error<FormatError>([&] { parse_xml("f", document); }, text);
  }
}

TEST(XmlTree, RefusesDepthThatNoHeaderHas) {
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "<a>";
  expect_error<FormatError>([&] { parse_xml("f", deep); }, "nested too deep");
}

RawScanHeader sample_header() {
  RawScanHeader header;
  header.encoded.matrix = {512, 256, 4};
  header.encoded.field_of_view_mm = {600, 300.5, 6};
  header.recon.matrix = {256, 256, 4};
  header.recon.field_of_view_mm = {300, 300.5, 6};
  header.step_1_limit = EncodingLimit{2, 255, 128};
  header.acceleration = {2, 3};
  header.calibration_mode = "embedded";
  header.trajectory = "cartesian";
  header.n_coils = 8;
  header.h1_frequency_hz = 63500000;
  header.institution = "A & B";
  return header;
}

TEST(IsmrmrdHeader, ComesBack) {
  const RawScanHeader header = sample_header();
  const std::string xml = make_ismrmrd_header(header);
  const RawScanHeader back = parse_ismrmrd_header("f", xml);
  EXPECT_EQ(back.encoded.matrix, header.encoded.matrix);
  EXPECT_EQ(back.encoded.field_of_view_mm, header.encoded.field_of_view_mm);
  EXPECT_EQ(back.recon.matrix, header.recon.matrix);
  EXPECT_EQ(back.step_1_limit->minimum, 2);
  EXPECT_EQ(back.step_1_limit->maximum, 255);
  EXPECT_EQ(back.step_1_limit->center, 128);
  EXPECT_FALSE(back.step_2_limit);
  EXPECT_EQ(back.acceleration, header.acceleration);
  EXPECT_EQ(back.calibration_mode, "embedded");
  EXPECT_EQ(back.n_coils, 8);
  EXPECT_EQ(back.h1_frequency_hz, 63500000);
  EXPECT_EQ(back.institution, "A & B");
  EXPECT_EQ(back.xml, xml);
  EXPECT_EQ(back.readout_oversampling(), 2.0);
}

TEST(IsmrmrdHeader, NamesWhatIsMissingOrWrong) {
  const std::string good = make_ismrmrd_header(sample_header());
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string xml = good;
    return xml.replace(xml.find(from), from.size(), to);
  };
  expect_error<FormatError>([&] { parse_ismrmrd_header("f", "<html/>"); },
                            "has another header than ISMRMRD's: got <'html'>");
  expect_error<FormatError>([&] { parse_ismrmrd_header("f", replaced("<x>512</x>", "")); },
                            "has no <encoding/encodedSpace/matrixSize/x>");
  for (const char* wrong : {"<x>0</x>", "<x>70000</x>", "<x>1.5</x>", "<x>many</x>", "<x></x>"}) {
    expect_error<FormatError>([&] { parse_ismrmrd_header("f", replaced("<x>512</x>", wrong)); },
                              "expected 1 to 65535");
  }
  expect_error<FormatError>(
      [&] { parse_ismrmrd_header("f", replaced("<x>600</x>", "<x>nan</x>")); }, "fieldOfView_mm/x");
}

}  // namespace
}  // namespace palimpsest::io_detail
