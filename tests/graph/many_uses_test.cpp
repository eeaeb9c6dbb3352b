// SPDX-License-Identifier: Apache-2.0
// An array with many views and readers, under edits, compared with the reference.
#include <gtest/gtest.h>

#include <random>

#include "graph/reference.hpp"
#include "graph/toy_ops.hpp"
#include "palimpsest/graph/inplace_query.hpp"

namespace palimpsest {
namespace {

constexpr int kParts = 40;
constexpr index_t kExtent = 100;

// Parts of an array of two axes, each read or overwritten.
class Parts {
 public:
  Parts(std::uint64_t seed, int n_writers)
      : random_(seed), n_writers_(n_writers), graph_(make_graph()) {}

  FunctionGraph& graph() { return graph_; }
  index_t pick(index_t n) { return std::uniform_int_distribution<index_t>(0, n - 1)(random_); }

  // The result of one part computed in another way, maybe from another part.
  void edit() {
    const Variable old = graph_.outputs()[static_cast<std::size_t>(pick(kParts))];
    graph_.replace(old, result());
  }

 private:
  Region region() {
    Region::Range rows{pick(kExtent - 9), 1 + pick(2), 1 + pick(4), 0}, columns{0, 1, kUnknown, 1};
    switch (pick(12)) {
      case 0:
        return Region::unknown();
      case 1:
        return Region::whole();
      case 2:
        rows = {rows.start + 8, -2, 4, 0};
        break;
      case 3:
        std::swap(rows, columns);
        break;
      default:
        columns.count = 1 + pick(3);
    }
    return Region::box({rows, columns}, 2);
  }

  Variable result() {
    toy::Spec view{"V", {{0, {0}}}};
    view.serial = std::to_string(n_ops_++);
    if (pick(2) == 0) view.unread = {0};
    view.view_regions.emplace(std::pair(0, 0), region());
    const Variable v = toy::apply(toy::make(view), {pick(20) == 0 ? y_ : x_});
    toy::Spec step{"P"};
    step.serial = view.serial;
    if (pick(kParts) < n_writers_) {
      step.destroys = {{0, {0}}};
      if (pick(2) == 0) step.write_regions.emplace(0, Region::box({{0, 1, 1, 0}, {}}, 2));
    }
    return toy::apply(toy::S, {toy::apply(toy::make(step), {v, y_})});
  }

  FunctionGraph make_graph() {
    std::vector<Variable> outputs;
    for (int k = 0; k < kParts; ++k) outputs.push_back(result());
    return FunctionGraph({x_, y_}, outputs, {.clone = false});
  }

  std::mt19937_64 random_;
  int n_writers_, n_ops_ = 0;  // of the kParts, about
  Variable x_ = make_input({DType::float64, {kExtent, kExtent}, {}}, "x");
  Variable y_ = make_input({DType::float64, {kExtent, kExtent}, {}}, "y");
  FunctionGraph graph_;
};

void expect_right_candidates(FunctionGraph& graph, const Apply& node) {
  for (const InplaceCandidate& c : inplace_candidates(graph, node)) {
    const auto mark = graph.checkpoint();
    graph.replace(node.output(0), c.op->make_node(node.inputs()).output(0));
    EXPECT_EQ(c.refusal.kind, reference::analyse(graph).kind);
    graph.revert(mark);
    graph.release(mark);
  }
}

TEST(ManyUses, AnArrayWithManyViewsIsAnalysedAsAnyOther) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    Parts parts(seed, seed % 2 == 0 ? 1 : 8);
    FunctionGraph& graph = parts.graph();
    for (int k = 0; k < 20; ++k) {
      ASSERT_EQ(reference::difference(graph), "") << seed << " " << k;
      const auto mark = graph.checkpoint();
      parts.edit();
      ASSERT_EQ(reference::difference(graph), "") << seed << " " << k;
      const Apply node = graph.outputs()[static_cast<std::size_t>(parts.pick(kParts))].owner();
      expect_right_candidates(graph, node.input(0).owner());
      if (parts.pick(3) == 0) graph.revert(mark);
      graph.release(mark);
    }
  }
}

// Disjoint parts of one array: no step waits for another one.
TEST(ManyUses, ViewsThatReadNothingNeedNotComeFirst) {
  const Variable x = make_input({DType::float64, {kExtent}, {}}, "x");
  std::vector<Variable> outputs;
  for (index_t i = 0; i < kExtent; ++i) {
    toy::Spec view{"V", {{0, {0}}}};
    view.unread = {0};
    view.view_regions.emplace(std::pair(0, 0), toy::slice(i, 1));
    const Variable v = toy::apply(toy::make(view), {x});
    outputs.push_back(toy::apply(toy::S, {toy::apply(toy::A_destroys, {v})}));
  }
  const FunctionGraph graph({x}, outputs);
  EXPECT_TRUE(graph.consistent());
  EXPECT_TRUE(graph.order_constraints().empty());
}

}  // namespace
}  // namespace palimpsest
