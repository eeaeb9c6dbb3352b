// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/results/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <pugixml.hpp>

#include "palimpsest/base/error.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

pugi::xml_document parsed(const std::string& text) {
  pugi::xml_document document;
  const pugi::xml_parse_result result =
      document.load_string(text.c_str(), pugi::parse_default | pugi::parse_doctype);
  EXPECT_TRUE(result) << result.description() << " at " << result.offset << "\n"
                      << text.substr(0, 400);
  return document;
}

ReportContents full_contents(index_t n) {
  ReportContents c;
  c.title = "scan <1> & \"2\"";
  c.command_line = {"palimpsest", "recon", "a b.h5", "--reg", "tv(T):0.01", "it's"};
  c.facts = {{"coils", "8"}, {"note", "a < b & c\x01\xff"}};
  c.images = {{"image", Tensor::random_normal({3, n, n + 1}, DType::complex64, {1, 1})},
              {"zero-filled", Tensor::random_normal({n, n + 1}, DType::complex64, {1, 2})}};
  c.error = Tensor::random_normal({n, n}, DType::float32, {1, 3});
  c.convergence = {{"objective", {10, 3, 1, 0.5}}, {"residual", {1, 0.1, 0.01, 0}}};
  c.stages = {{"read", 1000, 0.5}, {"solve", 30000, {}}};
  c.memory_svg = "<?xml version=\"1.0\"?><svg xmlns=\"http://www.w3.org/2000/svg\"><rect/></svg>";
  c.operator_tree = "Chain(\n  Fft(<..>)\n)";
  return c;
}

TEST(HtmlReport, IsOneWellFormedPageThatLoadsNothing) {
  const std::string page = html_report(full_contents(40));
  const pugi::xml_document document = parsed(page);
  const pugi::xml_node body = document.child("html").child("body");
  EXPECT_STREQ(body.child("h1").text().get(), "scan <1> & \"2\"");
  EXPECT_EQ(document.select_nodes("//img").size(), 3U);
  EXPECT_EQ(document.select_nodes("//*[name()='svg']").size(), 3U);
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("href")));
  for (const pugi::xpath_node& image : document.select_nodes("//img/@src")) {
    EXPECT_TRUE(std::string(image.attribute().value()).starts_with("data:image/png;base64,iVBOR"));
  }
  EXPECT_THAT(page, HasSubstr("palimpsest recon 'a b.h5' --reg 'tv(T):0.01' 'it'\\''s'"));
  EXPECT_THAT(page, HasSubstr("30000 bytes"));
  EXPECT_THAT(page, HasSubstr("a &lt; b &amp; c\\xff"));
}

TEST(HtmlReport, LeavesOutWhatIsEmpty) {
  ReportContents nothing;
  nothing.title = "nothing";
  const std::string page = html_report(nothing);
  parsed(page);
  EXPECT_THAT(page, Not(HasSubstr("<h2>")));
}

TEST(HtmlReport, StaysBelowTwoMegabytes) {
  ReportContents c = full_contents(1500);
  for (int i = 0; i < 12; ++i) c.images.push_back(c.images.front());
  c.memory_svg = "<svg>" + std::string(3000000, ' ') + "</svg>";
  const std::string page = html_report(c);
  EXPECT_LE(page.size(), 2000000U);
  parsed(page);
  EXPECT_THAT(page, HasSubstr("too large for this page"));
  c.operator_tree = std::string(4000000, 'x');
  EXPECT_LE(html_report(c).size(), 2000000U);
}

TEST(HtmlReport, RefusesImagesWithoutPoints) {
  ReportContents c;
  c.images = {{"none", Tensor::ones({0, 3})}};
  expect_error<ShapeError>([&] { html_report(c); }, "(.., y, x)");
  c.images = {{"line", Tensor::ones({3})}};
  expect_error<ShapeError>([&] { html_report(c); }, "(3,)");
}

TEST(Base64, IsTheStandards) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xff\xfe"), "//4=");
}

TEST(Reduced, TakesMeansOfBlocks) {
  const Tensor x = Tensor::arange(15, DType::float32).view({3, 5});
  const Tensor small = reduced(x, 3);
  ASSERT_EQ(small.shape(), (Extents{2, 3}));
  EXPECT_EQ(small.at<float>({0, 0}), 3);
  EXPECT_EQ(small.at<float>({1, 2}), 14);
  EXPECT_TRUE(equal(reduced(x, 5), x));
}

TEST(LineChart, ShowsFiniteValuesOnly) {
  const std::string chart =
      line_chart({{"a & b", {1, kNan, 100, -5, 1e-3}}}, {.title = "<t>", .log_y = true});
  const pugi::xml_document document = parsed(chart);
  const std::string points = document.select_node("//polyline/@points").attribute().value();
  EXPECT_EQ(std::count(points.begin(), points.end(), ','), 3);
  EXPECT_THAT(points, Not(HasSubstr("nan")));
  // The largest value is at the top, the first one at the left.
  EXPECT_TRUE(points.starts_with("64.0,"));
  EXPECT_THAT(points, HasSubstr(",32.0"));
}

TEST(LineChart, SurvivesWhatCannotBeShown) {
  for (const std::vector<double>& values :
       {std::vector<double>{}, {kNan}, {0, 0, 0}, {1e308, -1e308}, {5}, {1e-320, 1e308}}) {
    for (const bool log_y : {false, true}) {
      const std::string chart = line_chart({{"x", values}, {"y", values}}, {.log_y = log_y});
      parsed(chart);
      EXPECT_THAT(chart, Not(HasSubstr("nan")));
      EXPECT_THAT(chart, Not(HasSubstr("inf")));
      EXPECT_LT(chart.size(), 20000U);
    }
  }
  EXPECT_LT(line_chart({{"x", std::vector<double>(1000000, 1.5)}}).size(), 60000U);
  expect_error<ValueError>([] { line_chart({}, {.width = 50}); }, "100 x 100");
}

TEST(BarChart, TheLargestBarTakesTheWholeWidth) {
  const pugi::xml_document document =
      parsed(bar_chart({{"a", 10, "ten"}, {"b", 5, "five"}, {"c", kNan, "<none>"}}));
  const auto bars = document.select_nodes("//rect[@fill='#888']/@width");
  ASSERT_EQ(bars.size(), 3U);
  EXPECT_EQ(bars[0].attribute().as_double(), 2 * bars[1].attribute().as_double());
  EXPECT_EQ(bars[2].attribute().as_double(), 0);
  parsed(bar_chart({}));
}

}  // namespace
}  // namespace palimpsest
