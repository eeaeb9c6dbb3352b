// SPDX-License-Identifier: Apache-2.0
// Every op, and every operator with its normal operator, gives the bits of the host on an
// accelerator, within the announced bytes of both devices.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>

#include "contract/applied.hpp"
#include "contract/linop_samples.hpp"
#include "device/tested_device.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/ops/ops.hpp"
#include "support/checked_calls.hpp"
#include "support/delaying_backend.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

// A device, and the same one with commands that run as late as they may.
std::vector<Device> tested_devices() {
  const Device plain = testing::tested_device();
  return {plain, testing::delayed(plain)};
}

// Functions that each device rounds in its own way.
bool rounds_by_device(const Op& op) {
  static const std::set<std::string> kNames{
      "Angle",   "Arccos", "Arccosh", "Arcsin", "Arcsinh", "Arctan",       "Arctan2",
      "Arctanh", "Cos",    "Cosh",    "Erf",    "Exp",     "Expm1",        "Hypot",
      "Log",     "Log10",  "Log1p",   "Log2",   "Pow",     "RandomNormal", "Sigmoid",
      "Sin",     "Sinc",   "Sinh",    "Sqrt",   "Tan",     "Tanh"};
  if (kNames.contains(op.name())) return true;
  // The instructions of a fused step, as `r3=exp(r1):float32`.
  const std::string text = op.parameters();
  return std::ranges::any_of(kNames, [&](std::string name) {
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    return text.find("=" + name + "(") != std::string::npos;
  });
}

// A library multiplies matrices on the host, in an order of its own.
bool is_matrix_product(const Op& op) {
  const std::string name = op.name();
  return name == "Contract" || name.starts_with("Gem") || name.starts_with("Ger");
}

void expect_same_or_close(const Tensor& got, const Tensor& expected) {
  EXPECT_LE(testing::distance(on_host(got), on_host(expected)),
            testing::tolerance(expected.dtype()))
      << on_host(got) << on_host(expected);
}

class OnDevice : public ::testing::TestWithParam<Device> {
 protected:
  const Device there_ = GetParam();
};
using DeviceContract = OnDevice;
using SolversOnDevice = OnDevice;
using SharedOnDevice = OnDevice;
using FunctionsOnDevice = OnDevice;

std::string name_of_device(const ::testing::TestParamInfo<Device>& tested) {
  return tested.param.index == 0 ? "Plain" : "Delayed";
}

std::vector<Tensor> moved(const std::vector<Tensor>& values, Device device) {
  std::vector<Tensor> result;
  for (const Tensor& t : values) result.push_back(t.to(device));
  return result;
}

struct Sampled {
  std::vector<In> inputs;
  std::vector<Out> outputs;
};

Sampled sampled(const ops::OpEntry& entry, const ops::OpSample& sample) {
  const testing::Applied a = testing::applied(entry, sample);
  Sampled result;
  for (const Variable& v : a.variables) result.inputs.emplace_back(v);
  for (const Variable& v : a.node.outputs()) result.outputs.emplace_back(v);
  return result;
}

std::vector<Tensor> results_of(const Function& f, const std::vector<Tensor>& values) {
  std::vector<Tensor> results(f.output_count());
  f.call(values, results);
  return results;
}

TEST_P(DeviceContract, EveryOpGivesTheBitsOfTheHost) {
  int n_planned = 0;
  for (const ops::OpEntry& entry : ops::op_samples()) {
    for (const ops::OpSample& sample : entry.samples()) {
      SCOPED_TRACE(std::string(entry.name) + ": " + sample.name);
      const FunctionOptions options{.on_unused_input = Reaction::ignore};
      const Sampled here = sampled(entry, sample);
      const std::vector<Tensor> expected =
          results_of(function(here.inputs, here.outputs, options), sample.inputs);
      ops::OpSample there_sample = sample;
      there_sample.inputs = moved(sample.inputs, there_);
      const Sampled there = sampled(entry, there_sample);
      const Function f = function(there.inputs, there.outputs, options);
      const Plan& plan = f.plan(there_sample.inputs);
      std::vector<Tensor> results(f.output_count());
      CallReport report;
      {
        const MemoryScope on_host, on_device(there_);
        f.call(there_sample.inputs, results, &report);
        if (plan.run_time_extents.empty() && !sample.inputs.empty()) {
          ++n_planned;
          EXPECT_EQ(static_cast<index_t>(on_host.peak_bytes()), plan.peak_bytes_on({}))
              << plan.to_string();
          EXPECT_EQ(static_cast<index_t>(on_device.peak_bytes()),
                    plan.peak_bytes_on(there_) + report.entry_copy_bytes)
              << plan.to_string();
        }
      }
      for (std::size_t k = 0; k < results.size(); ++k) {
        EXPECT_TRUE(sample.inputs.empty() || results[k].device() == there_);
        const Op& op = there.outputs[0].variable.owner().op();
        if (is_matrix_product(op) || rounds_by_device(op)) {
          expect_same_or_close(results[k], expected[k]);
          continue;
        }
        EXPECT_TRUE(equal(on_host(results[k]), on_host(expected[k])))
            << on_host(results[k]) << on_host(expected[k]);
      }
    }
  }
  EXPECT_GT(n_planned, 100);
}

bool may_differ(const NamedLinop& A, const Tensor& x) {
  const Variable y = A(make_input({x.dtype(), x.shape(), x.device()}, "x"));
  return std::ranges::any_of(applications_of({&y, 1}), [](const Apply& node) {
    return is_matrix_product(node.op()) || rounds_by_device(node.op());
  });
}

class LinopOnDevice : public ::testing::TestWithParam<testing::LinopSample> {};

TEST_P(LinopOnDevice, GivesTheBitsOfTheHost) {
  if (GetParam().name == "OnAnotherDevice") return;  // goes to spaces of the host
  const NamedLinop A = GetParam().make(DType::complex64);
  for (const Device device : tested_devices()) {
    SCOPED_TRACE(device.str());
    const NamedLinop there = A.to(device);
    EXPECT_EQ(there.shape().str(), A.shape().str());
    const Tensor x = Tensor::random_normal(testing::input_extents(A, GetParam().options),
                                           DType::complex64, {11});
    const Tensor y = A(x), far_x = x.to(device);
    const Tensor far_y = there(far_x);
    // Weights that a normal operator makes of sizes alone are on the host.
    const Tensor n = A.N()(x), far_n = there.N().to(device)(far_x);
    if (may_differ(A.N(), x)) {
      expect_same_or_close(far_y, y);
      expect_same_or_close(far_n, n);
    } else {
      EXPECT_TRUE(equal(on_host(far_y), y)) << on_host(far_y) << y;
      EXPECT_TRUE(equal(on_host(far_n), n)) << on_host(far_n) << n;
    }
    EXPECT_TRUE(equal(on_host(far_x), x)) << "changed its input";
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, LinopOnDevice, ::testing::ValuesIn(testing::linop_samples()),
                         [](const auto& tested) { return tested.param.name; });

TEST_P(SolversOnDevice, GiveTheBitsOfTheHost) {
  const Tensor maps = Tensor::random_normal({4, 8, 9}, DType::complex64, {1});
  const NamedLinop A = Chain(Dense(maps, "CNxNy,NxNy->CNxNy"), Fft(2, {.batch = "C"}));
  const NamedLinop there = A.to(there_);
  const Tensor b = A(Tensor::random_normal({8, 9}, DType::complex64, {2}));
  const auto expect_same = [&](const char* name, const SolveResult& far, const SolveResult& near) {
    SCOPED_TRACE(name);
    EXPECT_EQ(far.x.device(), there_);
    EXPECT_EQ(far.iterations, near.iterations);
    EXPECT_EQ(far.status, near.status);
    EXPECT_TRUE(equal(on_host(far.x), near.x));
  };
  const Tensor far_b = b.to(there_);
  expect_same("cg", conjugate_gradients(there.N(), there.H()(far_b), {.max_iterations = 12}),
              conjugate_gradients(A.N(), A.H()(b), {.max_iterations = 12}));
  expect_same("lsqr", lsqr(there, far_b, {.max_iterations = 8}), lsqr(A, b, {.max_iterations = 8}));
  expect_same("fista", fista(there, L1(0.1), far_b, {.max_iterations = 10}),
              fista(A, L1(0.1), b, {.max_iterations = 10}));
}

// Lines about arrays that go from a device to another.
std::string transfers_of(const std::function<void()>& run) {
  const ConfigScope scope({.log_device_transfers = true});
  ::testing::internal::CaptureStderr();
  run();
  return ::testing::internal::GetCapturedStderr();
}

TEST_P(SolversOnDevice, RunWithoutAStepOnTheHostWhereEachOpHasAKernel) {
  const NamedLinop A =
      Dense(Tensor::random_normal({12, 9}, DType::complex64, {1}), "MN,N->M").to(there_);
  const NamedLinop D = Diagonal(Tensor::full<float>({9}, 2), "N").to(there_);
  const Tensor b = Tensor::random_normal({12}, DType::complex64, {2}).to(there_);
  const Tensor c = Tensor::random_normal({9}, DType::float32, {3}).to(there_);
  SolveResult dense, diagonal;
  EXPECT_EQ(transfers_of([&] {
              dense = conjugate_gradients(A.N(), A.H()(b), {.max_iterations = 20});
              diagonal = conjugate_gradients(D, c, {.max_iterations = 20});
            }),
            "");
  // The loop of a proximal function is polled, and nothing else.
  const std::string log =
      transfers_of([&] { fista(A, TotalVariation(0.1, Dims("N")), b, {.max_iterations = 3}); });
  EXPECT_NE(log, "");
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_NE(line.find("[until of a loop] bool (), 1 bytes"), std::string::npos) << line;
  }
  const Tensor residual = on_host(A.H()(A(dense.x))) - on_host(A.H()(b));
  EXPECT_LT(norm(residual).item<double>(), 1e-3 * norm(on_host(A.H()(b))).item<double>());
  EXPECT_TRUE(allclose(on_host(diagonal.x), on_host(c) * 0.5F, 1e-6));
}

// Functions of x and slope. Their loop has a state on the device of x, one that follows it there
// from a constant of the host, a number that stays on the host, earlier states, and a loop within.
std::vector<Function> looping(Device device) {
  const Variable x = make_input({DType::float64, {5}, device}, "x");
  const Variable slope = make_input({DType::float64, {5}, device}, "slope");
  ops::LoopOptions options;
  options.sequences = {x, constant(Tensor::arange(5, DType::float64))};
  options.states = {ops::zeros_like(slope), constant(0.0), constant(1.0), {x, {-1, -5}}};
  const auto body = [&](const std::vector<Variable>& a) -> std::vector<Variable> {
    const Variable &row = a[0], &count = a[1], &u = a[2], &total = a[3], &momentum = a[4];
    ops::LoopOptions inner;
    inner.states = {u};
    inner.n_steps = Operand(3);
    const ops::LoopResult halved =
        ops::loop([](const std::vector<Variable>& v) { return std::vector{v[0] * 0.5}; }, inner);
    const Variable next = halved.last(0) + slope * momentum + row;
    return {next, total + next.sum(), (momentum + 1.0) * 0.5 + count, a[5] + a[6] * 0.25,
            next * count};
  };
  const ops::LoopResult all = ops::loop(body, options);
  options.until = [](const std::vector<Variable>&, const std::vector<Variable>& next) {
    return ops::gt(next[1], 60.0);
  };
  const ops::LoopResult some = ops::loop(body, options);
  return {function({x, slope}, {all.last(2), all.trace(0), all.trace(3), all.mapped(0)}),
          function({x, slope}, {some.last(0), some.last(1), some.n_steps()})};
}

TEST_P(FunctionsOnDevice, LoopsWhoseOpsHaveKernelsWaitOnlyForTheirEnd) {
  const std::vector<Tensor> here{Tensor::from<double>({1, 2, 3, 4, 5}),
                                 Tensor::from<double>({1, 0.5, 2, -1, 3})};
  const std::vector<Tensor> far = moved(here, there_);
  std::string expected_log;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::vector<Tensor> expected = results_of(looping({})[i], here);
    const Function f = looping(there_)[i];
    const Plan& plan = f.plan(far);
    std::vector<Tensor> results(f.output_count());
    const MemoryScope of_host, of_device(there_);
    EXPECT_EQ(transfers_of([&] { f.call(far, results); }), expected_log);
    EXPECT_EQ(static_cast<index_t>(of_host.peak_bytes()), plan.peak_bytes_on({}))
        << plan.to_string();
    EXPECT_EQ(static_cast<index_t>(of_device.peak_bytes()), plan.peak_bytes_on(there_))
        << plan.to_string();
    for (std::size_t k = 0; k < results.size(); ++k) {
      EXPECT_TRUE(equal(on_host(results[k]), expected[k])) << k << results[k] << expected[k];
    }
    for (int step = 0; step < 4; ++step) {
      expected_log += "palimpsest warning: [until of a loop] bool (), 1 bytes, from " +
                      there_.str() + " to cpu\n";
    }
  }
}

TEST_P(SharedOnDevice, FollowTheRulesOfBorrowing) {
  const Tensor ones = Tensor::ones({3}, DType::float32, there_);
  SharedVariable s = shared(ones, {.name = "s"});
  EXPECT_EQ(s.get_value().device(), Device{});
  EXPECT_EQ(s.get_value({.borrow = true}).device(), Device{});
  const Tensor there = s.get_value({.return_internal_type = true});
  EXPECT_EQ(there.device(), there_);
  s.modify([](Tensor& t) { t.fill(5.0F); });
  EXPECT_EQ(there.to_vector<float>(), std::vector<float>(3, 1));
  EXPECT_EQ(s.get_value().to_vector<float>(), std::vector<float>(3, 5));
  const MemoryScope scope(there_);
  const Tensor own = s.get_value({.borrow = true, .return_internal_type = true});
  EXPECT_EQ(scope.calls(), 0u);
  EXPECT_EQ(own.to_vector<float>(), std::vector<float>(3, 5));
}

TEST_P(FunctionsOnDevice, UpdateSharedVariablesInPlaceAndKeepThemWhenACallFails) {
  const SharedVariable s = shared(Tensor::ones({3}, DType::float64, there_), {.name = "s"});
  const Variable x = make_input({DType::float64, {3}, there_}, "x");
  const Variable n = make_input({DType::int64, {}, there_}, "n");
  const Function f = function({x}, {Out(ops::sum(s.var() * x))}, {.updates = {{s, s.var() + x}}});
  const Tensor two = Tensor::full<double>({3}, 2, there_);
  EXPECT_EQ(f(two)[0].item<double>(), 6);
  EXPECT_EQ(f(two)[0].item<double>(), 18);
  EXPECT_EQ(s.get_value().to_vector<double>(), std::vector<double>(3, 5));
  const Function fails =
      function({x, n}, {Out(ops::take(x, n))}, {.updates = {{s, s.var() * 2.0}}});
  const auto call = [&] { fails(two, Tensor::scalar<index_t>(7, there_)); };
  testing::expect_error<ValueError>(call, "got 7, expected one in the range [-3, 3)");
  testing::expect_error<ValueError>(call, "found on " + there_.str());
  EXPECT_EQ(s.get_value().to_vector<double>(), std::vector<double>(3, 5));
}

TEST_P(FunctionsOnDevice, TakeConstantsAndNumbersOfTheHost) {
  const Variable x = make_input({DType::float64, {3}, there_}, "x");
  const Variable y = x * constant(Tensor::from<double>({1, 2, 3})) + 1.0;
  EXPECT_EQ(y.type().device, there_);
  const Function f = function({x}, {y, Out(constant(Tensor::ones({2}), {}, there_))});
  const std::vector<Tensor> results = f(Tensor::full<double>({3}, 2, there_));
  EXPECT_EQ(results[0].device(), there_);
  EXPECT_EQ(results[0].to_vector<double>(), (std::vector<double>{3, 5, 7}));
  EXPECT_EQ(results[1].device(), there_);
  EXPECT_EQ(results[1].to_vector<double>(), (std::vector<double>{1, 1}));
}

// Numbers whose squares leave the range of their dtype, too.
TEST_P(FunctionsOnDevice, ArithmeticOfNumbersOfAllSizesHasTheBitsOfTheHost) {
  constexpr index_t kCount = 20'000;
  for (const DType dtype : {DType::float32, DType::float64, DType::complex64, DType::complex128}) {
    const auto numbers = [&](std::uint64_t seed) {
      const Tensor exponents = Tensor::random_normal({kCount}, real_of(dtype), {seed});
      const double spread = item_size(real_of(dtype)) == 4 ? 20 : 150;
      return Tensor::random_normal({kCount}, dtype, {seed + 1}) * exp(exponents * spread);
    };
    const Tensor x = numbers(5), y = numbers(7);
    const auto compiled = [&](Device device) {
      const Variable a = make_input({dtype, {kCount}, device}, "a");
      const Variable b = make_input({dtype, {kCount}, device}, "b");
      std::vector<Out> outs = {
          Out(ops::abs(a)), Out(ops::abs2(a)), Out(ops::sign(a)),       Out(a + b),
          Out(a * b),       Out(a / b),        Out(a - b * ops::abs(b))};
      if (!is_complex(dtype)) outs.insert(outs.end(), {Out(ops::sqrt(a)), Out(ops::maximum(a, b))});
      return function({a, b}, outs);
    };
    const auto expected = compiled({})(x, y), got = compiled(there_)(x.to(there_), y.to(there_));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(equal(on_host(got[i]), expected[i])) << name_of(dtype) << ", result " << i;
    }
  }
}

// Terms enough for chunks, for blocks of leaves within them, and for several groups of rows.
TEST_P(FunctionsOnDevice, SumsOfManyTermsHaveTheBitsOfTheHost) {
  struct Case {
    Extents shape;
    Axes axes;
    Axes order = {};  // of the axes, before the reduction
  };
  const Case cases[] = {{{300'001}, {0}},          {{3, 70'001}, {1}},     {{70'001, 3}, {0}},
                        {{500, 601}, {0, 1}},      {{40, 51, 60}, {0, 2}}, {{40, 51, 60}, {1}},
                        {{300, 401}, {1}, {1, 0}}, {{2'000'003}, {0}},     {{17, 1, 33}, {2, 0}}};
  const auto test = [&](const Case& c, DType dtype,
                        const std::function<Variable(const Variable&, const Axes&)>& reduce) {
    const Tensor x = Tensor::random_normal(c.shape, dtype, {7});
    const auto compiled = [&](Device device) {
      const Variable v = make_input({dtype, c.shape, device}, "x");
      const Variable seen = c.order.empty() ? v : ops::transpose(v, c.order);
      return function({v}, {Out(reduce(seen, c.axes))});
    };
    const Tensor expected = compiled({})(x)[0], got = compiled(there_)(x.to(there_))[0];
    EXPECT_TRUE(equal(on_host(got), expected))
        << to_string(c.shape) << " " << name_of(dtype) << on_host(got) << expected;
  };
  bool is_single = false;
  for (const Case& c : cases) {
    is_single = !is_single;
    test(c, is_single ? DType::float32 : DType::complex64,
         [](const Variable& x, const Axes& axes) { return ops::sum(x, {axes}); });
    test(c, is_single ? DType::complex64 : DType::float32,
         [](const Variable& x, const Axes& axes) { return ops::sum(ops::abs2(x) + 0.25, {axes}); });
    test(c, DType::float64, [](const Variable& x, const Axes& axes) {
      return ops::max(ops::where(x < 0.0, -0.0, ops::minimum(x, 0.0)), {axes});
    });
    test(c, DType::complex128,
         [](const Variable& x, const Axes&) { return ops::norm2(x * 2.0) + ops::norm2(x); });
  }
}

// Random programs with views, updates, loops, choices and borrowed memory, against plain loops.
TEST_P(FunctionsOnDevice, GiveInRandomProgramsWhatPlainLoopsGive) {
  for (std::uint32_t seed = 0; seed < 150 && !HasFailure(); ++seed) {
    testing::RandomProgram program(seed, {.device = there_});
    const Function f = program.compiled(Mode::fast_run);
    testing::CheckedCalls calls(program, f, /*windows=*/0);
    for (int call = 0; call < 2; ++call) {
      calls.call();
      if (HasFailure()) FAIL() << "seed " << seed << ", " << program.describe();
    }
  }
}

// An allocation on either device fails: the call throws, and nothing has changed.
TEST_P(FunctionsOnDevice, KeepEverythingWhenAnAllocationFails) {
  const SharedVariable s = shared(Tensor::ones({64}, DType::float64, there_), {.name = "s"});
  const Variable x = make_input({DType::float64, {64}, there_}, "x");
  const Function f = function({x}, {ops::cumsum(s.var() * x, 0), ops::rfft(s.var() * x)},
                              {.updates = {{s, s.var() + x}}});  // rfft runs on the host
  const Tensor two = Tensor::full<double>({64}, 2, there_);
  int n_failed = 0;
  for (std::uint64_t k = 0; n_failed == static_cast<int>(k); ++k) {
    const FailingAllocator failing(k);
    try {
      EXPECT_EQ(f(two)[0].to_vector<double>()[63], 128);
    } catch (const OutOfMemory&) {
      ++n_failed;
      EXPECT_EQ(s.get_value({.return_internal_type = true}).to_vector<double>(),
                std::vector<double>(64, 1));
    }
  }
  EXPECT_GT(n_failed, 2);
  EXPECT_EQ(s.get_value().to_vector<double>(), std::vector<double>(64, 3));
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceContract, ::testing::ValuesIn(tested_devices()),
                         name_of_device);
INSTANTIATE_TEST_SUITE_P(Devices, SolversOnDevice, ::testing::ValuesIn(tested_devices()),
                         name_of_device);
INSTANTIATE_TEST_SUITE_P(Devices, SharedOnDevice, ::testing::ValuesIn(tested_devices()),
                         name_of_device);
INSTANTIATE_TEST_SUITE_P(Devices, FunctionsOnDevice, ::testing::ValuesIn(tested_devices()),
                         name_of_device);

}  // namespace
}  // namespace palimpsest
