// SPDX-License-Identifier: Apache-2.0
// The registry is complete, and docs/ops.md agrees with it. With PALIMPSEST_WRITE_DOCS set the
// table in that page is written instead.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "contract/applied.hpp"
#include "palimpsest/kernels/elementwise/scalar_op.hpp"
#include "support/page_part.hpp"

namespace palimpsest {
namespace {

namespace fs = std::filesystem;
using testing::Applied;

const fs::path kSource = PALIMPSEST_SOURCE_DIR;

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Op classes are found by their declaration, so a new one cannot be forgotten.
TEST(OpRegistry, HoldsEveryOpClass) {
  std::set<std::string, std::less<>> registered;
  for (const ops::OpEntry& entry : ops::op_samples()) registered.emplace(entry.name);
  // Classes without an entry of this name: ShapeOf is listed as Shape, an op with its own adjoint
  // has an entry for each direction, and Loop is run and tested by functions only.
  registered.insert({"ShapeOf", "Loop", "Interpolation", "Blocks", "StencilOp"});
  // Ops for other files are declared in headers; ops in sources have a `declaration()`.
  const std::regex in_header(
      "class (\\w+) final : public (Op\\b|ViewOp\\b|Generator\\b|Declared<)"),
      in_source("class (\\w+) final : public Declared<");
  int n_classes = 0;
  for (const auto& file : fs::recursive_directory_iterator(kSource / "src/palimpsest/ops")) {
    const fs::path ending = file.path().extension();
    if (ending != ".hpp" && ending != ".cpp") continue;
    const std::string text = text_of(file.path());
    const std::regex& declaration = ending == ".hpp" ? in_header : in_source;
    for (std::sregex_iterator it(text.begin(), text.end(), declaration), end; it != end; ++it) {
      ++n_classes;
      EXPECT_TRUE(registered.contains((*it)[1].str())) << (*it)[1] << " has no samples";
    }
  }
  EXPECT_GT(n_classes, 40);
}

TEST(OpRegistry, HasSamplesOfEveryScalarFunction) {
  std::set<std::string> sampled;
  for (const ops::OpEntry& entry : ops::op_samples()) {
    if (entry.name != "Elementwise") continue;
    for (const ops::OpSample& sample : entry.samples()) {
      sampled.insert(sample.name.substr(0, sample.name.find(' ')));
    }
  }
  for (int i = 0; i < kScalarOpCount; ++i) {
    const auto op = static_cast<ScalarOp>(i);
    if (op == ScalarOp::identity) continue;
    EXPECT_TRUE(sampled.contains(std::string(name_of(op)))) << name_of(op);
  }
}

// -- the table -----------------------------------------------------------------------------------

struct Row {
  std::string_view entry;
  std::set<int> views, overwrites;
  std::map<int, std::string> linear;
  bool is_differentiable = false, can_fail = false;
  int n_samples = 0;
};

std::string word_of(Linearity linearity) {
  return linearity == Linearity::real        ? " (real)"
         : linearity == Linearity::conjugate ? " (conjugate)"
                                             : "";
}

std::map<std::string, Row> rows() {
  std::map<std::string, Row> result;
  for (const ops::OpEntry& entry : ops::op_samples()) {
    for (const ops::OpSample& sample : entry.samples()) {
      const Applied a = testing::applied(entry, sample);
      const Op& op = a.node.op();
      Row& row = result[op.name()];
      row.entry = entry.name;
      ++row.n_samples;
      row.can_fail = row.can_fail || op.can_fail();
      for (const auto& [output, inputs] : op.view_map(a.node)) {
        row.views.insert(inputs.begin(), inputs.end());
      }
      bool any = false;
      for (int i = 0; i < static_cast<int>(a.node.input_count()); ++i) {
        if (op.inplace_on_inputs(a.node, {i})) row.overwrites.insert(i);
        const bool inexact = is_inexact(a.node.input(static_cast<std::size_t>(i)).dtype());
        any = any || (inexact && op.uses_elements(a.node, i));
        if (inexact && op.linear_in(a.node, i) != Linearity::no) {
          row.linear.emplace(i, word_of(op.linear_in(a.node, i)));
        }
      }
      if (!any || !is_inexact(a.node.output(0).dtype())) continue;
      std::vector<Variable> cotangents(a.node.output_count());
      cotangents[0] = make_input(a.node.output(0).type());
      try {
        for (const Variable& v : op.pullback(a.node, cotangents)) {
          row.is_differentiable = row.is_differentiable || v.defined();
        }
      } catch (const NotSupported&) {
        // No derivative.
      }
    }
  }
  return result;
}

std::string list_of(const std::set<int>& inputs) {
  std::string text;
  for (int i : inputs) text += (text.empty() ? "" : ", ") + std::to_string(i);
  return text;
}

std::string table() {
  std::string text =
      "| op | entry | view of | may overwrite | linear in | derivative | can fail | samples |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const auto& [name, row] : rows()) {
    std::string linear;
    for (const auto& [i, word] : row.linear) {
      linear += (linear.empty() ? "" : ", ") + std::to_string(i) + word;
    }
    text += "| " + name + " | " + (name == row.entry ? "" : std::string(row.entry)) + " | " +
            list_of(row.views) + " | " + list_of(row.overwrites) + " | " + linear + " | " +
            (row.is_differentiable ? "yes" : "") + " | " + (row.can_fail ? "yes" : "") + " | " +
            std::to_string(row.n_samples) + " |\n";
  }
  return text;
}

TEST(OpTable, IsWhatTheRegistrySays) { testing::expect_page_has(kSource / "docs/ops.md", table()); }

}  // namespace
}  // namespace palimpsest
