// SPDX-License-Identifier: Apache-2.0
// Random programs: a function compiled with random options gives the values, and leaves the user's
// memory, as an interpreter that copies everything does. Some calls write into windows of larger
// arrays.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <vector>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/long_run.hpp"
#include "support/window.hpp"

namespace palimpsest {
namespace {

constexpr int kPrograms = 10000;

// -- the interpreter -----------------------------------------------------------------------------

// Runs every op by itself on dense copies of its inputs.
class Interpreter {
 public:
  void bind(const Variable& v, const Tensor& value) { values_[v.node()] = value.clone(); }
  /// Replaces `old` by the value of `with` from now on.
  void replace(const Variable& old, const Variable& with) { values_[old.node()] = value_of(with); }

  Tensor value_of(const Variable& v) {
    const auto known = values_.find(v.node());
    if (known != values_.end()) return known->second;
    if (v.is_constant()) return v.constant_value().clone();
    for (const Apply& node : applications_of({&v, 1})) {
      if (values_.contains(node.output(0).node())) continue;
      run(node);
    }
    return values_.at(v.node());
  }

 private:
  void run(const Apply& node) {
    std::vector<Tensor> inputs, outputs;
    std::vector<ConstView> in;
    std::vector<MutableView> out;
    std::vector<Extents> extents;
    std::vector<Layout> layouts;
    for (const Variable& v : node.inputs()) {
      const auto known = values_.find(v.node());
      if (known == values_.end() && !v.is_constant()) return;  // beyond a replaced variable
      inputs.push_back(v.is_constant() ? v.constant_value().clone() : known->second.clone());
      extents.push_back(inputs.back().shape());
      layouts.push_back(Layout::dense(v.dtype(), inputs.back().shape()));
    }
    const std::vector<Extents> shapes = node.op().infer_shapes(node, extents);
    for (std::size_t k = 0; k < node.output_count(); ++k) {
      outputs.push_back(Tensor::empty(shapes[k], node.output(k).dtype()));
    }
    for (const Tensor& t : inputs) in.push_back(t.view_of());
    for (Tensor& t : outputs) out.push_back(t.mutable_view());
    Tensor scratch =
        Tensor::empty({static_cast<index_t>(node.op().scratch_bytes(node, layouts))}, DType::uint8);
    RunContext context(in, out,
                       {static_cast<std::byte*>(scratch.raw_mutable_data()),
                        static_cast<std::size_t>(scratch.nbytes())});
    node.op().run(context);
    for (std::size_t k = 0; k < node.output_count(); ++k) {
      values_[node.output(k).node()] = outputs[k];
    }
  }

  std::map<const VariableNode*, Tensor> values_;
};

// -- programs ------------------------------------------------------------------------------------

class Program {
 public:
  explicit Program(std::uint32_t seed) : random_(seed), n_(static_cast<index_t>(1 + pick(5))) {
    make_roots();
    make_graph();
    choose_options();
    function_ = function(ins_, outs_, options_);
  }

  void run() {
    for (int call = 0; call < 3; ++call) {
      change_containers();
      one_call();
      if (::testing::Test::HasFailure()) return;
    }
  }

  // A description of the function, to find the cause of a failure.
  std::string describe() const {
    std::string text = "n = " + std::to_string(n_) + "; lent:";
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (is_lent_[i]) text += " " + inputs_[i].str();
    }
    text += "; borrowed results:";
    for (std::size_t i = 0; i < outs_.size(); ++i) {
      if (outs_[i].options.borrow) text += " " + std::to_string(i);
    }
    text += "; updates of:";
    for (const auto& [target, value] : options_.updates) text += " " + target.str();
    text += "; givens for:";
    for (const auto& [old, with] : options_.givens) text += " " + old.str();
    std::vector<Variable> roots = inputs_, results;
    for (const SharedVariable& s : shared_) roots.push_back(s.var());
    for (const Out& out : outs_) results.push_back(out.variable);
    for (const auto& [target, value] : options_.updates) results.push_back(value.variable());
    return text + "\n  " + FunctionGraph(roots, results).str() + "\n  " + function_.graph().str();
  }

 private:
  std::size_t pick(std::size_t n) { return random_() % n; }
  bool chance(int percent) { return static_cast<int>(random_() % 100) < percent; }
  const Variable& any_value() { return values_[pick(values_.size())]; }
  Tensor fresh() { return Tensor::random_normal({n_}, DType::float64, {random_(), 0}); }

  void make_roots() {
    const TensorType type{DType::float64, {n_}, {}};
    for (std::size_t i = 0, n = 1 + pick(3); i < n; ++i) {
      inputs_.push_back(make_input(type, "x" + std::to_string(i)));
    }
    for (std::size_t i = 0, n = pick(4); i < n; ++i) {
      const Tensor value = fresh();
      shared_.push_back(SharedVariable(
          type, value, {.name = "s" + std::to_string(i), .borrow = chance(40), .shape = {}}));
      if (chance(50)) lent_.push_back(value);
    }
    values_ = inputs_;
    for (const SharedVariable& s : shared_) values_.push_back(s.var());
  }

  Variable random_op() {
    const Variable a = any_value(), b = any_value();
    switch (pick(11)) {
      case 0:
        return a + b;
      case 1:
        return a * b;
      case 2:
        return a - b * 0.5;
      case 3:
        return -a;
      case 4:
        return ops::roll(a, 1, 0);
      case 5:
        return ops::index(a, {slice({}, {}, -1)});
      case 6:
        return ops::reshape(ops::reshape(a, {n_, 1}), {n_});
      case 7:
        return a + ops::broadcast_to(ops::reshape(ops::max(b), {1}), {n_});
      case 8:
        return ops::broadcast_to(ops::index(a, {slice(0, 1)}), {n_});
      case 9: {
        const index_t cut = static_cast<index_t>(pick(static_cast<std::size_t>(n_) + 1));
        return ops::join(
            0, std::vector{ops::index(a, {slice(cut, {})}), ops::index(b, {slice(0, cut)})});
      }
      default:
        return ops::maximum(a, b);
    }
  }

  void make_graph() {
    for (std::size_t i = 0, n = pick(12); i < n; ++i) values_.push_back(random_op());
  }

  void choose_options() {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      InOptions options;
      if (chance(50)) options.borrow = true;
      if (chance(30)) options.is_mutable = options.borrow.has_value() && chance(50);
      if (chance(15)) options.value = fresh();
      is_lent_.push_back(options.is_mutable.value_or(options.borrow.value_or(false)));
      has_default_.push_back(options.value.defined());
      ins_.push_back(In(inputs_[i], options));
    }
    for (std::size_t i = 0, n = pick(4); i < n; ++i) {
      Variable v = any_value();
      if (chance(15)) v = ops::index(v, {slice(0, 1)});
      if (chance(5)) v = constant(fresh());
      outs_.push_back(Out(v, {.borrow = chance(40)}));
    }
    for (const SharedVariable& s : shared_) {
      if (chance(60)) options_.updates.emplace_back(s, any_value());
    }
    if (chance(20) && values_.size() > inputs_.size() + shared_.size()) choose_given();
    options_.on_unused_input = Reaction::ignore;
    options_.mode = FastRun().exact();  // results are compared bit for bit
    if (chance(10)) options_.mode = NoRewrite();
    if (chance(10)) options_.mode = FastCompile().exact();
  }

  // A computed value or shared variable is replaced by one that does not depend on it.
  void choose_given() {
    const std::size_t first = inputs_.size();
    const std::size_t old = first + pick(values_.size() - first);
    const Variable with = chance(30) ? constant(fresh()) : values_[pick(old)];
    if (values_[old] == with) return;
    for (const Variable& v : inputs_) {
      if (v == values_[old]) return;
    }
    options_.givens.emplace_back(values_[old], with);
  }

  // -- a call ------------------------------------------------------------------------------------

  void change_containers() {
    for (SharedVariable& s : shared_) {
      if (chance(20)) {
        const Tensor value = fresh();
        s.set_value(value, {.borrow = chance(50)});
        if (chance(50)) lent_.push_back(value);
      }
      if (chance(20)) clones_.emplace_back(s.get_value(), s.get_value().clone());
    }
  }

  // Arguments that share memory in every way.
  Tensor argument(const std::vector<Tensor>& before) {
    switch (pick(9)) {
      case 0:
        if (!before.empty()) return before[pick(before.size())];
        return fresh();
      case 1: {
        const Tensor base = Tensor::random_normal({2 * n_}, DType::float64, {random_(), 0});
        bases_.push_back(base);
        return base(slice({}, {}, 2));
      }
      case 2:
        if (bases_.empty()) return fresh();
        return bases_[pick(bases_.size())](slice(1, {}, 2));
      case 3:
        if (bases_.empty()) return fresh();
        return bases_[pick(bases_.size())](slice(0, n_));
      case 4: {
        const Tensor value = fresh();
        clones_.emplace_back(value.lazy_clone(), value.clone());
        return value;
      }
      case 5:
        return fresh()(slice({}, {}, -1));
      case 6:
        return Tensor::random_normal({1}, DType::float64, {random_(), 0}).expand({n_});
      case 7: {
        auto memory = std::make_shared<std::vector<double>>(fresh().to_vector<double>());
        return Tensor::from_blob(
            memory->data(), DType::float64, {n_}, {1}, [memory] {}, chance(50));
      }
      default:
        if (shared_.empty()) return fresh();
        return shared_[pick(shared_.size())].get_value({.borrow = true});
    }
  }

  void one_call() {
    std::vector<Tensor> arguments;
    std::vector<bool> given;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      arguments.push_back(argument(arguments));
      given.push_back(!has_default_[i] || chance(50));
    }
    // The interpreter's results, from copies taken before the call.
    Interpreter interpreter;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      interpreter.bind(inputs_[i],
                       given[i] ? arguments[i] : function_.container(inputs_[i]).value());
    }
    for (const SharedVariable& s : shared_) interpreter.bind(s, s.get_value());
    for (const auto& [old, with] : options_.givens) interpreter.replace(old, with.variable());
    std::vector<Tensor> expected, expected_state;
    for (const Out& out : outs_) expected.push_back(interpreter.value_of(out.variable));
    expected_state = states();
    for (const auto& [target, value] : options_.updates) {
      for (std::size_t k = 0; k < shared_.size(); ++k) {
        const bool is_target = container_of(target) == shared_[k].container_ptr();
        if (is_target) expected_state[k] = interpreter.value_of(value.variable());
      }
    }
    const std::vector<Tensor> untouched = unlent(arguments, given);
    std::vector<Tensor> untouched_before;
    for (const Tensor& t : untouched) untouched_before.push_back(t.clone());
    const std::vector<Tensor> outside = outside_of_loans(arguments), of_defaults = defaults();

    const std::vector<bool> is_workspace = containers_lent(arguments, given);

    const std::vector<Tensor> results =
        chance(40) ? call_into_windows(arguments, given, expected) : call(arguments, given);

    for (std::size_t k = 0; k < shared_.size(); ++k) {
      if (is_workspace[k]) expected_state[k] = shared_[k].get_value().clone();
    }
    ASSERT_EQ(results.size(), expected.size());
    expect_same(results, expected, "result");
    check_states(expected_state, "after the call");
    expect_same(untouched, untouched_before, "argument that is not lent");
    expect_same(outside_of_loans(arguments), outside, "array around a loan");
    expect_same(defaults(), of_defaults, "default value");
    check_kept();
    check_independence(results);
    write_results(results, expected_state);
  }

  // Into windows that are checked now, and when the program ends.
  std::vector<Tensor> call_into_windows(const std::vector<Tensor>& arguments,
                                        const std::vector<bool>& given,
                                        const std::vector<Tensor>& expected) {
    std::vector<Keyword> keywords;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (given[i]) keywords.push_back(kw(inputs_[i], arguments[i]));
    }
    testing::Windows& windows = windows_.emplace_back();
    for (const Tensor& t : expected) {
      windows.add(t.shape(), t.dtype(), testing::window_layout(random_()));
    }
    std::vector<Tensor> outs = windows.tensors();
    const std::vector<Argument> all(keywords.begin(), keywords.end());
    function_.call_into(outs, std::span<const Argument>(all));
    windows.expect_intact();
    return outs;
  }

  std::vector<Tensor> call(const std::vector<Tensor>& arguments, const std::vector<bool>& given) {
    std::vector<std::unique_ptr<Keyword>> keywords;
    const auto missing = std::find(given.begin(), given.end(), false) - given.begin();
    // Positional up to the first that is not given; then by variable.
    const auto n = static_cast<std::size_t>(missing);
    const auto k = [&](std::size_t i) { return kw(inputs_[i], arguments[i]); };
    if (n == inputs_.size()) {
      std::vector<Tensor> results(outs_.size());
      function_.call(arguments, results);
      return results;
    }
    const bool last = inputs_.size() == 3 && given[2], middle = inputs_.size() >= 2 && given[1];
    if (n == 0 && middle && last) return function_(k(1), k(2));
    if (n == 0 && middle) return function_(k(1));
    if (n == 0 && last) return function_(k(2));
    if (n == 0) return function_();
    if (n == 1 && last) return function_(arguments[0], k(2));
    if (n == 1) return function_(arguments[0]);
    return function_(arguments[0], arguments[1]);
  }

  std::vector<Tensor> states() const {
    std::vector<Tensor> result;
    for (const SharedVariable& s : shared_) result.push_back(s.get_value().clone());
    return result;
  }

  // Arguments that are not lent, whatever memory they share.
  std::vector<Tensor> unlent(const std::vector<Tensor>& arguments,
                             const std::vector<bool>& given) const {
    std::vector<Tensor> result;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (given[i] && !is_lent_[i]) result.push_back(arguments[i]);
    }
    return result;
  }

  // All arrays of the user, with zeros where an argument is lent.
  std::vector<Tensor> outside_of_loans(const std::vector<Tensor>& arguments) const {
    std::vector<Tensor> result;
    for (const Tensor& base : bases_) {
      Tensor copy = base.clone();
      for (std::size_t i = 0; i < arguments.size(); ++i) {
        const Tensor& t = arguments[i];
        if (!is_lent_[i] || !shares_storage(t, base)) continue;
        copy.as_strided(t.shape(), t.strides(), t.offset()).fill(0.0);
      }
      result.push_back(copy);
    }
    return result;
  }

  // Containers that the function does not use and whose memory the user lent as workspace.
  std::vector<bool> containers_lent(const std::vector<Tensor>& arguments,
                                    const std::vector<bool>& given) const {
    const auto known = function_.shared_variables();
    std::vector<bool> result;
    for (const SharedVariable& s : shared_) {
      bool lent = false;
      for (std::size_t i = 0; i < arguments.size(); ++i) {
        lent = lent || (given[i] && is_lent_[i] && overlaps(arguments[i], s.container().value()));
      }
      const bool is_known = std::find(known.begin(), known.end(), s.container_ptr()) != known.end();
      result.push_back(lent && !is_known);
    }
    return result;
  }

  std::vector<Tensor> defaults() const {
    std::vector<Tensor> result;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (has_default_[i]) result.push_back(function_.container(inputs_[i]).value().clone());
    }
    return result;
  }

  static void expect_same(const std::vector<Tensor>& now, const std::vector<Tensor>& before,
                          const char* what) {
    for (std::size_t i = 0; i < now.size(); ++i) {
      EXPECT_TRUE(equal(now[i].clone(), before[i])) << what << " " << i;
    }
  }

  void check_states(const std::vector<Tensor>& expected, const char* when) const {
    for (std::size_t k = 0; k < shared_.size(); ++k) {
      EXPECT_TRUE(equal(shared_[k].get_value().clone(), expected[k])) << "s" << k << " " << when;
      EXPECT_FALSE(has_internal_overlap(shared_[k].container().value()));
    }
  }

  void check_kept() const {
    for (const auto& [clone, copy] : clones_) EXPECT_TRUE(equal(clone.clone(), copy)) << "clone";
    for (const auto& [result, copy] : kept_) EXPECT_TRUE(equal(result.clone(), copy)) << "kept";
  }

  void check_independence(const std::vector<Tensor>& results) const {
    for (std::size_t i = 0; i < shared_.size(); ++i) {
      const Tensor value = shared_[i].container().value();
      for (std::size_t j = 0; j < i; ++j) {
        EXPECT_FALSE(shares_storage(value, shared_[j].container().value()));
      }
      for (std::size_t j = 0; j < results.size(); ++j) {
        if (outs_[j].options.borrow) continue;
        EXPECT_FALSE(shares_storage(value, results[j])) << "container and result";
      }
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (outs_[i].options.borrow || outs_[j].options.borrow) continue;
        EXPECT_FALSE(shares_storage(results[i], results[j])) << "two results";
      }
    }
  }

  // Writes of the user to a result must not reach anything else.
  void write_results(const std::vector<Tensor>& results, const std::vector<Tensor>& state) {
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (outs_[i].options.borrow || has_internal_overlap(results[i])) continue;
      Tensor result = results[i];
      if (chance(50)) result.fill(1e9);
      kept_.emplace_back(result, result.clone());
    }
    check_states(state, "after writing results");
    check_kept();
  }

  std::mt19937 random_;
  index_t n_;
  std::vector<Variable> inputs_, values_;
  std::vector<SharedVariable> shared_;
  std::vector<In> ins_;
  std::vector<Out> outs_;
  std::vector<bool> is_lent_, has_default_;
  FunctionOptions options_;
  Function function_;
  std::vector<Tensor> bases_, lent_;
  std::vector<std::pair<Tensor, Tensor>> clones_, kept_;  // each with its expected value
  std::vector<testing::Windows> windows_;
};

TEST(RandomPrograms, GiveWhatAnInterpreterGivesThatCopiesEverything) {
  const int n_programs = testing::longer(kPrograms);
  for (int i = 0; i < n_programs; ++i) {
    Program program(static_cast<std::uint32_t>(i));
    try {
      program.run();
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
    if (HasFailure()) {
      ADD_FAILURE() << "seed " << i << ": " << program.describe();
      return;
    }
  }
}

}  // namespace
}  // namespace palimpsest
