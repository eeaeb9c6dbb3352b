// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "linop/linop_support.hpp"
#include "palimpsest/base/config.hpp"
#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/linop/operators/pad_dim.hpp"
#include "palimpsest/linop/operators/restrict.hpp"
#include "palimpsest/linop/operators/roll.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "support/window.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using testing::random;

NamedLinop matrix_operator() { return Dense(random({4, 3}), "MN,N->M"); }

TEST(Application, ToAVariableBuildsAGraph) {
  const NamedLinop A = matrix_operator();
  const Variable x = make_input({DType::complex128, {3}, {}}, "x");
  const Variable y = A(x);
  EXPECT_EQ(y.type().shape, Extents{4});
  const Tensor value = random({3});
  const Function f = function({x}, {Out(y)});
  EXPECT_TRUE(equal(f(value)[0], A(value)));
}

TEST(Application, CompilesOncePerSignature) {
  const NamedLinop A = Fft(1);
  A(random({3}));
  A(random({3}));
  EXPECT_EQ(A.node()->compiled.size(), 1u);
  A(random({4}));
  A(random({3}, DType::complex64));
  A.plan({DType::complex64, {3}, {}});
  EXPECT_EQ(A.node()->compiled.size(), 3u);
}

TEST(Application, TheLeastRecentlyUsedFunctionGoesFirst) {
  const ConfigScope scope({.function_cache = 2});
  const NamedLinop A = Fft(1);
  A(random({3}));
  A(random({4}));
  A(random({3}));
  A(random({5}));
  ASSERT_EQ(A.node()->compiled.size(), 2u);
  EXPECT_EQ(A.node()->compiled[0].type.shape, Extents{3});
  EXPECT_EQ(A.node()->compiled[1].type.shape, Extents{5});
  const ConfigScope none({.function_cache = 0});
  const NamedLinop B = Fft(1);
  EXPECT_EQ(B(random({3})).numel(), 3);
  EXPECT_TRUE(B.node()->compiled.empty());
}

TEST(Application, ResultsAreTheCallersAndTheInputIsNeverWritten) {
  const NamedLinop A = Identity("N");
  Tensor x = Tensor::ones({3});
  Tensor y = A(x);
  EXPECT_FALSE(shares_storage(x, y));
  y.fill(2.0);
  EXPECT_TRUE(equal(x, Tensor::ones({3})));
  x.fill(5.0);
  EXPECT_EQ(y.at<double>({0}), 2.0);
}

TEST(Application, StridedInputsGiveTheSameResult) {
  const NamedLinop A = matrix_operator();
  const Tensor wide = random({3, 2});
  const Tensor x = wide.select(1, 1);
  EXPECT_TRUE(equal(A(x), A(x.clone())));
}

TEST(Application, IntoADestination) {
  const NamedLinop A = matrix_operator();
  const Tensor x = random({3});
  for (const WindowLayout layout : kWindowLayouts) {
    testing::Window out({4}, DType::complex128, layout);
    A.apply(x, out.tensor());
    EXPECT_TRUE(allclose(out.tensor(), A(x), 1e-13, 1e-13));
  }
  const NamedLinop F = Fft(1);
  Tensor y = random({6});
  const Tensor expected = F(y);
  F.apply(y, y);
  EXPECT_TRUE(equal(y, expected));
  Tensor wrong = Tensor::zeros({5}, DType::complex128);
  expect_error<ShapeError>([&] { A.apply(x, wrong); }, "(5,)");
  expect_error<ShapeError>([&] { A.apply(x, wrong); }, "[" + A.name() + "] [call_into]");
  Tensor narrow = Tensor::zeros({4}, DType::complex64);
  expect_error<DTypeError>([&] { A.apply(x, narrow); }, "complex64");
}

// The result is the leading part of an array that another operator makes.
TEST(Application, APartOfAnArrayIsWrittenInsideItsDestination) {
  const NamedLinop F = Fft(1, {.batch = Dims()});
  const Dims k = F.oshape();
  const NamedLinop all[] = {Truncate("A", 60, 40, "A") * Roll("A", "A", {7}),
                            Truncate(k[0], 60, 40, k) * F, Restrict(k, {{k[0], slice(0, 40)}}) * F};
  const Tensor x = random({60});
  for (const NamedLinop& A : all) {
    const Tensor expected = A(x);
    for (const WindowLayout layout : kWindowLayouts) {
      testing::Window out(expected.shape(), expected.dtype(), layout);
      A.apply(x, out.tensor());
      EXPECT_TRUE(allclose(out.tensor(), expected, 1e-12, 1e-12)) << A;
    }
  }
  const NamedLinop rows = PadDim("A", 20, 30, "A B").H() * Roll("A1 B", "A1", {3});
  const Tensor plane = random({30, 20}), expected = rows(plane);
  testing::Window out(expected.shape(), expected.dtype());
  rows.apply(plane, out.tensor());
  EXPECT_TRUE(equal(out.tensor(), expected));
}

TEST(Application, NeverIntoAParameter) {
  Tensor w = random({3});
  const NamedLinop A = Chain(Identity("N"), Diagonal(Parameter::borrow(w), "N"));
  const Tensor before = w.clone();
  expect_error<AliasError>([&] { A.apply(random({3}), w); }, "[Chain[1]/Diagonal]");
  EXPECT_TRUE(equal(w, before));
}

TEST(Application, ThePlannedPeakIsTheMeasuredOne) {
  const NamedLinop A = Chain(Dense(random({4, 8, 8}), "C Ny Nx,Ny Nx->C Ny Nx"),
                             Fft(2, {.batch = "C", .grid = Grid{"NyNx", "KyKx"}}));
  for (const NamedLinop& B : {A, A.H(), A.N()}) {
    const Extents extents = B.is(A) || B.is(A.N()) ? Extents{8, 8} : Extents{4, 8, 8};
    const Plan plan = B.plan({DType::complex128, extents, {}});
    const Tensor x = random(extents);
    const MemoryScope scope;
    B(x);
    EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), plan.peak_bytes) << B;
  }
}

TEST(Application, ErrorsNameThePathAndTheDimension) {
  const NamedLinop A = matrix_operator();
  const NamedLinop chain = Chain(Identity("N"), Chain(Scalar(2, "N"), A));
  expect_error<ShapeError>([&] { A(random({5})); }, "[Dense] size of dim 'N': expected 3, got 5");
  expect_error<ShapeError>([&] { A(random({3, 1})); }, "expects 1 axis");
  expect_error<ShapeError>([&] { A(random({})); }, "expects");
  expect_error<ShapeError>([&] { chain(random({5})); }, "[Chain] size of dim 'N'");
  expect_error<DTypeError>([&] { A(Tensor::ones({3}, DType::int64)); }, "expected floating");
  expect_error<DTypeError>([&] { A(Tensor::ones({3}, DType::bool_)); }, "expected floating");
  expect_error<DTypeError>(
      [&] { chain(random({3}, DType::complex64)); },
      "[Chain[1]/Chain[1]/Dense] precision: parameter 'weight' is "
      "complex128, x is complex64. Try A.to(DType::complex64) or x.to(DType::complex128)");
  expect_error<ShapeError>(
      [&] {
        A(make_input({DType::complex128, {kUnknown}, {}}));
      },
      "known extents");
}

TEST(Application, DataAndParametersAreOnOneDevice) {
  const NamedLinop A = Diagonal(Tensor::ones({3}, DType::float64, Device{DeviceType::cpu, 1}), "N");
  expect_error<DeviceError>([&] { A(Tensor::ones({3})); },
                            "[Diagonal] device: parameter 'weight' is on cpu:1");
}

TEST(Application, DtypesFollowTheRule) {
  const Tensor real = Tensor::ones({3}), complex = Tensor::ones({3}, DType::complex128);
  EXPECT_EQ(Scalar(2, "N")(real).dtype(), DType::float64);
  EXPECT_EQ(Scalar(2, "N")(real.to(DType::float32)).dtype(), DType::float32);
  EXPECT_EQ(Scalar(std::complex<double>(0, 1), "N")(real).dtype(), DType::complex128);
  EXPECT_EQ(Diagonal(real, "N")(real).dtype(), DType::float64);
  EXPECT_EQ(Diagonal(real, "N")(complex).dtype(), DType::complex128);
  EXPECT_EQ(Diagonal(complex, "N")(real).dtype(), DType::complex128);
  EXPECT_EQ(Fft(1)(real).dtype(), DType::complex128);
  EXPECT_EQ(Fft(1)(real.to(DType::float32)).dtype(), DType::complex64);
  EXPECT_EQ(Add(Identity("N"), Diagonal(complex, "N"))(real).dtype(), DType::complex128);
}

TEST(Application, WritingAParameterNeedsNoNewCompilation) {
  const NamedLinop A = matrix_operator();
  const Tensor x = random({3});
  A(x);
  Parameter w = A.param("weight");
  const Tensor other = random({4, 3}, DType::complex128, 8);
  w.set_value(other);
  EXPECT_TRUE(equal(A(x), Dense(other, "MN,N->M")(x)));
  EXPECT_EQ(A.node()->compiled.size(), 1u);
}

TEST(Application, ConcurrentCallsGiveTheSameResult) {
  const NamedLinop A = Chain(matrix_operator(), Diagonal(random({4}), "M"));
  const Tensor x = random({3});
  const Tensor expected = A(x);
  const NamedLinop B = A.copy();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 20; ++k) EXPECT_TRUE(equal(B(x), expected));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace palimpsest
