// SPDX-License-Identifier: Apache-2.0
// Random graphs under random edits, reverts and failing edits, compared with the reference.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "graph/reference.hpp"
#include "graph/toy_ops.hpp"
#include "palimpsest/graph/graph_state.hpp"
#include "palimpsest/graph/inplace_query.hpp"
#include "support/long_run.hpp"

namespace palimpsest {
namespace {

constexpr int kEdits = 120000;
constexpr int kEditsPerGraph = 125;
constexpr std::size_t kMostNodes = 24;

// Counts nodes and uses from its callbacks, for comparison with the graph.
class Counter : public Feature {
 public:
  void on_import(const FunctionGraph&, const Apply&, std::string_view) override { ++n_nodes; }
  void on_prune(const FunctionGraph&, const Apply&, std::string_view) override { --n_nodes; }
  int n_nodes = 0;
};

class Editor {
 public:
  explicit Editor(std::uint64_t seed)
      : random_(seed), is_known_(seed % 2 == 0), graph_(make_graph()) {
    counter_ = std::make_shared<Counter>();
    counter_->n_nodes = static_cast<int>(graph_.node_count());
    graph_.add_feature(counter_);
  }

  // Makes one edit and compares. Returns the difference, or nothing.
  std::string step() {
    const std::string before = state();
    bool failed = false;
    try {
      edit();
    } catch (const Error&) {
      failed = true;
      ++n_failed;
    }
    ++n_edits;
    if (failed && state() != before)
      return "an edit that failed left\n" + state() + "of\n" + before;
    if (counter_->n_nodes != static_cast<int>(graph_.node_count())) return "a feature lost count";
    const Inconsistency fault = graph_.check();
    if (fault) ++n_inconsistent;
    if (graph_.state().run_count() > 0) ++n_with_runs;
    if (fault.kind == InconsistencyKind::transaction) ++n_transactions;
    if (n_edits % 5 == 0) {
      const std::string wrong = ask();
      if (!wrong.empty()) return wrong + state();
    }
    std::string text = reference::difference(graph_);
    if (!text.empty()) text += "\n" + state();
    return text;
  }

  int n_edits = 0, n_failed = 0, n_inconsistent = 0, n_reverts = 0, n_possible = 0, n_refused = 0;
  int n_transactions = 0, n_with_runs = 0;

 private:
  std::size_t pick(std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_);
  }
  bool chance(double p) { return std::bernoulli_distribution(p)(random_); }

  TensorType type() const { return {DType::float64, {is_known_ ? 6 : kUnknown}, {}}; }

  Region region() {
    switch (pick(6)) {
      case 0:
        return Region::whole();
      case 1:
        return Region::unknown();
      case 2:
        return toy::slice(static_cast<index_t>(pick(2)) * 3, 3);
      case 3:
        return toy::slice(static_cast<index_t>(pick(2)), 3, 2);
      case 4:
        return is_known_ ? toy::slice(5, 6, -1) : toy::slice(4, 2, -2);
      default:
        return Region::lattice(static_cast<index_t>(pick(3)) * 8, {{2, 16}}, 8);
    }
  }

  // A new op each time: declarations are part of an op's identity.
  OpPtr random_op(std::size_t n_inputs) {
    toy::Spec spec;
    spec.serial = std::to_string(n_ops_++);
    const auto input = [&] { return static_cast<int>(pick(n_inputs)); };
    if (chance(0.15)) spec.n_outputs = 2;
    const bool is_wide = chance(0.02);  // like a loop with many states
    if (is_wide) spec.n_outputs = 9 + static_cast<int>(pick(4));
    for (int out = 0; out < spec.n_outputs; ++out) {
      const double kind = std::uniform_real_distribution<double>(0, is_wide ? 0.35 : 1)(random_);
      if (kind < 0.35) {
        AliasMap& map = kind < 0.2 ? spec.destroys : spec.views;
        map[out].insert(input());
        if (chance(joins_)) map[out].insert(input());
      }
    }
    for (const auto& [out, inputs] : spec.views) {
      for (int in : inputs) spec.view_regions.emplace(std::pair(out, in), region());
    }
    if (chance(0.03)) spec.destroyed.insert(input());
    if (chance(joins_ / 3) && spec.n_outputs >= 2) spec.output_aliases = {{0, 1}};
    std::set<int> overwritten = spec.destroyed;
    for (const auto& [out, inputs] : spec.destroys)
      overwritten.insert(inputs.begin(), inputs.end());
    for (int d : overwritten) {
      if (chance(0.4)) spec.write_regions.emplace(d, region());
      if (chance(0.3)) spec.same.emplace(d, input());
      if (chance(0.2)) spec.aliased.emplace(d, input());
    }
    if (chance(0.15)) spec.unread.insert(input());
    spec.can_fail = chance(can_fail_);
    spec.name = overwritten.empty() ? spec.views.empty() ? "P" : "V" : "W";
    spec.name += spec.serial;
    return toy::make(std::move(spec));
  }

  Variable random_variable(const std::vector<Variable>& from) {
    if (chance(0.05)) return constants_[pick(constants_.size())];
    return from[pick(from.size())];
  }

  // Overwrites a part of a value, then a part of the result, and so on. The value is not a view of
  // a part: regions of these ops reach beyond it.
  Variable random_chain(const std::vector<Variable>& from) {
    const Variable start = from[pick(from.size())];
    Variable v = start.is_root() ? start : toy::apply(toy::S, {constants_[0]});
    for (std::size_t n = 3 + pick(4); n > 0; --n) {
      toy::Spec spec{"C" + std::to_string(n_ops_), {}, {{0, {0}}}};
      spec.serial = std::to_string(n_ops_++);
      spec.can_fail = chance(can_fail_);
      if (chance(0.1)) spec.unread = {0};
      if (chance(0.05)) spec.view_regions.emplace(std::pair(0, 0), toy::slice(0, 5));
      spec.write_regions.emplace(0, toy::slice(static_cast<index_t>(pick(5)), 1 + chance(0.2)));
      const Variable part = chance(0.3)   ? random_part(v)
                            : chance(0.2) ? random_variable(from)
                                          : constants_[0];
      v = toy::apply(toy::make(spec), {v, part});
    }
    return v;
  }

  // A view of a part, or what is computed from one or from all.
  Variable random_part(const Variable& v) {
    Variable part = v;
    if (chance(0.8)) {
      toy::Spec spec{"Q" + std::to_string(n_ops_), {{0, {0}}}};
      spec.serial = std::to_string(n_ops_++);
      if (chance(0.7)) spec.unread = {0};
      spec.view_regions.emplace(std::pair(0, 0),
                                toy::slice(static_cast<index_t>(pick(5)), 1 + chance(0.2)));
      part = toy::apply(toy::make(spec), {v});
    }
    return chance(0.8) ? toy::apply(toy::S, {part}) : part;
  }

  Variable random_value(const std::vector<Variable>& from) {
    if (chance(chains_)) return random_chain(from);
    std::vector<Variable> inputs;
    const std::size_t n = 1 + pick(3);
    for (std::size_t i = 0; i < n; ++i) inputs.push_back(random_variable(from));
    const Apply node = random_op(n)->make_node(inputs);
    const Variable v = node.output(pick(node.output_count()));
    if (chance(0.02)) v.set_indestructible();
    return v;
  }

  FunctionGraph make_graph() {
    joins_ = chance(0.5) ? 0.2 : 0.0;
    can_fail_ = chance(0.5) ? 0.3 : 0.05;
    chains_ = chance(0.5) ? 0.25 : 0.0;
    std::vector<Variable> inputs;
    for (int i = 0; i < 3; ++i) inputs.push_back(make_input(type(), "x" + std::to_string(i)));
    for (int i = 0; i < 2; ++i) constants_.push_back(constant(Tensor::full<double>({6}, 1.0)));
    if (!is_known_) constants_ = {make_input(type(), "stranger")};
    std::vector<Variable> values = inputs;
    for (int i = 0; i < 6; ++i) values.push_back(random_value(inputs));
    std::vector<Variable> outputs;
    for (int i = 0; i < 2; ++i) outputs.push_back(toy::apply(toy::S, {values[3 + pick(6)]}));
    if (!is_known_) {  // its only root that is not an input must not be in the graph already
      outputs = {toy::apply(toy::S, {inputs[0]}), toy::apply(toy::A, {inputs[1], inputs[2]})};
    }
    return FunctionGraph(inputs, outputs, {.clone = false});
  }

  std::vector<Variable> variables() const {
    std::vector<Variable> list = graph_.inputs();
    for (const Apply& node : applications_of(graph_.outputs(), graph_.inputs())) {
      for (const Variable& v : node.outputs()) list.push_back(v);
    }
    return list;
  }

  void edit() {
    const std::vector<Variable> all = variables();
    const Variable old = all[pick(all.size())];
    if (graph_.node_count() > kMostNodes) {
      const Variable out = graph_.outputs()[pick(graph_.outputs().size())];
      graph_.replace(out, toy::apply(toy::S, {graph_.inputs()[pick(3)]}));
      return;
    }
    switch (pick(15)) {
      case 0:
        graph_.protect(old);
        return;
      case 1:
      case 2:
        graph_.unprotect(old);
        return;
      case 3:
        marks_.push_back(graph_.checkpoint());
        states_.push_back(state());
        return;
      case 4:
        revert();
        return;
      case 5:
        graph_.replace(old, random_variable(all));
        return;
      case 6:
        graph_.replace_validate(old, random_variable(all));
        return;
      case 7: {
        const std::vector<Use> uses = graph_.uses(old);
        if (!uses.empty()) graph_.redirect(uses[pick(uses.size())], random_value(all));
        return;
      }
      case 8: {
        const Variable other = all[pick(all.size())];
        const std::vector<std::pair<Variable, Variable>> pairs{{old, random_value(all)},
                                                               {other, random_value(all)}};
        if (chance(0.5)) {
          graph_.replace_all(pairs);
        } else {
          graph_.replace_all_validate(pairs);
        }
        return;
      }
      case 10:
        if (chance(0.8)) graph_.overwrite_last(graph_.inputs()[pick(3)]);
        return;
      case 9:
        if (chance(0.1)) graph_.replace(old, make_input({DType::float32, {6}, {}}));
        if (chance(0.05)) {
          graph_.commit();
          marks_.clear();
          states_.clear();
        }
        return;
      default:
        if (chance(0.5)) {
          graph_.replace(old, random_value(all));
        } else {
          graph_.replace_validate(old, random_value(all));
        }
    }
  }

  // Asks which inputs a node may overwrite, and compares with a replacement and the reference.
  std::string ask() {
    const std::vector<Apply> nodes = applications_of(graph_.outputs(), graph_.inputs());
    if (nodes.empty()) return {};
    const Apply node = nodes[pick(nodes.size())];
    const std::string before = state();
    const std::vector<InplaceCandidate> candidates = inplace_candidates(graph_, node);
    std::vector<int> all, possible;
    for (int i = 0; i < static_cast<int>(node.input_count()); ++i) all.push_back(i);
    for (const InplaceCandidate& c : candidates) {
      if (c.is_possible()) possible.push_back(c.input);
    }
    if (fast_inplace_check(graph_, node, all) != possible) return "fast_inplace_check differs\n";
    if (state() != before) return "a query changed the graph\n";
    for (const InplaceCandidate& c : candidates) {
      const Apply variant = c.op->make_node(node.inputs());
      std::vector<std::pair<Variable, Variable>> pairs;
      for (std::size_t k = 0; k < node.output_count(); ++k) {
        variant.output(k).set_indestructible(node.output(k).is_indestructible());
        pairs.emplace_back(node.output(k), variant.output(k));
      }
      const FunctionGraph::Token mark = graph_.checkpoint();
      graph_.replace_all(pairs);
      const InconsistencyKind truth = reference::analyse(graph_).kind;
      graph_.revert(mark);
      graph_.release(mark);
      ++(truth == InconsistencyKind::none ? n_possible : n_refused);
      if (c.refusal.kind != truth) {
        return "candidate " + std::to_string(c.input) + " of " + node.op().name() + ": got " +
               std::string(name_of(c.refusal.kind)) + ", expected " + std::string(name_of(truth)) +
               "\n";
      }
    }
    return {};
  }

  void revert() {
    if (marks_.empty()) return;
    const std::size_t k = pick(marks_.size());
    graph_.revert(marks_[k]);
    ++n_reverts;
    if (state() != states_[k])
      throw std::logic_error("revert gave\n" + state() + "of\n" + states_[k]);
    marks_.resize(k + 1);
    states_.resize(k + 1);
  }

  // The public state of the graph's structure.
  std::string state() const {
    std::map<const VariableNode*, std::string> names;
    std::string text;
    const auto name = [&](const Variable& v) -> const std::string& {
      std::string& n = names[v.node()];
      if (n.empty())
        n = v.is_root() ? v.is_constant() ? "c" + std::to_string(names.size()) : v.name()
                        : v.owner().op().name() + "." + std::to_string(v.index());
      return n;
    };
    std::vector<Variable> all = graph_.inputs();
    for (const Apply& node : applications_of(graph_.outputs(), graph_.inputs())) {
      text += node.op().str() + "(";
      for (const Variable& v : node.inputs()) text += name(v) + " ";
      text += ")\n";
      for (const Variable& v : node.outputs()) all.push_back(v);
    }
    for (const Variable& v : all) {
      text += name(v) + (graph_.is_protected(v) ? "! " : " ");
      if (graph_.is_overwritten_last(v)) text += "last ";
      for (const Use& use : graph_.uses(v)) {
        text +=
            (use.node.defined() ? use.node.op().name() : "out") + std::to_string(use.index) + " ";
      }
    }
    text += "|";
    for (const Variable& v : graph_.outputs()) text += " " + name(v);
    return text + " " + std::to_string(graph_.node_count()) + "\n";
  }

  std::mt19937_64 random_;
  bool is_known_;
  double joins_ = 0, can_fail_ = 0, chains_ = 0;
  int n_ops_ = 0;
  std::vector<Variable> constants_;
  FunctionGraph graph_;
  std::shared_ptr<Counter> counter_;
  std::vector<FunctionGraph::Token> marks_;
  std::vector<std::string> states_;
};

TEST(RandomEdits, AgreeWithTheReference) {
  int n_edits = 0, n_failed = 0, n_inconsistent = 0, n_reverts = 0, n_possible = 0, n_refused = 0;
  int n_transactions = 0, n_with_runs = 0;
  const int n = testing::longer(kEdits);
  for (std::uint64_t seed = 1; n_edits < n; ++seed) {
    Editor editor(seed);
    for (int i = 0; i < kEditsPerGraph; ++i) {
      const std::string text = editor.step();
      ASSERT_EQ(text, "") << "seed " << seed << ", edit " << i;
    }
    n_edits += editor.n_edits;
    n_failed += editor.n_failed;
    n_inconsistent += editor.n_inconsistent;
    n_reverts += editor.n_reverts;
    n_transactions += editor.n_transactions;
    n_with_runs += editor.n_with_runs;
    n_possible += editor.n_possible;
    n_refused += editor.n_refused;
  }
  // Every kind of event has its share.
  EXPECT_GT(n_failed, n_edits / 20);
  EXPECT_GT(n_reverts, n_edits / 50);
  EXPECT_GT(n_inconsistent, n_edits / 20);
  EXPECT_LT(n_inconsistent, n_edits * 19 / 20);
  EXPECT_GT(n_possible, 1000);
  EXPECT_GT(n_refused, 1000);
  EXPECT_GT(n_transactions, 1000);
  EXPECT_GT(n_with_runs, 1000);
  RecordProperty("failed", n_failed);
  RecordProperty("inconsistent", n_inconsistent);
  RecordProperty("with runs", n_with_runs);
}

}  // namespace
}  // namespace palimpsest
