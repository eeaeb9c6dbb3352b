// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/io/report.hpp"

#include <limits>

#include "io/files.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

TEST(JsonReport, KeepsOrderAndReplacesValues) {
  JsonReport report;
  report.set("b", 1).set("a", true).set("b", "two");
  EXPECT_EQ(report.text(), "{\n  \"b\": \"two\",\n  \"a\": true\n}\n");
  EXPECT_EQ(JsonReport().text(), "{}\n");
}

TEST(JsonReport, NestsObjectsAndArrays) {
  JsonReport inner;
  inner.set("n", std::uint64_t{18446744073709551615u});
  JsonReport report;
  report.set("inner", inner)
      .set("history", std::vector<double>{1.0, 0.1})
      .set("names", std::vector<std::string>{"x", "y"})
      .set("steps", std::vector<JsonReport>{inner, JsonReport()});
  EXPECT_EQ(report.text(),
            "{\n"
            "  \"inner\": {\n"
            "    \"n\": 18446744073709551615\n"
            "  },\n"
            "  \"history\": [1, 0.1],\n"
            "  \"names\": [\"x\", \"y\"],\n"
            "  \"steps\": [{\n"
            "    \"n\": 18446744073709551615\n"
            "  }, {}]\n"
            "}\n");
}

TEST(JsonReport, WritesWhatJsonHasNoNumberForAsNull) {
  JsonReport report;
  report.set("nan", std::numeric_limits<double>::quiet_NaN())
      .set("inf", -std::numeric_limits<double>::infinity())
      .set("small", 1e-300);
  EXPECT_EQ(report.text(), "{\n  \"nan\": null,\n  \"inf\": null,\n  \"small\": 1e-300\n}\n");
}

TEST(JsonReport, EscapesStrings) {
  JsonReport report;
  report.set("k\"", "a\\b\"\n\t\x01 \xc3\xa4");
  EXPECT_EQ(report.text(), "{\n  \"k\\\"\": \"a\\\\b\\\"\\n\\t\\u0001 \xc3\xa4\"\n}\n");
}

TEST(JsonReport, WritesAFile) {
  const testing::TemporaryDirectory directory;
  JsonReport report;
  report.set("x", 1.5);
  report.write(directory / "r.json");
  EXPECT_EQ(testing::read_bytes(directory / "r.json"), report.text());
  testing::expect_error<IoError>([&] { report.write(directory / "no/r.json"); },
                                 "cannot be written");
  testing::expect_error<IoError>([&] { write_text_atomically("/dev/full", "x"); }, "No space left");
}

}  // namespace
}  // namespace palimpsest
