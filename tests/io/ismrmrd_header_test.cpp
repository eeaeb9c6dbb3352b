// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/io/ismrmrd_header.hpp"

#include <array>

#include "io/files.hpp"
#include "support/expect_error.hpp"

namespace palimpsest::io_detail {
namespace {

using testing::expect_error;

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

// Namespace prefixes, comments, CDATA and entities, as other writers use them.
TEST(IsmrmrdHeader, ReadsWhatOtherWritersMake) {
  std::string xml = make_ismrmrd_header(sample_header());
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = xml.find(from, at)) != std::string::npos; at += to.size()) {
      xml.replace(at, from.size(), to);
    }
  };
  replace("A &amp; B", "<![CDATA[A]]> &#38;<!-- and --> B");
  replace("<x>512</x>", "<x><?no?>\n 512 </x >");
  replace("</", "@");
  replace("<", "<m:");
  replace("@", "</m:");
  for (const std::string kept : {"?xml", "![CDATA[A]]", "!-- and --", "?no?"}) {
    replace("<m:" + kept, "<" + kept);
  }
  const RawScanHeader back = parse_ismrmrd_header("f", "\xef\xbb\xbf" + xml + "<!-- end -->");
  EXPECT_EQ(back.encoded.matrix, (std::array<index_t, 3>{512, 256, 4}));
  EXPECT_EQ(back.institution, "A & B");
}

TEST(IsmrmrdHeader, RefusesWhatIsNotWellFormed) {
  const std::pair<std::string, std::string> wrong[] = {
      {"", "malformed XML header: No document element"},
      {"text", "malformed XML header: No document element"},
      {"<a>", "malformed XML header: Start-end tags mismatch"},
      {"<a><b></a>", "malformed XML header: Start-end tags mismatch"},
      {"<a></a", "malformed XML header"},
      {"<a/><b/>", "a second element <'b'>"},
      {"<a b></a>", "malformed XML header: Error parsing element attribute"},
      {"<a b=c></a>", "malformed XML header: Error parsing element attribute"},
      {"<a b=\"c></a>", "malformed XML header: Error parsing element attribute"},
      {"<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>", "a DOCTYPE"},
      {"<a><!-- </a>", "malformed XML header: Error parsing comment"},
      {"< a/>", "malformed XML header"},
  };
  for (const auto& [document, text] : wrong) {
    expect_error<FormatError>([&] { parse_ismrmrd_header("f", document); }, text);
  }
}

TEST(IsmrmrdHeader, IsNotHurtByDepth) {
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "<a>";
  expect_error<FormatError>([&] { parse_ismrmrd_header("f", deep); }, "malformed XML header");
  for (int i = 0; i < 100000; ++i) deep += "</a>";
  expect_error<FormatError>([&] { parse_ismrmrd_header("f", deep); }, "another header");
}

}  // namespace
}  // namespace palimpsest::io_detail
