// SPDX-License-Identifier: Apache-2.0
// Operators for debugging: Sleep, Breakpoint, and the log of transfers.
#include "palimpsest/linop/operators/debugging.hpp"

#include <chrono>

#include "linop/linop_support.hpp"
#include "palimpsest/base/config.hpp"
#include "palimpsest/base/log.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/linop/containers/concat.hpp"
#include "palimpsest/linop/containers/stack.hpp"
#include "palimpsest/linop/copies/saving.hpp"
#include "palimpsest/linop/operators/to_device.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "palimpsest/ops/gradient.hpp"
#include "palimpsest/ops/reduce/reduce.hpp"
#include "palimpsest/testing.hpp"

namespace palimpsest {
namespace {

using testing::dense;
using testing::expect_close;
using testing::expect_error;
using testing::random;

// The calls of the hook "count" in each direction since the last query.
struct Counts {
  int forward = 0, adjoint = 0;
  friend bool operator==(const Counts&, const Counts&) = default;
  friend std::ostream& operator<<(std::ostream& stream, const Counts& c) {
    return stream << c.forward << " forward, " << c.adjoint << " adjoint";
  }
};

class Counter {
 public:
  Counter() {
    set_breakpoint_hook("count", [this](const BreakpointHit& hit) {
      ++(hit.direction == PassDirection::forward ? counts_.forward : counts_.adjoint);
    });
  }
  ~Counter() {
    set_breakpoint_hook("count", [](const BreakpointHit&) {});
  }
  Counts since_last() { return std::exchange(counts_, {}); }

 private:
  Counts counts_;
};

// An operator whose applications are counted.
NamedLinop counted(const NamedLinop& A) { return Breakpoint(A.oshape(), "count") * A; }

TEST(Breakpoint, CallsItsHookEachTimeWithTheDirection) {
  Counter counter;
  const NamedLinop B = Breakpoint("A", "count");
  const Tensor x = random({5});
  EXPECT_TRUE(equal(B(x), x));
  EXPECT_EQ(counter.since_last(), (Counts{1, 0}));
  EXPECT_TRUE(equal(B.H()(x), x));
  EXPECT_EQ(counter.since_last(), (Counts{0, 1}));
  B(x);
  B(x);
  EXPECT_EQ(counter.since_last(), (Counts{2, 0}));
  EXPECT_TRUE(equal(B.N()(x), x));
  EXPECT_EQ(counter.since_last(), (Counts{1, 1}));
  EXPECT_TRUE(B.H().H().is(B));
}

TEST(Breakpoint, ShowsTheDataThatPass) {
  std::vector<double> seen;
  set_breakpoint_hook("look", [&](const BreakpointHit& hit) {
    EXPECT_EQ(hit.hook, "look");
    EXPECT_EQ(hit.data.dtype, DType::float64);
    const auto* values = static_cast<const double*>(hit.data.data);
    for (index_t i = 0; i < hit.data.extents[0]; ++i) {
      seen.push_back(values[i * hit.data.strides[0]]);
    }
  });
  (Scalar(2, "A") * Breakpoint("A", "look") * Scalar(3, "A"))(Tensor::from<double>({1, 2}));
  EXPECT_EQ(seen, (std::vector<double>{3, 6}));
  set_breakpoint_hook("look", [](const BreakpointHit&) {});
}

TEST(Breakpoint, IsNeverMergedOrFoldedIntoItsNeighbours) {
  Counter counter;
  const NamedLinop A = Dense(random({4, 3}), "MN,N->M"), B = Breakpoint("N", "count");
  const Tensor x = random({3});
  // Equal parts of a sum are computed once, but not those with a breakpoint.
  const NamedLinop sum = Add(A * B, A * B);
  expect_close(dense(sum), dense(2 * A));
  counter.since_last();
  sum(x);
  EXPECT_EQ(counter.since_last(), (Counts{2, 0}));
  // A transform and its adjoint do not cancel across it.
  const NamedLinop F = Fft(1);
  const NamedLinop through = F.H() * Breakpoint("... Kx", "count") * F;
  EXPECT_LE(testing::difference(through(x), x), 1e-15);
  EXPECT_EQ(counter.since_last(), (Counts{1, 0}));
  F.normal(Breakpoint("... Kx", "count"))(x);
  EXPECT_EQ(counter.since_last(), (Counts{1, 0}));
  // A constant is not folded through it.
  const Function f = function({}, {Out(B(constant(x)))});
  counter.since_last();
  f();
  f();
  EXPECT_EQ(counter.since_last(), (Counts{2, 0}));
}

TEST(Breakpoint, CountsWhatContainersCost) {
  Counter counter;
  const auto part = [&](std::uint64_t stream) {
    return counted(Dense(random({4, 3}, DType::complex128, stream), "MN,N->M"));
  };
  const Tensor x = random({3});
  for (const int n : {1, 2, 3, 5}) {
    std::vector<NamedLinop> parts;
    for (int i = 0; i < n; ++i) parts.push_back(part(static_cast<std::uint64_t>(i)));
    const NamedLinop sum = Add(parts), joined = Concat(parts, {.out = "M"}),
                     stacked = Stack(parts, {.out = {"S", 0}});
    for (const NamedLinop& A : {sum, joined, stacked}) {
      A(x);
      EXPECT_EQ(counter.since_last(), (Counts{n, 0})) << A;
      // 2 n applications, not n^2.
      A.N()(x);
      EXPECT_EQ(counter.since_last(), (Counts{n, n})) << A;
    }
    const NamedLinop across = Concat(parts, {.in = "N"}), diagonal = BlockDiagonal(parts, "N", "M");
    const Tensor wide = random({3 * n});
    for (const NamedLinop& A : {across, diagonal}) {
      A.N()(wide);
      EXPECT_EQ(counter.since_last(), (Counts{n, n})) << A;
    }
    const NamedLinop of_slices = Stack(parts, {.in = {"S", 0}});
    of_slices.N()(random({n, 3}));
    EXPECT_EQ(counter.since_last(), (Counts{n, n})) << of_slices;
  }
}

TEST(Breakpoint, IsCalledByGradientsToo) {
  Counter counter;
  const NamedLinop A = counted(Dense(random({4, 3}), "MN,N->M"));
  const Variable x = make_input({DType::complex128, {3}, {}}, "x");
  const Variable g = grad(ops::sum(ops::real(A(x)), {}), x);
  const Function f = function({x}, {Out(g)}, {.on_unused_input = Reaction::ignore});
  counter.since_last();
  const Tensor gradient = f(random({3}))[0];
  EXPECT_EQ(counter.since_last().adjoint, 1);
  EXPECT_LE(testing::difference(gradient, A.H()(Tensor::ones({4}, DType::complex128))), 1e-14);
}

TEST(Breakpoint, WhatItsHookThrowsEndsTheCall) {
  bool throws = true;
  set_breakpoint_hook("throw", [&](const BreakpointHit&) {
    if (throws) throw ValueError("[hook] no further");
  });
  const NamedLinop A = Scalar(2, "A") * Breakpoint("A", "throw");
  const Tensor x = random({3}), before = x.clone();
  expect_error<ValueError>([&] { A(x); }, "no further");
  EXPECT_TRUE(equal(x, before));
  throws = false;
  EXPECT_LE(testing::difference(A(x), (2 * Identity("A"))(x)), 0);
  set_breakpoint_hook("throw", [](const BreakpointHit&) {});
}

TEST(Breakpoint, KnowsItsHookByName) {
  expect_error<ValueError>([] { Breakpoint("A", "nobody"); }, "[Breakpoint] hook: got 'nobody'");
  expect_error<ValueError>(
      [] {
        ops::breakpoint(make_input({DType::float64, {2}, {}}), "nobody");
      },
      "[breakpoint] hook");
  expect_error<ValueError>([] { set_breakpoint_hook("", [](const BreakpointHit&) {}); }, "hook");
  expect_error<ValueError>([] { set_breakpoint_hook("none", {}); }, "hook");
  Counter counter;
  const NamedLinop A = counted(Diagonal(random({3}), "A"));
  EXPECT_THAT(breakpoint_hooks(), ::testing::Contains("count"));
  const NamedLinop loaded = from_bytes(to_bytes(A));
  loaded(random({3}));
  EXPECT_EQ(counter.since_last(), (Counts{1, 0}));
}

double seconds_of(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(Sleep, WaitsInTheForwardDirectionOnly) {
  constexpr double kSeconds = 0.25;
  const NamedLinop A = Sleep(kSeconds, "A");
  const Tensor x = random({3});
  EXPECT_TRUE(equal(A.H()(x), x));
  EXPECT_TRUE(equal(A(x), x));
  EXPECT_GE(seconds_of([&] { A(x); }), kSeconds);
  EXPECT_GE(seconds_of([&] { A.N()(x); }), kSeconds);
  // A busy machine may take longer; Sleep itself takes at least its time.
  double shortest = INFINITY;
  for (int i = 0; i < 5; ++i) {
    shortest = std::min(shortest, seconds_of([&] { A.H()(x); }));
  }
  EXPECT_LT(shortest, kSeconds);
  EXPECT_EQ(Sleep().attr("seconds").as_real(), 0.1);
  expect_error<ValueError>([] { Sleep(-1); }, "[Sleep] seconds");
  expect_error<ValueError>([] { Sleep(NAN); }, "seconds");
  expect_error<ValueError>(
      [] {
        ops::sleep(make_input({DType::float64, {2}, {}}), -1);
      },
      "[sleep] seconds");
}

std::size_t lines_about_transfers(const std::function<void()>& f) {
  ::testing::internal::CaptureStderr();
  f();
  const std::string text = ::testing::internal::GetCapturedStderr();
  std::size_t n = 0;
  for (std::size_t at = text.find("[ToDevice]"); at != std::string::npos;
       at = text.find("[ToDevice]", at + 1)) {
    ++n;
  }
  return n;
}

TEST(LogDeviceTransfers, IsOneLineForEachTransferWhileItIsOn) {
  const Device here{}, there{DeviceType::cpu, 1};
  const NamedLinop A =
      Chain(ToDevice(here, there, "A B"), Scalar(2, "A B"), ToDevice(there, here, "A B"));
  const Tensor x = random({4, 3}, DType::complex64);
  EXPECT_EQ(lines_about_transfers([&] { A(x); }), 0U);
  {
    const ConfigScope scope({.log_device_transfers = true});
    EXPECT_EQ(lines_about_transfers([&] { A(x); }), 2U);
    EXPECT_EQ(lines_about_transfers([&] { A.H()(x); }), 2U);
    EXPECT_EQ(lines_about_transfers([&] { ToDevice(here, here)(x); }), 0U) << "a view";
    ::testing::internal::CaptureStderr();
    ToDevice(here, there)(x);
    const std::string text = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(text.find("complex64 (4, 3), 96 bytes, to cpu:1"), std::string::npos) << text;
  }
  EXPECT_EQ(lines_about_transfers([&] { A(x); }), 0U);
}

}  // namespace
}  // namespace palimpsest
