// SPDX-License-Identifier: Apache-2.0
// Random functions of matrices with all kinds of layouts, in DebugMode: nothing is wrong, so
// nothing may be reported; in modes without reordered arithmetic, bits equal those of NoRewrite;
// and in no mode a byte beside a destination or an argument changes.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/inspect/debug/debug_mode.hpp"
#include "palimpsest/inspect/debug/monitor_mode.hpp"
#include "palimpsest/inspect/debug/nan_guard.hpp"
#include "palimpsest/inspect/print.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/long_run.hpp"
#include "support/window.hpp"

namespace palimpsest {
namespace {

class RandomMatrices {
 public:
  /// whole: results are the last values. parts: they may be parts of these.
  enum class Shown { whole, parts };
  explicit RandomMatrices(std::uint32_t seed, Shown shown = Shown::whole) : random_(seed) {
    static constexpr index_t kSizes[] = {2, 4, 5, 7, 17};  // products with and without a library
    n_ = kSizes[pick(5)];
    const TensorType type{DType::float64, {n_, n_}, {}};
    for (std::size_t i = 0, n = 1 + pick(3); i < n; ++i) {
      values_.push_back(make_input(type, "x" + std::to_string(i)));
      const bool is_lent = chance(40);
      ins_.push_back(In(values_.back(), {.is_mutable = is_lent, .borrow = is_lent}));
    }
    if (chance(30)) {
      shared_.push_back(shared(matrix(), {.name = "s"}));
      values_.push_back(shared_.back().var());
    }
    const Variable c = make_input({DType::bool_, {}, {}}, "c");
    ins_.push_back(c);
    for (std::size_t i = 0, n = 2 + pick(10); i < n; ++i) values_.push_back(step(c));
    for (std::size_t i = 0, n = 1 + pick(2); i < n; ++i) {
      const Variable& value = values_[values_.size() - 1 - i];
      results_.push_back(
          Out(shown == Shown::parts ? part_of(value) : value, {.borrow = chance(30)}));
    }
    if (!shared_.empty()) updates_.emplace_back(shared_[0], values_.back() * 0.125);
  }

  Function compiled(const Mode& mode) const {
    return function(ins_, results_,
                    {.updates = updates_, .mode = mode, .on_unused_input = Reaction::ignore});
  }
  // New arguments for each call, since it may overwrite lent ones.
  std::vector<Tensor> arguments() {
    std::vector<Tensor> result;
    for (std::size_t i = 0; i + 1 < ins_.size(); ++i) result.push_back(laid_out(matrix()));
    result.push_back(Tensor::full({}, chance(50)));
    return result;
  }
  std::vector<Tensor> call(const Function& f, const std::vector<Tensor>& arguments) const {
    std::vector<Tensor> given, results(f.output_count());
    for (const Tensor& t : arguments) given.push_back(copy_as_it_lies(t));
    f.call(given, results);
    for (Tensor& t : results) t = t.clone();
    return results;
  }
  // Calls into windows, and expects the results of a call and all other bytes of the user as they
  // were.
  void expect_writes_inside(const Function& f, const std::vector<Tensor>& arguments) {
    const Tensor before = state();
    set_state(before);  // dense in both calls: an update may leave it reversed, and sums differ
    const std::vector<Tensor> expected = call(f, arguments);
    const Tensor expected_state = state();
    set_state(before);
    std::vector<Tensor> given, around;
    for (const Tensor& t : arguments) {
      given.push_back(copy_as_it_lies(t));
      around.push_back(storage_bytes(given.back()));
    }
    testing::Windows windows;
    for (const Tensor& t : expected) {
      windows.add(t.shape(), t.dtype(), testing::window_layout(random_()));
    }
    std::vector<Tensor> outs = windows.tensors();
    const std::vector<Argument> all(given.begin(), given.end());
    f.call_into(outs, std::span<const Argument>(all));
    for (std::size_t k = 0; k < outs.size(); ++k) EXPECT_TRUE(equal(outs[k], expected[k])) << k;
    for (std::size_t i = 0; i < given.size(); ++i) {
      EXPECT_FALSE(first_change_beside(given[i], around[i])) << "argument " << i;
    }
    if (before.defined()) {
      EXPECT_TRUE(equal(state(), expected_state));
    }
  }
  Tensor state() const { return shared_.empty() ? Tensor() : shared_[0].get_value().clone(); }
  void set_state(const Tensor& value) {
    if (!shared_.empty()) shared_[0].set_value(value);
  }
  bool chance(int percent) { return static_cast<int>(random_() % 100) < percent; }

 private:
  std::size_t pick(std::size_t n) { return random_() % n; }
  const Variable& any() { return values_[pick(values_.size())]; }
  Tensor matrix() { return Tensor::random_normal({n_, n_}, DType::float64, {random_(), 0}); }

  Tensor laid_out(const Tensor& t) {
    const Axes first{0}, last{1};
    switch (pick(7)) {
      case 0:
        return t.flip(first);
      case 1:
        return t.flip(last);
      case 2:
        return t.transpose();
      case 3:
        return t(slice(0, 1)).expand({n_, n_});
      case 4: {
        Tensor wide = Tensor::zeros({n_, 2 * n_});
        wide(all, slice({}, {}, 2)).copy_from(t);
        return wide(all, slice({}, {}, 2));
      }
      case 5: {
        Tensor wide = Tensor::zeros({n_, n_ + 3});
        wide(all, slice(1, n_ + 1)).copy_from(t);
        return wide(all, slice(1, n_ + 1));
      }
      default:
        return t;
    }
  }
  // A copy with the same strides, inside a larger array.
  static Tensor copy_as_it_lies(const Tensor& t) {
    if (t.rank() == 0) return t.clone();
    index_t lowest = 0, highest = 0;
    for (std::size_t k = 0; k < t.rank(); ++k) {
      const index_t reach = t.strides()[k] * (t.shape()[k] - 1);
      (reach < 0 ? lowest : highest) += reach;
    }
    const index_t n = highest - lowest + 1;
    const Tensor whole = Tensor::full({3 * n}, -7.0);
    whole(slice(n, 2 * n)).copy_from(t.as_strided({n}, {1}, t.offset() + lowest));
    return whole.as_strided(t.shape(), t.strides(), n - lowest);
  }
  Variable part_of(const Variable& v) {
    const auto k = static_cast<index_t>(1 + pick(static_cast<std::size_t>(n_)));
    switch (pick(8)) {
      case 0:
      case 1:
        return v(slice(0, k));
      case 2:
        return v(slice(n_ - k, {}));
      case 3:
        return v(all, slice(0, k));
      case 4:
        return v(slice(0, k)).reshape({k * n_});
      case 5:
        return v(slice(k - 1, {}, -1));
      case 6:
        return v.T()(slice(0, k));
      default:
        return v;
    }
  }

  Variable step(const Variable& c) {
    const Variable a = any(), b = any();
    const index_t half = n_ / 2;
    switch (pick(20)) {
      case 0:
        return a + b;
      case 1:
        return a * b * 0.5;
      case 2:
        return -a;
      case 3:
        return ops::maximum(a, b) - 0.25;
      case 4:
        return ops::dot(a, b) * 0.2;
      case 5:
        return ops::dot(a.T(), b) * 0.2;
      case 6:
        return ops::dot(a, b) * 0.5 + any();
      case 7:
        return a.T();
      case 8:
        return a(slice({}, {}, -1));
      case 9:
        return a.T().reshape({n_ * n_}).reshape({n_, n_});
      case 10:
        return a + ops::sum(b, {.axes = Axes{0}}) * 0.25;
      case 11:
        return a - ops::reshape(ops::mean(b, {.axes = Axes{1}}), {n_, 1});
      case 12:
        return ops::set_subtensor(a, {slice(0, half)}, b(slice(0, half)));
      case 13:
        return ops::set_subtensor(a, {all, slice(half, {})}, b(all, slice(half, {})) * 2.0);
      case 14:
        return ops::inc_subtensor(a, {slice(0, half)}, b(slice(0, half)));
      case 15:
        return ops::ifelse(c, a, ops::set_subtensor(b, {slice(0, half)}, a(slice(0, half))));
      case 16:
        return ops::stack({a * 0.5, ops::dot(a, b) * 0.1}, 1)(all, static_cast<index_t>(1));
      case 17:
        return ops::join(1, {a(all, slice(0, half)), ops::sum(b) * 0.01 + b(all, slice(half, {}))});
      case 18:
        return ops::roll(ops::tanh(a), 1, 0);
      default:
        return -(-a);
    }
  }

  std::mt19937 random_;
  index_t n_ = 2;
  std::vector<Variable> values_;
  std::vector<In> ins_;
  std::vector<Out> results_;
  std::vector<SharedVariable> shared_;
  Updates updates_;
};

std::string text_of(const Function& f) { return debugprint(f, {.print_type = true}); }

TEST(RandomFunctions, GiveNoAlarmInDebugMode) {
  const int n = testing::longer_unless_sanitized(600);
  for (int seed = 0; seed < n; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomMatrices program(static_cast<std::uint32_t>(seed));
    const Mode base = seed % 5 == 0 ? FastRun().exact() : FastRun();
    const Function f = program.compiled(DebugMode({.base = base, .patience = 1}));
    try {
      for (int call = 0; call < 2; ++call) program.call(f, program.arguments());
    } catch (const Error& error) {
      FAIL() << error.what() << "\n" << text_of(f);
    }
  }
}

// Two duplicates were merged; then the inputs of the remaining one were replaced by values equal up
// to rounding.
TEST(RandomFunctions, AMergeWhoseInputsWereRewrittenLaterIsNoAlarm) {
  RandomMatrices program(37626);
  const Function f = program.compiled(DebugMode({.base = FastRun(), .patience = 1}));
  for (int call = 0; call < 2; ++call) {
    EXPECT_NO_THROW(program.call(f, program.arguments())) << text_of(f);
  }
}

// A product of columns that sum to zero with a matrix of equal rows.
TEST(RandomFunctions, AProductWhoseTermsCancelIsNoAlarm) {
  RandomMatrices program(83051);
  const Function f = program.compiled(DebugMode({.base = FastRun(), .patience = 1}));
  for (int call = 0; call < 2; ++call) {
    EXPECT_NO_THROW(program.call(f, program.arguments())) << text_of(f);
  }
}

TEST(RandomFunctions, WriteInsideTheirDestinationsInAllModes) {
  const int n = testing::longer_unless_sanitized(2000);
  // A value may be big or infinite.
  const NanGuardOptions any{.nan_is_error = false, .inf_is_error = false, .big_is_error = false};
  const Mode modes[] = {FastRun(),
                        NoRewrite(),
                        FastCompile(),
                        FastRun().exact(),
                        NanGuardMode(any),
                        MonitorMode({}),
                        DebugMode({.patience = 1, .preallocated = {}})};
  for (int seed = 0; seed < n; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomMatrices program(static_cast<std::uint32_t>(seed), RandomMatrices::Shown::parts);
    const Function f = program.compiled(modes[static_cast<std::size_t>(seed) % std::size(modes)]);
    for (int call = 0; call < 2; ++call) program.expect_writes_inside(f, program.arguments());
    ASSERT_FALSE(HasFailure()) << text_of(f);
  }
}

TEST(RandomFunctions, GiveTheBitsOfNoRewriteInExactModes) {
  const int n = testing::longer_unless_sanitized(4000);
  for (int seed = 0; seed < n; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomMatrices program(static_cast<std::uint32_t>(seed));
    const Function plain = program.compiled(NoRewrite());
    const Function exact =
        program.compiled(seed % 2 == 0 ? FastRun().exact() : FastCompile().exact());
    for (int call = 0; call < 2; ++call) {
      const std::vector<Tensor> arguments = program.arguments();
      const Tensor before = program.state();
      const std::vector<Tensor> expected = program.call(plain, arguments);
      const Tensor expected_state = program.state();
      program.set_state(before);
      const std::vector<Tensor> got = program.call(exact, arguments);
      for (std::size_t k = 0; k < got.size(); ++k) {
        ASSERT_TRUE(equal(got[k], expected[k])) << text_of(exact);
      }
      if (before.defined()) {
        ASSERT_TRUE(equal(program.state(), expected_state));
      }
    }
  }
}

}  // namespace
}  // namespace palimpsest
