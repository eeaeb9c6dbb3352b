// SPDX-License-Identifier: Apache-2.0
// The table of docs/inplace.md agrees with the declarations of the registered ops. With
// PALIMPSEST_WRITE_DOCS set it is written instead.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "contract/applied.hpp"
#include "support/page_part.hpp"

namespace palimpsest {
namespace {

using testing::Applied;

// The properties of one op, collected from its samples.
struct Row {
  std::set<int> views, overwrites, same;
  bool is_part = false, may_copy = false;
  bool writes_part = false, other_dtype = false;
};

// Does a view of an input show only a part of it, or can strides forbid it?
void look_at_views(const Applied& a, Row& row) {
  const Op& op = a.node.op();
  for (const auto& [output, inputs] : op.view_map(a.node)) {
    row.views.insert(inputs.begin(), inputs.end());
    if (inputs.size() > 1) continue;  // the run decides which one
    const Tensor& t = a.values[static_cast<std::size_t>(*inputs.begin())];
    for (const Tensor& in : {t, testing::column_major(t), testing::with_gaps(t)}) {
      const auto layout = op.view_layout(a.node, output, {in.dtype(), in.shape(), in.strides(), 0});
      row.may_copy = row.may_copy || !layout;
      if (!layout) continue;
      row.is_part = row.is_part || byte_count(layout->extents, layout->dtype) < t.nbytes();
    }
  }
}

void look_at_variants(const Applied& a, Row& row) {
  const Variable out = a.node.output(0);
  for (int i = 0; i < static_cast<int>(a.node.input_count()); ++i) {
    const OpPtr op = a.node.op().inplace_on_inputs(a.node, {i});
    if (!op) continue;
    const Apply variant = op->make_node(a.node.inputs());
    const Variable& input = a.node.input(static_cast<std::size_t>(i));
    row.overwrites.insert(i);
    row.writes_part = row.writes_part || !op->write_region(variant, i).is_whole();
    row.other_dtype = row.other_dtype || input.dtype() != out.dtype();
    EXPECT_EQ(item_size(input.dtype()), item_size(out.dtype())) << op->str();
    EXPECT_EQ(input.type().shape, out.type().shape) << op->str();
    for (const auto& [d, j] : op->tolerate_same(variant)) row.same.insert(j);
  }
}

std::string list_of(const std::set<int>& inputs) {
  std::string text;
  for (int i : inputs) text += (text.empty() ? "" : ", ") + std::to_string(i);
  return text;
}

std::string text_of(const Row& row) {
  std::string views = list_of(row.views);
  if (row.is_part) views += " (part)";
  if (row.may_copy) views += ", else a copy";
  std::string condition;
  if (!row.overwrites.empty()) {
    condition = row.other_dtype ? "shape and item size" : "shape and dtype";
  }
  return views + " | " + list_of(row.overwrites) + " | " +
         (row.overwrites.empty() ? ""
          : row.writes_part      ? "what is indexed"
                                 : "all") +
         " | " + condition + " | " + list_of(row.same);
}

std::string table() {
  std::map<std::string, Row> rows;
  for (const ops::OpEntry& entry : ops::op_samples()) {
    for (const ops::OpSample& sample : entry.samples()) {
      const Applied a = testing::applied(entry, sample);
      Row& row = rows[a.node.op().name()];
      look_at_views(a, row);
      look_at_variants(a, row);
    }
  }
  std::map<std::string, std::string> names;  // by equal rows
  for (const auto& [name, row] : rows) {
    if (row.views.empty() && row.overwrites.empty()) continue;
    std::string& list = names[text_of(row)];
    list += (list.empty() ? "" : ", ") + name;
  }
  std::map<std::string, std::string> sorted;
  for (const auto& [text, list] : names) sorted[list] = text;
  std::string result =
      "| op | views | may overwrite | writes | if it has the result's | also read as |\n"
      "|---|---|---|---|---|---|\n";
  for (const auto& [list, text] : sorted) result += "| " + list + " | " + text + " |\n";
  return result;
}

TEST(InplaceTable, IsWhatTheRegistrySays) {
  testing::expect_page_has(PALIMPSEST_SOURCE_DIR "/docs/inplace.md", table());
}

}  // namespace
}  // namespace palimpsest
