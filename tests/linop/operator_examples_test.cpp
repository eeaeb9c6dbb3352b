// SPDX-License-Identifier: Apache-2.0
// The examples of docs/operators.md run, and this page has a section with an example for every type
// of operator. With PALIMPSEST_WRITE_DOCS set the table in that page is written.
#include <filesystem>
#include <fstream>
#include <numbers>
#include <sstream>

#include "linop/linop_support.hpp"
#include "palimpsest/palimpsest.hpp"
#include "support/page_part.hpp"

namespace palimpsest {
namespace {

Tensor numbers(const std::vector<double>& values) { return Tensor::from(values); }

// The elements, row-major.
std::string text(const Tensor& t) {
  std::string result;
  const auto rounded = [](double v) { return std::round(v * 1e4) / 1e4 + 0.0; };
  for (const testing::Complex& z : testing::values(t)) {
    std::ostringstream number;
    number << rounded(z.real());
    if (rounded(z.imag()) != 0) number << std::showpos << rounded(z.imag()) << "i";
    result += (result.empty() ? "" : " ") + number.str();
  }
  return result;
}

#include "operator_examples.inc"  // generated from the page by operator_examples.py

// -- the page ------------------------------------------------------------------------------------

const std::filesystem::path kPage =
    std::filesystem::path(PALIMPSEST_SOURCE_DIR) / "docs/operators.md";

std::string page() {
  std::ifstream file(kPage);
  EXPECT_TRUE(file) << kPage;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool is_of_the_library(const std::string& name) { return name.find('.') == std::string::npos; }

std::string table() {
  const auto yes = [](bool is) { return is ? " yes |" : " |"; };
  std::string result =
      "| type | version | container | own adjoint | own normal | inverse | knows sizes | one shape "
      "| "
      "linear over |\n|---|---|---|---|---|---|---|---|---|\n";
  for (const std::string& name : linop_names()) {
    if (!is_of_the_library(name)) continue;
    const LinopType& type = *find_linop(name);
    std::string anchor = name;
    for (char& c : anchor) c = static_cast<char>(std::tolower(c));
    result += "| [" + name + "](#" + anchor + ") | " + std::to_string(type.version) + " |" +
              yes(type.assemble != nullptr) + yes(type.adjoint || type.functions.adj_fn) +
              yes(type.normal || type.functions.normal_fn) + yes(type.inverse) +
              yes(type.functions.size) + yes(type.one_shape) +
              (type.real_linear ? " R |\n" : " C |\n");
  }
  return result;
}

TEST(OperatorPage, HasTheTableThatTheRegistrySays) { testing::expect_page_has(kPage, table()); }

TEST(OperatorPage, HasASectionWithFormulaExampleAndErrorsForEveryType) {
  const std::string text = page();
  int n_types = 0;
  for (const std::string& name : linop_names()) {
    if (!is_of_the_library(name)) continue;
    ++n_types;
    const std::size_t at = text.find("\n### " + name + "\n");
    ASSERT_NE(at, std::string::npos) << "no section on " << name;
    std::size_t end = text.find("\n##", at + 5);
    if (end == std::string::npos) end = text.size();
    const std::string section = text.substr(at, end - at);
    for (const char* part : {"A x = ", "Errors: ", "```cpp\n", "EXPECT_"}) {
      EXPECT_NE(section.find(part), std::string::npos) << name << " lacks " << part;
    }
  }
  EXPECT_GE(n_types, 34);
}

}  // namespace
}  // namespace palimpsest
