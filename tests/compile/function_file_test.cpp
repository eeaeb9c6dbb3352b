// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/compile/function_file.hpp"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <cstring>
#include <filesystem>
#include <random>

#include "compile/hook_op.hpp"
#include "io/files.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/ops/inplace.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using testing::hooked;
using testing::TemporaryDirectory;

std::vector<Function> round_trip(const std::vector<Function>& functions) {
  return functions_from_bytes(functions_to_bytes(functions));
}
Function round_trip(const Function& f) { return round_trip(std::vector<Function>{f})[0]; }

struct FunctionFileTest : ::testing::Test {
  Variable x = make_input({DType::float64, {kUnknown}, {}}, "x"),
           y = make_input({DType::float64, {kUnknown}, {}}, "y");
  SharedVariable s = shared(Tensor::from<double>({1, 2, 3}), {.name = "s"});
  Tensor a = Tensor::from<double>({5, 6, 7}), b = Tensor::from<double>({0.5, -1, 2});
};

TEST_F(FunctionFileTest, LoadedFunctionComputesTheSame) {
  const Function f =
      function({x, In(y, {.name = "other"})},
               {ops::exp(x) * y + 2.0, ops::sum(x), ops::roll(y, 1, 0)}, {.name = "f"});
  const Function g = round_trip(f);
  EXPECT_EQ(g.name(), "f");
  EXPECT_FALSE(g.is_single());
  const auto expected = f(a, kw("other", b)), got = g(a, kw("other", b));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(equal(got[i], expected[i])) << i;
  EXPECT_EQ(g.dprint(), f.dprint());
  EXPECT_TRUE(round_trip(function({x}, x * 2.0)).is_single());
}

TEST_F(FunctionFileTest, ErrorsOfALoadedFunctionNameTheRewriteThatMadeTheirStep) {
  const NodeRewrite rewrite{"check_it",
                            [](const FunctionGraph&, const Apply& node) -> Replacements {
                              if (node.op().name() != "Sinc") return {};
                              const Variable v = node.input(0);
                              return {ops::assert_that(v, ops::gt(v, 0.0), "positive")};
                            }};
  const Function f =
      function({x}, ops::sinc(x) * 2.0, {.mode = Mode(Mode::fast_run).with_rewrite(rewrite, 3)});
  const Function g = round_trip(f);
  for (const Function& each : {f, g}) {
    expect_error<AssertionError>(
        [&] {
          each(Tensor::from<double>({1, -1}));
        },
        "introduced by the rewrite check_it");
  }
}

// A loop that ends by a condition, with results of all steps and of the last one.
TEST_F(FunctionFileTest, LoopsKeepWhatEndsThem) {
  const ops::LoopResult r = ops::loop(
      [](const std::vector<Variable>& v) -> std::vector<Variable> {
        return {v[0] * 2.0, ops::sum(v[0]), v[0] + 1.0};
      },
      {.states = {x}, .n_steps = 20, .until = [](const auto&, const auto& next) {
         return ops::gt(ops::max(next[0]), 100.0);
       }});
  const Function f = function({x}, {r.last(0), r.mapped(0), r.mapped(1), r.n_steps()});
  const Function g = round_trip(f);
  const auto expected = f(a), got = g(a);
  EXPECT_EQ(expected[3].item<std::int64_t>(), 4);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(equal(got[i], expected[i])) << i;
  EXPECT_EQ(g.dprint(), f.dprint());
}

TEST_F(FunctionFileTest, LoopsKeepANumberOfStepsThatIsAValue) {
  const Variable n = make_input({DType::int64, {}, {}}, "n");
  const auto twice = [](const std::vector<Variable>& v) { return std::vector{v[0] * 2.0}; };
  const Variable steps = ops::astype(ops::sum(x), DType::int64) + n;
  const Function f = function({x, n}, ops::loop(twice, {.states = {x}, .n_steps = steps}).last(0));
  const Function g = round_trip(f);
  const Tensor start = Tensor::from<double>({0.5, 1.5});
  for (const index_t more : {0, 3}) {
    const double factor = std::pow(2.0, static_cast<double>(2 + more));
    EXPECT_EQ(g(start, Tensor::full({}, more)).tensor().to_vector<double>(),
              (std::vector<double>{0.5 * factor, 1.5 * factor}));
  }
}

TEST_F(FunctionFileTest, PlansComeOutTheSame) {
  const Function f = function({x, y}, ops::roll(x * y, 1, 0) + ops::roll(x, 2, 0));
  const std::vector<TensorType> types(2, {DType::float64, {1000}, {}});
  Plan plan = f.plan(types);
  plan.refused_in_place.clear();  // refusals of the in-place pass are not saved
  EXPECT_EQ(round_trip(f).plan(types).to_string(), plan.to_string());
}

TEST_F(FunctionFileTest, SharedVariablesHaveTheirPresentValuesAndNoTieToTheOld) {
  const Function f = function({x}, s.var(), {.updates = {{s, s.var() + x}}});
  f(a);
  const Function g = round_trip(f);
  EXPECT_EQ(g(a).tensor().to_vector<double>(), (std::vector<double>{6, 8, 10}));
  EXPECT_EQ(g(a).tensor().to_vector<double>(), (std::vector<double>{11, 14, 17}));
  EXPECT_EQ(s.get_value().to_vector<double>(), (std::vector<double>{6, 8, 10}));
  ASSERT_EQ(g.shared_variables().size(), 1u);
  EXPECT_EQ(g.shared_variables()[0]->name(), "s");
  EXPECT_NE(g.shared_variables()[0], s.container_ptr());
  // Still in place.
  const void* const before = g.shared_variables()[0]->value().raw_data();
  const Function in_place = round_trip(function({x}, {}, {.updates = {{s, s.var() + x}}}));
  in_place(a);
  const void* const first = in_place.shared_variables()[0]->value().raw_data();
  in_place(a);
  EXPECT_EQ(in_place.shared_variables()[0]->value().raw_data(), first);
  EXPECT_NE(before, nullptr);
}

TEST_F(FunctionFileTest, SeveralSharedVariablesStayApart) {
  const SharedVariable t = shared(Tensor::from<double>({10, 20, 30}), {.name = "t"});
  const Function f =
      function({x}, s.var() * t.var(), {.updates = {{s, s.var() + x}, {t, t.var() - x}}});
  const Function g = round_trip(f);
  g(a);
  EXPECT_EQ(g(a).tensor().to_vector<double>(), (std::vector<double>{30, 112, 230}));
  EXPECT_EQ(f(a).tensor().to_vector<double>(), (std::vector<double>{10, 40, 90}));
}

TEST_F(FunctionFileTest, FunctionsOnOneContainerAreOnOneContainerAgain) {
  const Function add = function({x}, {}, {.updates = {{s, s.var() + x}}});
  const Function read = function({}, s.var() * 2.0);
  const std::vector<Function> copies = round_trip(std::vector<Function>{add, read});
  copies[0](a);
  EXPECT_EQ(copies[1]().tensor().to_vector<double>(), (std::vector<double>{12, 16, 20}));
  EXPECT_EQ(read().tensor().to_vector<double>(), (std::vector<double>{2, 4, 6}));
}

TEST_F(FunctionFileTest, InputsKeepWhatTheySay) {
  const Function f =
      function({In(x, {.is_mutable = true}), In(y, {.value = Tensor::ones({3}), .strict = true})},
               {Out(x + y, {.borrow = true})});
  const Function g = round_trip(f);
  EXPECT_EQ(g(a.clone())[0].to_vector<double>(), (std::vector<double>{6, 7, 8}));
  expect_error<TypeError>([&] { g(a, a, a); }, "arguments");
  expect_error<DTypeError>([&] { g(a, kw("y", Tensor::ones({3}, DType::float32))); }, "y");
  const Function lends = round_trip(function({x}, {Out(x * 2.0, {.borrow = true})}));
  const Tensor first = lends(a)[0], second = lends(a)[0];
  EXPECT_EQ(first.raw_data(), second.raw_data());
}

TEST_F(FunctionFileTest, SizeDoesNotChangeByCalling) {
  const Function f = function({x}, ops::roll(x * x, 1, 0) + s.var());
  const auto before = functions_to_bytes({&f, 1});
  f(a);
  f(Tensor::from<double>({1, 2, 3}));
  EXPECT_EQ(functions_to_bytes({&f, 1}), before);
}

TEST_F(FunctionFileTest, FileIsMappedAndItsConstantsTakeNoMemory) {
  const TemporaryDirectory directory;
  const std::string path = directory / "f.pal";
  const Function f =
      function({}, ops::sum(constant(Tensor::ones({100'000}))), {.mode = NoRewrite()});
  f.save(path);
  EXPECT_GT(std::filesystem::file_size(path), 800'000u);
  const MemoryScope scope;
  const Function g = Function::load(path);
  EXPECT_LT(scope.allocated_bytes(), 1000u);
  EXPECT_EQ(g().tensor().item<double>(), 100'000);
  save_functions(path, std::vector<Function>{f, g});
  expect_error<ValueError>([&] { Function::load(path); }, "holds 2 functions");
  EXPECT_EQ(load_functions(path).size(), 2u);
}

TEST_F(FunctionFileTest, ReadersConfigDoesNotMatter) {
  const Function f = [&] {
    const ConfigScope scope({.allow_gc = true});
    return function({x}, ops::exp(x) + 1.0);
  }();
  const ConfigScope scope({.mode = std::string("NoRewrite"), .default_float = DType::float32});
  const Function g = round_trip(f);
  EXPECT_EQ(g.mode(), Mode::fast_run);
  EXPECT_EQ(g.graph().node_count(), f.graph().node_count());
  g(a);
  EXPECT_EQ(g.idle_frame_count(), 0u);
}

TEST_F(FunctionFileTest, OpsThatNobodyCouldLoadAreNamedBeforeAByteIsWritten) {
  const TemporaryDirectory directory;
  const Function f = function({x}, hooked(x, [] {}));
  expect_error<NotSupported>([&] { f.save(directory / "f.pal"); }, "Hook");
  EXPECT_FALSE(std::filesystem::exists(directory / "f.pal"));
}

TEST_F(FunctionFileTest, OtherArchivesAreNoFunctions) {
  ArchiveWriter writer("other");
  expect_error<FormatError>([&] { functions_from_bytes(writer.to_bytes("{}")); }, "kind");
}

// -- copies --------------------------------------------------------------------------------------

TEST_F(FunctionFileTest, DeepCopiesShareStateAmongThemselvesOnly) {
  const Function add = function({x}, {}, {.updates = {{s, s.var() + x}}});
  const Function read = function({}, s.var() * 2.0);
  const MemoryScope scope;
  const std::vector<Function> copies = deepcopy(std::vector<Function>{add, read});
  EXPECT_EQ(scope.allocated_bytes(), 0u);
  copies[0](a);
  EXPECT_EQ(copies[1]().tensor().to_vector<double>(), (std::vector<double>{12, 16, 20}));
  EXPECT_EQ(read().tensor().to_vector<double>(), (std::vector<double>{2, 4, 6}));
  const Function alone = deepcopy(read);
  add(a);
  EXPECT_EQ(alone().tensor().to_vector<double>(), (std::vector<double>{2, 4, 6}));
}

// -- damage --------------------------------------------------------------------------------------

// The file of a function, one letter of its manifest replaced.
std::vector<std::byte> with_letter(const Function& f, std::string_view text, std::size_t at,
                                   char letter) {
  std::vector<std::byte> bytes = functions_to_bytes({&f, 1});
  std::uint64_t n_manifest = 0;
  std::memcpy(&n_manifest, bytes.data() + 24, 8);
  const std::string_view manifest(reinterpret_cast<const char*>(bytes.data() + 64), n_manifest);
  const std::size_t begin = manifest.find(text);
  if (begin == std::string_view::npos) throw std::runtime_error("no such text");
  bytes[64 + begin + at] = static_cast<std::byte>(letter);
  const std::uint64_t hash = XXH3_64bits(bytes.data() + 64, n_manifest);
  std::memcpy(bytes.data() + 40, &hash, 8);
  return bytes;
}

TEST_F(FunctionFileTest, OpsAndTypesThatNobodyKnowsAreNamedWhenLoading) {
  const Function f = function({x}, ops::roll(x, 1, 0));
  expect_error<IoError>([&] { functions_from_bytes(with_letter(f, "\"Roll\"", 2, 'u')); },
                        "unknown op 'Rull'");
  expect_error<FormatError>(
      [&] { functions_from_bytes(with_letter(f, "\"dtype\":\"float64\"", 9, 'g')); },
      "names an unknown type or device");
}

// A manifest that is changed and hashed again gives a callable function or a file error.
TEST_F(FunctionFileTest, DamageIsAFunctionOrAnError) {
  const Function f = function({In(x, {.is_mutable = true}), y},
                              {Out(ops::roll(x * y, 1, 0), {.borrow = true}), ops::sum(y)},
                              {.updates = {{s, s.var() * 2.0}}});
  const std::vector<std::byte> good = functions_to_bytes({&f, 1});
  std::uint64_t n_manifest = 0;
  std::memcpy(&n_manifest, good.data() + 24, 8);
  std::mt19937 random(3);
  static constexpr std::string_view kLikely = "0123456789-[]{},:\"ue.tfn";
  int refused = 0, called = 0;
  for (int i = 0; i < 10000; ++i) {
    std::vector<std::byte> bytes = good;
    for (unsigned k = 0, edits = 1 + random() % 2; k < edits; ++k) {
      bytes[64 + random() % n_manifest] = static_cast<std::byte>(kLikely[random() % 24]);
    }
    const std::uint64_t hash = XXH3_64bits(bytes.data() + 64, n_manifest);
    std::memcpy(bytes.data() + 40, &hash, 8);
    try {
      const std::vector<Function> loaded = functions_from_bytes(bytes);
      if (!loaded.empty()) {
        loaded[0](a.clone(), b);
        ++called;
      }
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 5000);
  EXPECT_GT(called, 100);
}

// -- graphs and shared variables by themselves
// -----------------------------------------------------

TEST_F(FunctionFileTest, AGraphIsSavedWithDestroyersAndProtection) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/graph.pal";
  const Variable sum = inplace::add_inplace(x, y), k = constant(a, "k");
  FunctionGraph graph({x, y}, {ops::exp(sum) * k, ops::roll(y, 1, 0)});
  graph.outputs()[0].named("result");
  graph.inputs()[1].tags().nan_guard = false;
  graph.protect(graph.inputs()[1]);
  graph.overwrite_last(graph.inputs()[0]);
  save_graph(path, graph);
  FunctionGraph loaded = load_graph(path);
  EXPECT_EQ(loaded.str(), graph.str());
  EXPECT_EQ(loaded.outputs()[0].name(), "result");
  EXPECT_EQ(loaded.inputs()[0].name(), "x");
  EXPECT_TRUE(loaded.inputs()[0].tags().nan_guard);
  EXPECT_FALSE(loaded.inputs()[1].tags().nan_guard);
  EXPECT_TRUE(loaded.is_protected(loaded.inputs()[1]));
  EXPECT_FALSE(loaded.is_protected(loaded.inputs()[0]));
  EXPECT_TRUE(loaded.is_overwritten_last(loaded.inputs()[0]));
  EXPECT_EQ(loaded.destroyers(loaded.inputs()[0]).size(), 1u);
  // A loaded graph has marks, edits and results like any other.
  const auto mark = loaded.checkpoint();
  loaded.replace(loaded.outputs()[1], ops::roll(loaded.inputs()[1], 2, 0));
  loaded.revert(mark);
  EXPECT_EQ(loaded.str(), graph.str());
  const auto results = function({In(loaded.inputs()[0], {.is_mutable = true}), loaded.inputs()[1]},
                                loaded.outputs(), {.accept_inplace = true})(a.clone(), b);
  const auto expected = function({x, y}, {ops::exp(x + y) * k, ops::roll(y, 1, 0)})(a, b);
  EXPECT_TRUE(equal(results[0], expected[0]));
  EXPECT_TRUE(equal(results[1], expected[1]));
}

TEST_F(FunctionFileTest, AFileOfSomethingElseIsNoGraph) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/f.pal";
  function({x}, x * 2.0).save(path);
  expect_error<FormatError>([&] { load_graph(path); }, "got 'functions', expected 'graph'");
  expect_error<FormatError>([&] { load_shared(path); }, "expected 'shared variables'");
  expect_error<IoError>([&] { load_graph(directory.path() + "/none.pal"); }, "none.pal");
}

TEST_F(FunctionFileTest, SharedVariablesAreSavedTogether) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/state.pal";
  SharedVariable t = shared(2.5, {.name = "t"}), open = shared(b, {.shape = std::nullopt});
  save_shared(path, std::vector{s, t, s.clone(), open});
  const Function f = function({x}, x * t, {.updates = {{s, s + x}}});
  f(a);
  t.set_value(0.0);
  std::vector<SharedVariable> loaded = load_shared(path);
  ASSERT_EQ(loaded.size(), 4u);
  EXPECT_EQ(loaded[0].name(), "s");
  EXPECT_EQ(loaded[0].get_value().to_vector<double>(), (std::vector<double>{1, 2, 3}));
  EXPECT_TRUE(loaded[0].is(loaded[2]));
  EXPECT_FALSE(loaded[0].is(s));
  EXPECT_EQ(loaded[3].type().str(), "float64 (?,)");
  for (const SharedVariable& saved : {loaded[0], loaded[1]}) {
    f.container(saved.name()).set_value(saved.get_value());
  }
  EXPECT_EQ(t.get_value().item<double>(), 2.5);
  EXPECT_EQ(s.get_value().to_vector<double>(), (std::vector<double>{1, 2, 3}));
  expect_error<ValueError>([&] { save_shared(path, std::vector{SharedVariable()}); }, "undefined");
}

// Nothing is written where there are no elements: compiler, loader and plans agree on that.
TEST_F(FunctionFileTest, FunctionsThatOverwriteArraysWithoutElementsAreLoaded) {
  const Variable none = make_input({DType::float64, {0}, {}}, "none");
  const auto loop = ops::loop(
      [](const std::vector<Variable>& v) {
        return std::vector<Variable>{v[0], v[0] + 1.0};
      },
      {.states = {ops::flip(none, Axes{0}), none}, .n_steps = index_t{2}});
  const Function f =
      function({In(none, {.is_mutable = false, .borrow = true})}, std::vector<Out>{loop.last(0)});
  EXPECT_EQ(round_trip(f)(Tensor::zeros({0}))[0].numel(), 0);

  const Variable v = s.var(), part = v(slice(2, 2));
  const Function g = function({}, std::vector<Out>{ops::cumsum(part), ops::exp(part), v});
  const auto results = round_trip(g)();
  EXPECT_EQ(results[0].numel(), 0);
  EXPECT_TRUE(equal(results[2], s.get_value()));

  // An empty part may be set of what must keep its value.
  const Variable set = inplace::set_subtensor_inplace(x, {slice(2, 2)}, y(slice(2, 2)));
  const Function h = function({x, y}, ops::sum(set) + ops::sum(x), {.accept_inplace = true});
  EXPECT_TRUE(equal(round_trip(h)(a, b)[0], Tensor::scalar<double>(36)));
}

}  // namespace
}  // namespace palimpsest
