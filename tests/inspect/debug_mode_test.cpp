// SPDX-License-Identifier: Apache-2.0
// Functions in DebugMode give the results of the base mode and find faults of ops: each check fires
// on an op that violates exactly it.
#include "palimpsest/inspect/debug/debug_mode.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "inspect/liar_ops.hpp"
#include "palimpsest/base/log.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/inspect/debug/guarded_memory.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::apply_liar;
using testing::expect_error;
using testing::first_element;
using testing::Liar;
using testing::liar;
using testing::LiarSpec;

Mode all_patterns() { return DebugMode({.patience = 2, .preallocated = {"ALL"}}); }

struct DebugModeTest : ::testing::Test {
  Variable x = make_input({DType::float64, {kUnknown}, {}}, "x");
  Variable y = make_input({DType::float64, {kUnknown}, {}}, "y");
  Tensor a = Tensor::from(std::vector<double>{1, 2, 3, 4});
  Tensor b = Tensor::from(std::vector<double>{5, 6, 7, 8});

  template <class E>
  E error_of(const std::vector<In>& inputs, Outputs outputs, const std::vector<Tensor>& values,
             FunctionOptions options = {}) {
    if (!options.mode) options.mode = all_patterns();
    const Function f = function(inputs, std::move(outputs), options);
    std::vector<Tensor> results(f.output_count());
    try {
      f.call(values, results);
    } catch (const E& error) {
      EXPECT_TRUE(typeid(error) == typeid(E)) << typeid(error).name();
      return error;
    }
    throw std::runtime_error("no error");
  }
  static void expect_text(const std::exception& error, const std::string& text) {
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
};

// -- what is right -------------------------------------------------------------------------------

TEST_F(DebugModeTest, ABranchThatAConstantLeavesOutMayFail) {
  const Variable far = ops::assert_that(x, ops::gt(x, 100.0), "far");
  for (const bool holds : {true, false}) {
    const Variable v = ops::ifelse(constant(Tensor::scalar(holds)), x * 2.0, far);
    const Function f = function({x}, v, {.mode = all_patterns()});
    if (holds) {
      EXPECT_EQ(f(a).tensor().to_vector<double>(), (std::vector<double>{2, 4, 6, 8}));
    } else {
      EXPECT_THROW(f(a), AssertionError);
    }
  }
}

TEST_F(DebugModeTest, TheExampleOfTheSpecificationPasses) {
  const Variable v = ((2.0 * x) + 7.0) / 2.0;
  const Function f = function({x}, v, {.mode = all_patterns()}), plain = function({x}, v);
  for (int call = 0; call < 2; ++call) EXPECT_TRUE(equal(f(a).tensor(), plain(a).tensor()));
}

TEST_F(DebugModeTest, GivesListsAndUpdatesAsTheBaseModeDoes) {
  SharedVariable s = shared(b.clone(), {.name = "s"});
  const Function f =
      function({x}, {x, 2.0 * x, 3.0 * x},
               {.updates = {{s, ops::roll(s.var() + x, 1, 0)}}, .mode = all_patterns()});
  const Results results = f(a);
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[2].to_vector<double>(), (std::vector<double>{3, 6, 9, 12}));
  EXPECT_EQ(s.get_value().to_vector<double>(), (std::vector<double>{12, 6, 8, 10}));
  f(a);
  EXPECT_EQ(s.get_value().to_vector<double>(), (std::vector<double>{14, 13, 8, 11}));
}

TEST_F(DebugModeTest, WorksWithViewsInPlaceStepsAndBorrowedOutputs) {
  const Variable m = make_input({DType::float64, {kUnknown, kUnknown}, {}}, "m");
  const Variable t = ops::exp(m.T()(slice(1, {}), all)) * 0.5;
  const Function f = function({In(m, {.is_mutable = true, .borrow = true})},
                              {Out(t.sum({0}), {.borrow = true}), Out(ops::roll(t, 1, 1)), m * 3.0},
                              {.mode = all_patterns()});
  const Function plain = function({m}, {t.sum({0}), ops::roll(t, 1, 1), m * 3.0});
  const Tensor value = Tensor::random_normal({3, 4}, DType::float64, {1, 0});
  for (int call = 0; call < 3; ++call) {
    const Results got = f(value.clone()), expected = plain(value);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(allclose(got[i], expected[i], 1e-14, 1e-14));
  }
}

TEST_F(DebugModeTest, AnOpMayReturnItsSecondInputIfItSaysSo) {
  const LiarSpec spec{.views = {{0, {1}}},
                      .view_layout = [](const Layout& in) { return in; },
                      .run = [](RunContext& c) { Liar::copy(c.input(1), c.output(0)); }};
  const Function f = function({x, y}, liar(spec, {x, y}) + 1.0, {.mode = all_patterns()});
  EXPECT_EQ(f(a, b).tensor().to_vector<double>(), (std::vector<double>{6, 7, 8, 9}));
}

TEST_F(DebugModeTest, ResultsWithoutElementsPass) {
  const Variable none = x(slice(2, 2));
  const std::vector<std::vector<Variable>> lists{{none},
                                                 {none, x * 2.0},
                                                 {Variable((x * 2.0)(slice(2, 2)))},
                                                 {-none},
                                                 {ops::roll(none, 1, 0), none},
                                                 {Variable(none(slice({}, {}, -1))), none},
                                                 {ops::cumsum(none), none}};
  for (const std::vector<Variable>& list : lists) {
    const Function f =
        function({x}, std::vector<Out>(list.begin(), list.end()), {.mode = all_patterns()});
    EXPECT_EQ(f(a)[0].shape(), Extents{0});
  }
  const Variable known = make_input({DType::float64, {0}, {}}, "known");
  const std::vector<Variable> parts{known, known(slice({}, {}, -1)), known * 2.0};
  function({In(known, {.is_mutable = true})}, std::vector<Out>(parts.begin(), parts.end()),
           {.mode = all_patterns()})(Tensor::zeros({0}));
}

TEST_F(DebugModeTest, ARowAndAColumnPassEveryPattern) {
  const Variable m = make_input({DType::float64, {3, 4}, {}}, "m");
  const LiarSpec spec{.outputs = 2,
                      .shapes =
                          [](std::span<const Extents> in) {
                            return std::vector<Extents>{{1, in[0][1]}, {in[0][0], 1}};
                          },
                      .run =
                          [](RunContext& c) {
                            for (const MutableView& out : c.outputs()) {
                              ConstView first = c.input(0);
                              first.extents = out.extents;
                              Liar::copy(first, out);
                            }
                          }};
  class RowAndColumn final : public Op {
   public:
    explicit RowAndColumn(LiarSpec s) : liar_(std::make_shared<const Liar>(std::move(s))) {}
    std::string name() const override { return "RowAndColumn"; }
    Apply make_node(std::span<const Variable> inputs) const override {
      const TensorType& t = inputs[0].type();
      return node(inputs, {{t.dtype, {1, t.shape[1]}, {}}, {t.dtype, {t.shape[0], 1}, {}}});
    }
    std::vector<Extents> infer_shapes(const Apply& n, std::span<const Extents> in) const override {
      return liar_->infer_shapes(n, in);
    }
    void run(RunContext& c) const override { liar_->run(c); }

   private:
    std::shared_ptr<const Liar> liar_;
  };
  const Variable inputs[] = {m};
  const auto outs = std::make_shared<const RowAndColumn>(spec)->make_node(inputs).outputs();
  const Function f = function({m}, {outs[0], outs[1]}, {.mode = all_patterns()});
  EXPECT_NO_THROW(f(Tensor::random_normal({3, 4}, DType::float64, {2, 0})));
}

TEST_F(DebugModeTest, CopiesOfFunctionsAreInTheModeToo) {
  SharedVariable s = shared(a.clone(), {.name = "s"});
  const Variable bad = liar({.run =
                                 [](RunContext& c) {
                                   Liar::copy(c.input(0), c.output(0));
                                   ++first_element(c.input(0));
                                 }},
                            {x});
  const Function f = function({x}, bad, {.updates = {{s, s.var() + 1.0}}, .mode = all_patterns()});
  EXPECT_THROW(f.copy()(a), BadDestroyMap);
  EXPECT_THROW(f.copy({.delete_updates = true})(a), BadDestroyMap);
}

TEST_F(DebugModeTest, TheConfigGivesModeAndDefaults) {
  const ConfigScope scope({.mode = "DebugMode", .debug_patience = 1});
  const Function f = function({x}, x + 1.0);
  expect_error<InvalidValueError>(
      [&] { f(Tensor::full({1}, std::numeric_limits<double>::infinity())); },
      "[DebugMode: InvalidValueError] argument 0 x: inf at (0,)");
  const ConfigScope lenient({.debug_check_finite = false});
  EXPECT_NO_THROW(
      function({x}, x + 1.0)(Tensor::full({1}, std::numeric_limits<double>::infinity())));
}

TEST_F(DebugModeTest, OptionsThatAreNoneAreRefused) {
  expect_error<ValueError>([] { DebugMode({.preallocated = {"odd"}}); },
                           "[DebugMode] preallocated: got 'odd', expected initial");
  expect_error<ValueError>([] { DebugMode({.patience = 0}); }, "patience: got 0");
  expect_error<ValueError>([] { DebugMode({.preallocated_ndim = -1}); }, "preallocated_ndim");
  expect_error<ValueError>([] { DebugMode({.guard_pages = "maybe"}); }, "guard_pages");
  expect_error<ValueError>([] { DebugMode({.check_branches = "none"}); }, "check_branches");
}

TEST_F(DebugModeTest, ProfilesCountTheProductionPassAlone) {
  const ConfigScope scope({.profile = true, .profile_memory = true});
  const Function f = function({x}, ops::roll(x * 2.0, 1, 0) + x, {.mode = all_patterns()});
  f(a);
  f(a);
  const Profile profile = f.profile();
  EXPECT_GT(profile.check_seconds, 0);
  EXPECT_GT(profile.check_seconds, 10 * profile.step_seconds);
  EXPECT_EQ(profile.plans.at(0).measured_peak_bytes, profile.plans.at(0).peak_bytes);
  EXPECT_NE(profile.summary().find("ms in checks"), std::string::npos);
}

// -- 1, 2, 9: values and exceptions --------------------------------------------------------------

TEST_F(DebugModeTest, FindsResultsThatAreNotFinite) {
  const auto error = error_of<InvalidValueError>({x}, ops::log(x - 1.0).named("v"), {a});
  expect_text(error, "[DebugMode: InvalidValueError] Log");
  expect_text(error, "-inf at (0,): 1 of 4 elements are not finite");
  EXPECT_EQ(error.output(), 0);
}

TEST_F(DebugModeTest, FindsShapesThatDoNotFitTheType) {
  const Variable fixed = make_input({DType::float64, {4}, {}}, "fixed");
  const Variable v = liar({.shapes = [](auto) { return std::vector<Extents>{{3}}; }}, {fixed});
  const auto error = error_of<InvalidValueError>(
      {fixed}, v, {a}, {.mode = DebugMode({.base = Mode::no_rewrite, .patience = 1})});
  expect_text(error, "inferred shape (3,), type float64 (4,)");
}

TEST_F(DebugModeTest, FindsInferredShapesThatAreNotThoseOfTheOutputs) {
  using Shapes = std::vector<Extents>;
  const struct {
    Shapes shapes;
    int output;
    std::string text;
  } cases[] = {{{}, -1, "0 inferred shapes, 1 outputs"},
               {{{4}, {4}}, -1, "2 inferred shapes, 1 outputs"},
               {{{4, 4}}, 0, "output 0: inferred shape (4, 4), type float64 (?,)"},
               {{{}}, 0, "output 0: inferred shape (), type float64 (?,)"},
               {{{-2}}, 0, "output 0: inferred shape (-2,), type float64 (?,)"}};
  for (const auto& c : cases) {
    const auto bad = [&](const Variable& v) {
      return liar({.shapes = [&](auto) { return c.shapes; }}, {v});
    };
    const Variable looped =
        ops::loop([&](const auto& v) -> std::vector<Variable> { return {ops::sqrt(bad(v[0]))}; },
                  {.states = {x}, .n_steps = 2})
            .last(0);
    const Variable branch = ops::ifelse(ops::gt(ops::sum(x), 0.0), bad(x), x);
    for (const Variable& v : {bad(x) * 2.0, looped, branch}) {
      const auto error = error_of<InvalidValueError>({x}, v, {a});
      expect_text(error, "[DebugMode: InvalidValueError] Liar");
      expect_text(error, c.text);
      EXPECT_EQ(error.node().op().name(), "Liar");
      EXPECT_EQ(error.output(), c.output);
    }
  }
}

TEST_F(DebugModeTest, FindsBoolsThatAreNone) {
  const Variable v =
      liar({.dtype = DType::bool_,
            .run =
                [](RunContext& c) {
                  std::memset(c.output(0).data, 2, 1);
                  for (index_t i = 1; i < 4; ++i) {
                    static_cast<unsigned char*>(c.output(0).data)[i * c.output(0).strides[0]] = 1;
                  }
                }},
           {x});
  expect_text(error_of<InvalidValueError>({x}, v, {a}), "a bool is neither 0 nor 1");
}

TEST_F(DebugModeTest, ExceptionsPassAsTheyAre) {
  const Variable v = liar({.run = [](RunContext&) { throw ShapeError("by design"); }}, {x});
  const Function f = function({x}, v, {.mode = all_patterns()});
  expect_error<ShapeError>([&] { f(a); },
                           "by design\n  in the reference pass of DebugMode: Liar(x)");
}

TEST_F(DebugModeTest, ExceptionsOfOtherLibrariesBecomeErrorsOfTheOp) {
  const Variable v =
      liar({.run = [](RunContext&) { throw std::runtime_error("of another library"); }}, {x});
  const Function f = function({x}, v, {.mode = all_patterns()});
  try {
    f(a);
    FAIL() << "no error";
  } catch (const OpError& error) {  // with the other error nested
    expect_text(error, "[Liar] failed: of another library");
    EXPECT_THROW(std::rethrow_if_nested(error), std::runtime_error);
  }
}

TEST_F(DebugModeTest, FindsFailuresOfWhatCannotFail) {
  const Variable v =
      liar({.can_fail = false, .run = [](RunContext&) { throw ShapeError("by design"); }}, {x});
  const auto error = error_of<BadNoFail>({x}, v, {a});
  expect_text(error, "can_fail() is false, but it threw: by design");
  EXPECT_EQ(error.node().op().name(), "Liar");
}

// -- 3: destroy maps -----------------------------------------------------------------------------

TEST_F(DebugModeTest, FindsUndeclaredWrites) {
  for (const char* const pages : {"auto", "off"}) {
    const Variable v = liar({.run =
                                 [](RunContext& c) {
                                   Liar::copy(c.input(0), c.output(0));
                                   first_element(c.input(1)) += 1;
                                 }},
                            {x, y});
    const auto error = error_of<BadDestroyMap>(
        {x, y}, v, {a, b}, {.mode = DebugMode({.patience = 1, .guard_pages = pages})});
    expect_text(error, "[DebugMode: BadDestroyMap] Liar (step ");
    expect_text(error, "input 1 y");
    expect_text(error, "destroy map: {}");
    EXPECT_EQ(error.input(), 1);
    EXPECT_EQ(error.variable().name(), "y");
  }
  EXPECT_EQ(b.to_vector<double>(), (std::vector<double>{5, 6, 7, 8}));
}

TEST_F(DebugModeTest, FindsWritesThatArePutBack) {
  const Variable v = liar({.run =
                               [](RunContext& c) {
                                 volatile double& element = first_element(c.input(0));
                                 const double old = element;
                                 element = 0;
                                 Liar::copy(c.input(0), c.output(0));
                                 element = old;
                                 first_element(c.output(0)) = old;
                               }},
                          {x});
  expect_text(error_of<BadDestroyMap>({x}, v, {a}), "input 0 x was written at byte 0");
}

TEST_F(DebugModeTest, FindsWritesOutsideOfTheRegion) {
  const Variable v =
      liar({.destroys = {{0, {0}}},
            .write_region = Region::box({{.start = 0, .step = 1, .count = 2}}, 1),
            .run =
                [](RunContext& c) {
                  static_cast<double*>(c.output(0).data)[3 * c.output(0).strides[0]] = 9;
                }},
           {x});
  const auto error =
      error_of<BadDestroyMap>({In(x, {.is_mutable = true, .borrow = true})}, v, {a.clone()},
                              {.mode = all_patterns(), .accept_inplace = true});
  expect_text(error, "outside of the declared region, in bytes 24..31");
  expect_text(error, "write region: ");
}

TEST_F(DebugModeTest, DeclaredWritesPass) {
  const Variable v = liar(
      {.destroys = {{0, {0}}}, .run = [](RunContext& c) { first_element(c.output(0)) = 9; }}, {x});
  const Function f = function({In(x, {.is_mutable = true, .borrow = true})}, v,
                              {.mode = all_patterns(), .accept_inplace = true});
  EXPECT_EQ(f(a.clone()).tensor().to_vector<double>(), (std::vector<double>{9, 2, 3, 4}));
  const Variable w = liar({.destroyed = {0},
                           .run =
                               [](RunContext& c) {
                                 Liar::copy(c.input(0), c.output(0));
                                 first_element(c.input(0)) = 9;
                               }},
                          {x});
  const Function g = function({In(x, {.is_mutable = true, .borrow = true})}, w,
                              {.mode = all_patterns(), .accept_inplace = true});
  EXPECT_EQ(g(a.clone()).tensor().to_vector<double>(), a.to_vector<double>());
}

TEST_F(DebugModeTest, AViewThatMayShowEitherOfTwoInputsIsMadeByRunning) {
  const auto spec = [] {
    return LiarSpec{.views = {{0, {0, 1}}},
                    .view_layout = [](const Layout& in) { return std::optional(in); },
                    .run = [](RunContext& c) { Liar::copy(c.input(1), c.output(0)); }};
  };
  const std::vector<Mode> modes{Mode(Mode::fast_run), DebugMode({.patience = 1})};
  for (const Mode& mode : modes) {
    const Variable v = liar(spec(), {ops::roll(x, 1, 0), ops::roll(y, 1, 0)});
    const Function f = function({x, y}, ops::roll(v, -1, 0), {.mode = mode});
    EXPECT_TRUE(equal(f(a, b).tensor(), b));
  }
}

// -- 4, 5: view maps -----------------------------------------------------------------------------

TEST_F(DebugModeTest, FindsResultsInTheMemoryOfAnInput) {
  const Variable v = liar({.run = [](RunContext& c) { c.set_output(0, c.input(1)); }}, {x, y});
  const auto error = error_of<BadViewMap>({x, y}, v, {a, b});
  expect_text(error, "output 0 lies in the memory of input 1, bytes 0..31");
  expect_text(error, "view map: {}");
  EXPECT_EQ(error.input(), 1);
  EXPECT_EQ(error.output(), 0);
}

TEST_F(DebugModeTest, FindsViewsOutsideOfTheRegion) {
  const LiarSpec spec{.views = {{0, {0}}},
                      .view_layout = [](const Layout& in) { return in; },
                      .view_region = Region::box({{.start = 0, .step = 1, .count = 2}}, 1)};
  const auto error = error_of<BadViewMap>({x}, liar(spec, {x}) + 1.0, {a});
  expect_text(error, "shows bytes 16..23 of the row-major input 0");
}

TEST_F(DebugModeTest, FindsViewsThatLeaveTheInput) {
  const LiarSpec spec{.views = {{0, {0}}}, .view_layout = [](const Layout& in) {
                        Layout out = in;
                        out.byte_offset += 8;
                        return out;
                      }};
  expect_text(error_of<BadViewMap>({x}, liar(spec, {x}) + 1.0, {a}),
              "output 0 shows bytes 8..39 of input 0, which has 32");
}

TEST_F(DebugModeTest, FindsViewsThatAreNotWhatIsCopied) {
  const LiarSpec spec{.views = {{0, {0}}}, .view_layout = [](const Layout& in) {
                        Layout out = in;
                        out.byte_offset += 24 * in.strides[0];
                        out.strides[0] = -in.strides[0];
                        return out;
                      }};
  expect_text(error_of<BadThunkOutput>({x}, liar(spec, {x}) + 1.0, {a}),
              "as a view and as a copy it is not the same");
}

LiarSpec overlapping_results(std::vector<std::set<int>> aliases) {
  return {.outputs = 2, .aliases = std::move(aliases), .run = [](RunContext& c) {
            Liar::copy(c.input(0), c.output(0));
            c.set_output(1, c.output(0));
          }};
}

TEST_F(DebugModeTest, FindsResultsThatShareMemoryAndAreReadLater) {
  const auto outs = apply_liar(overlapping_results({}), {x});
  const auto error = error_of<BadViewMap>({x}, {outs[0] * 2.0, ops::roll(outs[1], 1, 0)}, {a});
  expect_text(error, "outputs 0 and 1 share memory, and later steps read both");
  EXPECT_EQ(error.output(), 1);
}

TEST_F(DebugModeTest, ResultsMayShareMemoryThatIsNotReadOrDeclared) {
  const auto outs = apply_liar(overlapping_results({}), {x});
  const Function f = function({x}, {outs[0], ops::roll(outs[1], 1, 0)}, {.mode = all_patterns()});
  EXPECT_EQ(f(a)[1].to_vector<double>(), (std::vector<double>{4, 1, 2, 3}));
  const auto declared = apply_liar(overlapping_results({{0, 1}}), {x});
  EXPECT_NO_THROW(function({x}, {declared[0] * 2.0, ops::roll(declared[1], 1, 0)},
                           {.mode = all_patterns()})(a));
}

// -- 7, 8, 11, 12: runs --------------------------------------------------------------------------

TEST_F(DebugModeTest, SmallDifferencesAreJudgedByTheOpsTolerance) {
  const auto spec = [](double tolerance) {
    return LiarSpec{.tolerance = tolerance, .run = [](RunContext& c) {
                      Liar::copy(c.input(0), c.output(0));
                      if (c.output(0).strides[0] != 1) first_element(c.output(0)) *= 1 + 1e-15;
                    }};
  };
  EXPECT_NO_THROW(function({x}, liar(spec(16), {x}), {.mode = all_patterns()})(a));
  error_of<BadThunkOutput>({x}, liar(spec(0), {x}), {a});
}

TEST_F(DebugModeTest, FindsReadsOfOldContents) {
  const Variable of_output = liar({.run =
                                       [](RunContext& c) {
                                         const double old = first_element(c.output(0));
                                         Liar::copy(c.input(0), c.output(0));
                                         first_element(c.output(0)) += old < 1 ? 1 : 0;
                                       }},
                                  {x});
  expect_text(error_of<BadThunkOutput>({x}, of_output, {a}), "old content");
  const Variable of_scratch = liar({.scratch = 64,
                                    .run =
                                        [](RunContext& c) {
                                          Liar::copy(c.input(0), c.output(0));
                                          first_element(c.output(0)) =
                                              static_cast<double>(c.scratch()[5]);
                                        }},
                                   {x});
  expect_text(error_of<BadThunkOutput>({x}, of_scratch, {a}), "destinations or scratch");
}

TEST_F(DebugModeTest, FindsReadsBetweenTheElementsOfAnInput) {
  const Variable v = liar({.run =
                               [](RunContext& c) {
                                 Liar::copy(c.input(0), c.output(0));
                                 if (c.input(0).strides[0] != 2) return;
                                 const auto* in = static_cast<const double*>(c.input(0).data);
                                 first_element(c.output(0)) += in[1] == 0 ? 0 : 1;
                               }},
                          {x});
  const Tensor every_second = Tensor::zeros({8}).index_with({slice(0, 8, 2)});
  error_of<BadThunkOutput>({x}, v, {every_second});
}

TEST_F(DebugModeTest, FindsResultsThatAreNotWritten) {
  const Variable v = liar({.run = [](RunContext& c) { first_element(c.output(0)) = 1; }}, {x});
  const auto error = error_of<BadThunkOutput>(
      {x}, v, {a}, {.mode = DebugMode({.patience = 1, .check_finite = false})});
  expect_text(error, "old content, of destinations or scratch");
}

TEST_F(DebugModeTest, FindsPatternsThatDisagree) {
  const Variable v = liar({.run =
                               [](RunContext& c) {
                                 Liar::copy(c.input(0), c.output(0));
                                 if (c.output(0).strides[0] < 0) first_element(c.output(0)) = 7;
                               }},
                          {x});
  const auto error = error_of<BadThunkOutput>({x}, v, {a});
  expect_text(error, "destination patterns disagree");
  expect_text(error, "destination pattern strided (-1)");
}

TEST_F(DebugModeTest, FindsReadsBehindTheEnd) {
  const Variable v = liar({.run =
                               [](RunContext& c) {
                                 const auto* in =
                                     static_cast<const volatile double*>(c.input(0).data);
                                 static_cast<void>(in[4]);
                                 Liar::copy(c.input(0), c.output(0));
                               }},
                          {x});
  const auto error = error_of<BadAccess>({x}, v, {a});
  expect_text(error, "guard page: read 0 bytes behind the end of input 0 (32 bytes)");
  EXPECT_EQ(error.input(), 0);
  EXPECT_EQ(error.output(), -1);
}

TEST_F(DebugModeTest, FindsReadsBeforeTheStart) {
  const Variable v = liar({.run =
                               [](RunContext& c) {
                                 const auto* in =
                                     static_cast<const volatile double*>(c.input(0).data);
                                 static_cast<void>(in[-1]);
                                 Liar::copy(c.input(0), c.output(0));
                               }},
                          {x});
  expect_text(error_of<BadAccess>({x}, v, {a}), "read 8 bytes before input 0");
}

TEST_F(DebugModeTest, FindsWritesBehindTheEnd) {
  for (const char* const pages : {"auto", "off"}) {
    const Variable v = liar({.run =
                                 [](RunContext& c) {
                                   Liar::copy(c.input(0), c.output(0));
                                   static_cast<volatile double*>(c.output(0).data)[4] = 1;
                                 }},
                            {x});
    const auto error = error_of<BadAccess>(
        {x}, v, {a}, {.mode = DebugMode({.patience = 1, .guard_pages = pages})});
    expect_text(error, "wrote 0 bytes behind the end of the destination of output 0 (32 bytes)");
    EXPECT_EQ(error.output(), 0);
    EXPECT_EQ(error.input(), -1);
  }
}

TEST_F(DebugModeTest, FindsScratchThatIsTooSmall) {
  const Variable v = liar({.scratch = 63,
                           .run =
                               [](RunContext& c) {
                                 const_cast<volatile std::byte&>(c.scratch().data()[63]) =
                                     std::byte{1};
                                 Liar::copy(c.input(0), c.output(0));
                               }},
                          {x});
  expect_text(error_of<BadAccess>({x}, v, {a}), "wrote 0 bytes behind the end of the scratch (63");
}

TEST_F(DebugModeTest, FindsWritesBetweenTheElementsOfADestination) {
  const Variable v = liar({.run =
                               [](RunContext& c) {
                                 Liar::copy(c.input(0), c.output(0));
                                 if (c.output(0).strides[0] != 2) return;
                                 static_cast<double*>(c.output(0).data)[1] = 3;
                               }},
                          {x});
  expect_text(error_of<BadAccess>({x}, v, {a}), "memory between elements changed: wrote at byte 8");
}

// Each keeps an address for its next run, reads or writes there, and is otherwise correct.
TEST_F(DebugModeTest, FindsAccessesToMemoryOfEarlierRuns) {
  if (!GuardedMemory::has_pages()) GTEST_SKIP() << "no page protection on this system";
  const auto keep = [&](std::function<volatile double*(RunContext&)> address, bool writes,
                        bool only_first) {
    auto kept = std::make_shared<volatile double*>(nullptr);
    return liar({.scratch = 64,
                 .run =
                     [=](RunContext& c) {
                       if (*kept && writes) **kept = 1;
                       if (*kept && !writes) static_cast<void>(**kept);
                       Liar::copy(c.input(0), c.output(0));
                       if (!*kept || !only_first) *kept = address(c);
                     }},
                {x});
  };
  const auto input = [](RunContext& c) {
    return static_cast<volatile double*>(const_cast<void*>(c.input(0).data));
  };
  const auto output = [](RunContext& c) { return static_cast<volatile double*>(c.output(0).data); };
  const auto scratch = [](RunContext& c) {
    return reinterpret_cast<volatile double*>(c.scratch().data());
  };
  for (const bool writes : {false, true}) {
    for (const bool only_first : {false, true}) {
      for (const auto& address :
           std::vector<std::function<volatile double*(RunContext&)>>{input, output, scratch}) {
        const auto error = error_of<BadAccess>({x}, keep(address, writes, only_first), {a});
        expect_text(error, writes ? "stale address: it wrote" : "stale address: it read");
        EXPECT_EQ(error.output(), -1);
      }
    }
  }
}

TEST_F(DebugModeTest, FindsAccessesToMemoryThatACallBeforeGaveBack) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer ends the process at the same access";
#endif
  if (!GuardedMemory::has_pages()) GTEST_SKIP() << "no page protection on this system";
  // So big that the system has the pages again once the array is gone.
  const index_t n = index_t{1} << 23;
  auto kept = std::make_shared<const volatile double*>(nullptr);
  auto reads = std::make_shared<bool>(false);
  const Variable v = liar({.run =
                               [=](RunContext& c) {
                                 if (*reads) static_cast<void>(**kept);
                                 Liar::copy(c.input(0), c.output(0));
                                 if (!*reads) {
                                   *kept = static_cast<const double*>(c.input(0).data) + 5000;
                                 }
                               }},
                          {x});
  function({x}, v)(Tensor::zeros({n}));
  *reads = true;
  try {
    error_of<BadAccess>({x}, v, {a});
  } catch (const std::runtime_error&) {
    // The allocator kept the pages: reading there harms nobody.
  }
}

// -- 13 ------------------------------------------------------------------------------------------

TEST_F(DebugModeTest, LogsDestroysThatDidNotHappen) {
  const Variable v = liar({.destroys = {{0, {0}}}, .run = [](RunContext&) {}}, {x});
  const Function f = function({In(x, {.is_mutable = true, .borrow = true})}, v,
                              {.mode = all_patterns(), .accept_inplace = true});
  set_log_level(LogLevel::info);
  ::testing::internal::CaptureStderr();
  f(a.clone());
  const std::string text = ::testing::internal::GetCapturedStderr();
  set_log_level(LogLevel::warn);
  EXPECT_NE(text.find("declares that it destroys input 0, and did not change it"),
            std::string::npos)
      << text;
}

// -- what a call leaves behind -------------------------------------------------------------------

TEST_F(DebugModeTest, NothingChangesWhenSomethingIsFound) {
  SharedVariable s = shared(a.clone(), {.name = "s"});
  const Variable bad = liar({.run =
                                 [](RunContext& c) {
                                   Liar::copy(c.input(0), c.output(0));
                                   ++first_element(c.input(0));
                                 }},
                            {y});
  const Function f = function({y}, bad, {.updates = {{s, s.var() * 2.0}}, .mode = all_patterns()});
  const Tensor held = s.get_value();
  EXPECT_THROW(f(b), BadDestroyMap);
  EXPECT_TRUE(equal(s.get_value(), a));
}

TEST_F(DebugModeTest, MessagesHaveAllParts) {
  const Variable v = liar({.name = "Adder",
                           .run =
                               [](RunContext& c) {
                                 Liar::copy(c.input(0), c.output(0));
                                 ++first_element(c.input(0));
                               }},
                          {ops::roll(x, 1, 0)});
  const auto error = error_of<BadDestroyMap>({x}, v, {a});
  expect_text(error, "[DebugMode: BadDestroyMap] Adder (step -, node 1)");
  expect_text(error, "reference pass");
  expect_text(error, "destination pattern first, 1 thread");
  expect_text(error, "input 0: <float64 (?,)>: strides (1,), float64 (4,): min 1, max 4, mean 2.5");
  expect_text(error, "[4, 1, 2, 3]");
  expect_text(error, "graph:\n");
  expect_text(error, "Roll");
  expect_text(error, "Hint: ");
  EXPECT_TRUE(error.reason().empty());
}

}  // namespace
}  // namespace palimpsest
