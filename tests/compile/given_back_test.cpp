// SPDX-License-Identifier: Apache-2.0
// Random programs of calls whose results, including borrowed ones, are passed again as arguments,
// destinations and values of shared variables. The model is plain arrays: it reads the user's
// tensors before a call and predicts them afterwards, as if the call had copied everything first.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/inspect/debug/debug_mode.hpp"
#include "palimpsest/inspect/debug/nan_guard.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/long_run.hpp"

namespace palimpsest {
namespace {

constexpr std::size_t kSize = 4, kStates = 3;
using Vec = std::array<double, kSize>;  // whole numbers, so that sums are exact in any order

Vec read(const Tensor& t) {
  Vec result;
  const auto* const data = t.data<double>();
  for (std::size_t i = 0; i < kSize; ++i) {
    result[i] = data[static_cast<index_t>(i) * t.strides()[0]];
  }
  return result;
}

Tensor reversed(const Tensor& t) { return t(slice({}, {}, -1)); }

// The inputs of a program: two arguments, then the shared variables.
using Roots = std::array<Vec, 2 + kStates>;

// A value as a graph and as plain arithmetic.
struct Value {
  Variable v;
  std::function<Vec(const Roots&)> run;
};

Value mapped(const Value& a, const Variable& v, Vec (*f)(const Vec&)) {
  return {v, [run = a.run, f](const Roots& roots) { return f(run(roots)); }};
}

Value zipped(const Value& a, const Value& b, const Variable& v, Vec (*f)(const Vec&, const Vec&)) {
  return {v, [x = a.run, y = b.run, f](const Roots& roots) { return f(x(roots), y(roots)); }};
}

Vec rolled(const Vec& a) { return {a[3], a[0], a[1], a[2]}; }
Vec flipped(const Vec& a) { return {a[3], a[2], a[1], a[0]}; }
Vec summed_up(const Vec& a) {
  return {a[0], a[0] + a[1], a[0] + a[1] + a[2], a[0] + a[1] + a[2] + a[3]};
}
Vec negative(const Vec& a) { return {-a[0], -a[1], -a[2], -a[3]}; }
Vec sum(const Vec& a, const Vec& b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]}; }
Vec with_middle(const Vec& a, const Vec& b) { return {a[0], b[0], b[1], a[3]}; }
Vec woven(const Vec& a, const Vec& b) { return {a[2], a[3], b[0], b[1]}; }
Vec chosen(const Vec& a, const Vec& b) { return a[0] + a[1] + a[2] + a[3] > 0 ? a : b; }

struct Rng {
  std::mt19937 random;
  std::size_t pick(std::size_t n) { return random() % n; }
  bool chance(int percent) { return static_cast<int>(random() % 100) < percent; }
  Vec fresh() {
    Vec v;
    for (double& e : v) e = static_cast<double>(pick(9)) - 4;
    return v;
  }
};

Tensor tensor_of(const Vec& v) { return Tensor::from(std::vector<double>(v.begin(), v.end())); }

// -- functions -----------------------------------------------------------------------------------

struct Compiled {
  std::vector<Function> handles;  // the function and copies that share its memory
  std::vector<Value> outputs;
  std::array<std::optional<Value>, kStates> updates;
  std::vector<bool> is_borrowed;
  std::array<bool, 2> is_lent;
  std::array<bool, kStates> is_known;  // reads or updates the shared variable
  bool may_write_frames = true;        // may the user write its borrowed results?
};

class Maker {
 public:
  Maker(Rng& rng, const std::vector<SharedVariable>& states) : rng_(rng), states_(states) {}

  Compiled make(const Mode& mode) {
    const Variable x = make_input({DType::float64, {kSize}, {}}, "x");
    const Variable y = make_input({DType::float64, {kSize}, {}}, "y");
    values_ = {root(x, 0), root(y, 1)};
    for (std::size_t s = 0; s < kStates; ++s) values_.push_back(root(states_[s].var(), 2 + s));
    for (std::size_t i = 0, n = rng_.pick(5); i < n; ++i) values_.push_back(operation());
    Compiled made;
    std::vector<In> ins;
    for (std::size_t i = 0; i < 2; ++i) {
      made.is_lent[i] = rng_.chance(30);
      InOptions options;
      if (made.is_lent[i]) options.borrow = true;
      ins.push_back(In(i == 0 ? x : y, options));
    }
    std::vector<Out> outs;
    for (std::size_t i = 0, n = 1 + rng_.pick(3); i < n; ++i) {
      made.outputs.push_back(any());
      made.is_borrowed.push_back(rng_.chance(65));
      outs.push_back(Out(made.outputs.back().v, {.borrow = made.is_borrowed.back()}));
    }
    FunctionOptions options{.mode = mode, .on_unused_input = Reaction::ignore};
    for (std::size_t s = 0; s < kStates; ++s) {
      if (!rng_.chance(35)) continue;
      made.updates[s] = any();
      options.updates.emplace_back(states_[s], made.updates[s]->v);
      // An update to itself is not an update.
      if (made.updates[s]->v == states_[s].var()) made.updates[s].reset();
    }
    const Function f = function(ins, outs, options);
    made.handles = {f, f.copy({.share_memory = true})};
    const auto known = f.shared_variables();
    for (std::size_t s = 0; s < kStates; ++s) {
      made.is_known[s] =
          std::find(known.begin(), known.end(), states_[s].container_ptr()) != known.end();
    }
    return made;
  }

 private:
  static Value root(const Variable& v, std::size_t i) {
    return {v, [i](const Roots& roots) { return roots[i]; }};
  }
  Value any() { return values_[rng_.pick(values_.size())]; }

  Value operation() {
    const Value a = any(), b = any();
    switch (rng_.pick(9)) {
      case 0:
        return mapped(a, ops::roll(a.v, 1, 0), rolled);
      case 1:
        return mapped(a, ops::index(a.v, {slice({}, {}, -1)}), flipped);
      case 2:
        return mapped(a, ops::cumsum(a.v, 0), summed_up);
      case 3:
        return mapped(a, -a.v, negative);
      case 4:
        return zipped(a, b, a.v(slice(1, 3)).set(ops::index(b.v, {slice(0, 2)})), with_middle);
      case 5:
        return zipped(a, b,
                      ops::join(0, std::vector{ops::index(a.v, {slice(2, {})}),
                                               ops::index(b.v, {slice(0, 2)})}),
                      woven);
      case 6:
        return zipped(a, b, ops::ifelse(ops::gt(ops::sum(a.v), 0.0), a.v, b.v), chosen);
      default:
        return zipped(a, b, a.v + b.v, sum);
    }
  }

  Rng& rng_;
  const std::vector<SharedVariable>& states_;
  std::vector<Value> values_;
};

// -- programs ------------------------------------------------------------------------------------

// A tensor that the user holds.
struct Held {
  Tensor t;
  Vec value;
  const Compiled* lender = nullptr;  // its next call may change the tensor; null: none does
};

class Program {
 public:
  Program(Rng& rng, std::vector<SharedVariable>& states, const std::vector<Compiled>& functions)
      : rng_(rng), states_(states), functions_(functions) {
    for (std::size_t s = 0; s < kStates; ++s) {
      model_[s] = rng_.fresh();
      states_[s].set_value(tensor_of(model_[s]));
    }
    base_ = Tensor::from(std::vector<double>(kBase, 1.0));
  }

  void run() {
    for (std::size_t i = 0, n = 2 + rng_.pick(4); i < n; ++i) {
      if (rng_.chance(75)) {
        call(functions_[rng_.pick(functions_.size())]);
      } else {
        set_state();
      }
      check();
      if (::testing::Test::HasFailure()) return;
    }
  }

 private:
  static constexpr std::size_t kBase = 12;

  // A tensor to pass: new, held, part of an array, or the value of a shared variable.
  Tensor any_tensor() {
    Tensor t;
    switch (rng_.pick(6)) {
      case 0:
        t = tensor_of(rng_.fresh());
        break;
      case 1: {
        const auto first = static_cast<index_t>(rng_.pick(kBase - kSize));
        t = base_(slice(first, first + static_cast<index_t>(kSize)));
        break;
      }
      case 2:
        t = base_(slice(static_cast<index_t>(rng_.pick(2)), 8, 2))(slice(0, kSize));
        if (t.numel() != static_cast<index_t>(kSize)) t = base_(slice(0, 8, 2));
        break;
      case 3:
        t = states_[rng_.pick(kStates)].get_value({.borrow = true});
        break;
      default:
        t = held_.empty() ? tensor_of(rng_.fresh()) : held_[rng_.pick(held_.size())].t;
    }
    return rng_.chance(20) ? reversed(t) : t;
  }

  bool is_in_frame(const Tensor& t) const {
    return std::any_of(held_.begin(), held_.end(), [&](const Held& held) {
      return held.lender && !held.lender->may_write_frames && shares_storage(held.t, t);
    });
  }

  // A tensor that may be written: not a result that DebugMode watches.
  Tensor writable_tensor() {
    for (;;) {
      const Tensor t = any_tensor();
      if (!is_in_frame(t)) return t;
    }
  }

  bool meets_any(const Tensor& t, const std::vector<Tensor>& others) const {
    return std::any_of(others.begin(), others.end(),
                       [&](const Tensor& other) { return overlaps(t, other); });
  }

  void set_state() {
    const std::size_t s = rng_.pick(kStates);
    const Tensor t = any_tensor();
    const Vec value = read(t);
    const bool is_own = shares_storage(t, states_[s].container().value());
    switch (rng_.pick(4)) {
      case 0:
        states_[s].set_value(t);
        break;
      case 1:
        states_[s].exchange(t);
        break;
      default:
        states_[s].set_value(t, {.borrow = true});
        // A lent value is not used again.
        if (!is_own && shares_storage(t, states_[s].container().value())) forget(t);
    }
    model_[s] = value;
  }

  void forget(const Tensor& t) {
    std::erase_if(held_, [&](const Held& held) { return shares_storage(held.t, t); });
    if (shares_storage(base_, t)) base_ = base_.clone();
  }

  void call(const Compiled& f) {
    const std::array<Tensor, 2> arguments = {f.is_lent[0] ? writable_tensor() : any_tensor(),
                                             f.is_lent[1] ? writable_tensor() : any_tensor()};
    std::vector<Tensor> outs;
    const bool into = rng_.chance(45);
    if (into) {
      for (std::size_t i = 0; i < f.outputs.size(); ++i) outs.push_back(writable_tensor());
    }
    const Roots roots = {read(arguments[0]), read(arguments[1]), model_[0], model_[1], model_[2]};
    std::vector<Vec> expected;
    for (const Value& output : f.outputs) expected.push_back(output.run(roots));
    const Function& handle = f.handles[rng_.pick(f.handles.size())];
    if (into && are_meeting(outs)) {
      EXPECT_THROW(handle.call_into(outs, arguments[0], arguments[1]), AliasError);
      return;
    }
    note_effects(f, arguments, outs, expected, roots);
    std::vector<Tensor> results;
    if (into) {
      handle.call_into(outs, arguments[0], arguments[1]);
    } else {
      results.resize(expected.size());
      handle.call(arguments, results);
    }
    const std::vector<Tensor>& shown = into ? outs : results;
    for (std::size_t i = 0; i < shown.size(); ++i) {
      EXPECT_EQ(read(shown[i]), expected[i]) << (into ? "destination " : "result ") << i;
    }
    read_again();
    for (std::size_t i = 0; i < results.size(); ++i) {
      // A result may be a lent argument, and so change with it.
      const bool is_argument =
          shares_storage(results[i], arguments[0]) || shares_storage(results[i], arguments[1]);
      if (!is_argument) keep(f, results[i], i);
    }
  }

  bool are_meeting(const std::vector<Tensor>& outs) const {
    for (std::size_t i = 0; i < outs.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (overlaps(outs[i], outs[j])) return true;
      }
    }
    return false;
  }

  // Predicts the user's memory and the shared variables. Values that a loan or a later call leaves
  // open are read again, or forgotten.
  void note_effects(const Compiled& f, const std::array<Tensor, 2>& arguments,
                    const std::vector<Tensor>& outs, const std::vector<Vec>& expected,
                    const Roots& roots) {
    std::vector<Tensor> lent;
    for (std::size_t i = 0; i < 2; ++i) {
      if (f.is_lent[i]) lent.push_back(arguments[i]);
    }
    open_.clear();
    open_states_ = {};
    for (std::size_t s = 0; s < kStates; ++s) {
      const Tensor inside = states_[s].container().value();
      if (f.updates[s]) {
        model_[s] = f.updates[s]->run(roots);
        continue;
      }
      if (!f.is_known[s] && meets_any(inside, lent)) open_states_[s] = true;
      for (std::size_t i = 0; i < outs.size(); ++i) {
        if (overlaps(inside, outs[i])) write(model_[s], inside, outs[i], expected[i]);
      }
    }
    std::erase_if(held_, [&](const Held& held) {
      return held.lender == &f || meets_any(held.t, lent) || is_inside_of_state(held.t);
    });
    for (Held& held : held_) {
      if (meets_any(held.t, outs)) open_.push_back(&held);
    }
    is_base_open_ = meets_any(base_, lent) || meets_any(base_, outs);
  }

  bool is_inside_of_state(const Tensor& t) const {
    return std::any_of(states_.begin(), states_.end(), [&](const SharedVariable& s) {
      return shares_storage(t, s.container().value());
    });
  }

  // Writes the elements of `part`, a view of `whole`, to the model.
  static void write(Vec& model, const Tensor& whole, const Tensor& part, const Vec& values) {
    const auto* const first = whole.data<double>();
    for (std::size_t i = 0; i < kSize; ++i) {
      for (std::size_t j = 0; j < kSize; ++j) {
        const auto* const there = part.data<double>() + static_cast<index_t>(j) * part.strides()[0];
        if (first + static_cast<index_t>(i) * whole.strides()[0] == there) model[i] = values[j];
      }
    }
  }

  void read_again() {
    for (Held* held : open_) held->value = read(held->t);
    for (std::size_t s = 0; s < kStates; ++s) {
      if (open_states_[s]) model_[s] = read(states_[s].container().value());
    }
    if (is_base_open_ || base_model_.empty()) base_model_ = base_.to_vector<double>();
  }

  void keep(const Compiled& f, const Tensor& t, std::size_t i) {
    if (is_inside_of_state(t)) {
      EXPECT_TRUE(f.is_borrowed[i]) << "a result in a container";
      return;
    }
    if (shares_storage(t, base_)) return;
    if (held_.size() == kMostHeld) held_.erase(held_.begin());
    held_.push_back({t, read(t), f.is_borrowed[i] ? &f : nullptr});
  }

  void check() const {
    for (std::size_t s = 0; s < kStates; ++s) {
      EXPECT_EQ(read(states_[s].get_value()), model_[s]) << "shared variable " << s;
      for (std::size_t r = 0; r < s; ++r) {
        EXPECT_FALSE(
            shares_storage(states_[s].container().value(), states_[r].container().value()));
      }
    }
    for (const Held& held : held_) EXPECT_EQ(read(held.t), held.value) << "held by the user";
    if (!base_model_.empty()) {
      EXPECT_EQ(base_.to_vector<double>(), base_model_) << "array around arguments";
    }
  }

  static constexpr std::size_t kMostHeld = 5;

  Rng& rng_;
  std::vector<SharedVariable>& states_;
  const std::vector<Compiled>& functions_;
  std::array<Vec, kStates> model_;
  std::vector<Held> held_;
  Tensor base_;
  std::vector<double> base_model_;
  // For the current call.
  std::vector<Held*> open_;
  std::array<bool, kStates> open_states_ = {};
  bool is_base_open_ = false;
};

void run_programs(const std::vector<Mode>& modes, int n_functions, int n_programs,
                  bool may_write_frames) {
  Rng rng{std::mt19937(n_functions)};
  std::vector<SharedVariable> states;
  for (std::size_t s = 0; s < kStates; ++s) {
    states.push_back(SharedVariable(TensorType{DType::float64, {kSize}, {}}, tensor_of(rng.fresh()),
                                    {.name = "s" + std::to_string(s), .shape = {}}));
  }
  std::vector<Compiled> functions;
  for (int i = 0; i < n_functions; ++i) {
    functions.push_back(Maker(rng, states).make(modes[static_cast<std::size_t>(i) % modes.size()]));
    functions.back().may_write_frames = may_write_frames;
  }
  for (int i = 0; i < n_programs; ++i) {
    rng.random.seed(static_cast<std::uint32_t>(i));
    Program(rng, states, functions).run();
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << i;
  }
}

TEST(GivenBack, ResultsEqualThoseOfCallsWithCopies) {
  run_programs({FastRun(), FastCompile(), NoRewrite(), NanGuardMode()}, 120,
               testing::longer_unless_sanitized(100000), true);
}

TEST(GivenBack, ResultsEqualThoseOfCallsWithCopiesInDebugMode) {
  run_programs({DebugMode({.patience = 1})}, 20, testing::longer_unless_sanitized(200), false);
}

}  // namespace
}  // namespace palimpsest
