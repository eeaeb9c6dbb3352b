// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/core/parameter.hpp"

#include <atomic>
#include <thread>

#include "linop/linop_support.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/graph/inputs.hpp"
#include "palimpsest/linop/copies/copying.hpp"
#include "palimpsest/linop/copies/saving.hpp"
#include "palimpsest/linop/transforms/convolution.hpp"
#include "palimpsest/linop/transforms/nufft.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "palimpsest/ops/gradient.hpp"
#include "palimpsest/ops/products/products.hpp"
#include "palimpsest/ops/reduce/reduce.hpp"
#include "support/long_run.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using testing::random;

TEST(Parameter, AbsentOnesAreTheSame) {
  const Parameter none;
  EXPECT_FALSE(none.present());
  EXPECT_TRUE(none.is(Parameter()));
  EXPECT_FALSE(none.is(Parameter(Tensor::ones({2}))));
  expect_error<ValueError>([&] { none.var(); }, "absent");
  expect_error<ValueError>([&] { none.value(); }, "absent");
}

TEST(Parameter, IsIndependentOfTheTensorItWasMadeFrom) {
  Tensor t = Tensor::ones({3});
  Parameter p = t;
  t.fill(2.0);
  EXPECT_TRUE(equal(p.value(), Tensor::ones({3})));
  Tensor out = p.value();
  out.fill(5.0);
  EXPECT_TRUE(equal(p.value(), Tensor::ones({3})));
  const Parameter borrowed = Parameter::borrow(t);
  t.fill(3.0);
  EXPECT_EQ(borrowed.value().at<double>({0}), 3.0);
  EXPECT_TRUE(borrowed.shares_storage(borrowed));
  EXPECT_FALSE(borrowed.shares_storage(p));
}

TEST(Parameter, WritesAreSeenByEveryHandleAndRaiseTheVersion) {
  Parameter p = Tensor::ones({3});
  const Parameter q = p;
  const auto version = q.version();
  p.set_value(Tensor::zeros({3}));
  EXPECT_TRUE(equal(q.value(), Tensor::zeros({3})));
  EXPECT_GT(q.version(), version);
  p.modify([](Tensor& t) { t.fill(7.0); });
  EXPECT_EQ(q.value().at<double>({1}), 7.0);
  const auto later = q.version();
  p.touch();
  EXPECT_GT(q.version(), later);
}

TEST(Parameter, KeepsItsType) {
  Parameter p = Tensor::ones({3});
  EXPECT_EQ(p.shape(), Extents{3});
  EXPECT_EQ(p.dtype(), DType::float64);
  expect_error<ShapeError>([&] { p.set_value(Tensor::ones({4})); }, "(4,)");
  expect_error<DTypeError>([&] { p.set_value(Tensor::ones({3}, DType::float32)); }, "float32");
  EXPECT_TRUE(equal(p.value(), Tensor::ones({3})));
}

TEST(Parameter, TakesVariablesOfFixedShape) {
  const SharedVariable fixed = shared(Tensor::ones({3}));
  EXPECT_TRUE(Parameter(fixed).variable().is(fixed));
  const SharedVariable open = shared(Tensor::ones({3}), {.shape = std::nullopt});
  expect_error<ValueError>([&] { Parameter p(open); }, "an extent is open");
  expect_error<ValueError>([&] { Parameter p{Tensor()}; }, "undefined");
}

TEST(Parameter, DerivedValuesFollowTheirSources) {
  Parameter w = Tensor::from<double>({1, -2, 3});
  const Parameter squares = Parameter::derived(ops::abs2(w.var()));
  EXPECT_TRUE(squares.is_derived());
  EXPECT_FALSE(w.is_derived());
  EXPECT_EQ(squares.value().to_vector<double>(), (std::vector<double>{1, 4, 9}));
  const auto version = squares.version();
  squares.refresh();
  EXPECT_EQ(squares.version(), version);
  w.set_value(Tensor::from<double>({2, 2, 2}));
  squares.refresh();
  EXPECT_EQ(squares.value().to_vector<double>(), (std::vector<double>{4, 4, 4}));
}

// Also in a function that does not record that it holds a derived value.
TEST(Parameter, DerivedValuesAreUpToDateInEveryFunction) {
  Parameter W(testing::random({3, 4}));
  const NamedLinop A = Dense(W, "MN,N->M");
  const Variable x = make_input({DType::complex128, {4}, {}}, "x");
  const Function f = function({x}, {Out(A.N()(x))});
  const Tensor v = testing::random({4});
  f(v);
  W.set_value(testing::random({3, 4}, DType::complex128, 23));
  EXPECT_LE(testing::difference(f(v)[0], A.H()(A(v))), 1e-14);
  W.modify([](Tensor& t) { t.fill(1); });
  EXPECT_LE(testing::difference(f(v)[0], A.H()(A(v))), 1e-14);
  // Chained: derived values of derived values.
  Parameter w = Tensor::from<double>({1, 2});
  const Parameter twice = Parameter::derived(w.var() * 2.0),
                  squares = Parameter::derived(ops::abs2(twice.var()));
  const Function g = function({}, {Out(squares.var() + 0.0)});
  w.set_value(Tensor::from<double>({3, -1}));
  EXPECT_EQ(g()[0].to_vector<double>(), (std::vector<double>{36, 4}));
}

// The error of the gradient of |N x|^2 / 2 with respect to the source of N.
double gradient_error(const NamedLinop& N, const Parameter& p, const Tensor& x) {
  const Variable in = make_input({x.dtype(), x.shape(), {}}, "x");
  const Variable loss = ops::norm2(N(in)) * 0.5;
  const Function f =
      function({in}, {Out(loss), Out(grad(loss, p.var(), {.disconnected = Disconnected::zero}))});
  const Tensor gradient = f(x)[1], center = p.value();
  const Tensor direction = testing::random(p.shape(), p.dtype(), 77);
  Parameter written = p;
  const auto loss_at = [&](double step) {
    const auto c = testing::values(center), d = testing::values(direction);
    std::vector<testing::Complex> moved(c.size());
    for (std::size_t i = 0; i < c.size(); ++i) moved[i] = c[i] + step * d[i];
    written.set_value(Tensor::from(moved, center.shape()));
    return f(x)[0].item<double>();
  };
  constexpr double kStep = 1e-4;
  const double difference = (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep);
  written.set_value(center);
  double slope = 0, scale = 0;
  const auto g = testing::values(gradient), d = testing::values(direction);
  for (std::size_t i = 0; i < g.size(); ++i) {
    slope += (std::conj(g[i]) * d[i]).real();
    scale += std::norm(g[i]);
  }
  EXPECT_GT(scale, 0);
  return std::abs(slope - difference) / std::abs(difference);
}

// B needs the weight and its Gram matrix: both old or both new.
TEST(Parameter, SourcesAndWhatIsDerivedAreOfOneMoment) {
  const auto full = [](double v) { return Tensor::full<double>({4, 2}, v); };
  const NamedLinop A = Dense(full(1), "MN,N->M");
  const NamedLinop operators[] = {Chain(A.N(), A), Chain(A, A.H(), A), A.N() + A.N(),
                                  Chain(A.N(), A.N(), A)};
  const double cubes[] = {1000, 1000, 100, 1e5};
  const Tensor x = Tensor::ones({2});
  std::vector<double> one;
  for (const NamedLinop& B : operators) one.push_back(B(x).at<double>({0}));
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    Parameter w = A.param("weight");
    for (int i = 0; !stop; ++i) w.set_value(full(i % 2 == 0 ? 10 : 1));
  });
  int torn = 0;
  const int rounds = testing::longer_unless_sanitized(3000);
  for (int n = 0; n < rounds; ++n) {
    for (std::size_t k = 0; k < std::size(operators); ++k) {
      const double ratio = operators[k](x).at<double>({0}) / one[k];
      torn += std::abs(ratio - 1) > 1e-9 && std::abs(ratio / cubes[k] - 1) > 1e-9;
    }
  }
  stop = true;
  writer.join();
  EXPECT_EQ(torn, 0);
}

TEST(Parameter, OneStretchedTensorOccupiesWhatItHas) {
  const MemoryScope memory;
  const Tensor w = random({5, 1}).expand({5, 100'000});
  const NamedLinop A = Diagonal(w, "C N");
  EXPECT_LE(memory.peak_bytes(), 1024);
  EXPECT_EQ(A.param("weight").shape(), (Extents{5, 100'000}));
  const Tensor x = random({5, 100'000});
  EXPECT_TRUE(equal(A(x), Diagonal(w.clone(), "C N")(x)));
  EXPECT_TRUE(equal(A.deepcopy()(x), A(x)));
  EXPECT_TRUE(equal(A.split({{"N", slice(10, 20)}})(x(all, slice(10, 20)).clone()),
                    A(x)(all, slice(10, 20))));
}

// Every way to write, for a stretched tensor and for windows that overlap.
TEST(Parameter, WritingGivesEachElementMemoryOfItsOwn) {
  for (const Tensor& w :
       {random({3}).expand({4, 3}), random({6}).unfold(0, 3, 1), random({1}).expand({4, 3})}) {
    const Tensor before = w.clone(), after = random({4, 3}, DType::complex128, 9);
    const Tensor x = random({3}, DType::complex128, 7);
    const auto result = [&](const Tensor& weight) { return Dense(weight, "MN,N->M")(x); };
    const NamedLinop A = Dense(w, "MN,N->M"), H = A.H(), tile = A.split({{"M", slice(1, 3)}});
    for (const NamedLinop& copy : {A.deepcopy(), A.deepcopy(Copy::eager), from_bytes(to_bytes(A)),
                                   A.to(DType::complex64).to(DType::complex128)}) {
      const Tensor y = copy(x);
      Parameter p = copy.param("weight");
      p.set_value(after);
      EXPECT_TRUE(equal(copy(x), result(after)));
      EXPECT_TRUE(allclose(y, A(x), 1e-5, 1e-5));
    }
    Parameter part = tile.param("weight");
    part.modify([](Tensor& t) { t.fill(2.0); });
    Tensor expected = before.clone();
    expected.narrow(0, 1, 2).fill(2.0);
    EXPECT_TRUE(equal(A.param("weight").value(), expected));
    EXPECT_TRUE(equal(A(x), result(expected)));
    EXPECT_TRUE(equal(tile(x), A(x).narrow(0, 1, 2)));
    EXPECT_TRUE(equal(H.H()(x), A(x)));
    Parameter p = A.param("weight");
    p.set_value(after);
    EXPECT_TRUE(equal(A(x), result(after)));
    p.set_value(w);
    EXPECT_TRUE(equal(A(x), result(before)));
    EXPECT_TRUE(equal(w, before)) << "the caller's tensor";
  }
}

TEST(Parameter, FunctionsUpdateStretchedValues) {
  const NamedLinop A = Diagonal(Tensor::scalar(2.0).expand({3}), "N");
  const SharedVariable w = A.param("weight").variable();
  const Variable x = tensor(DType::float64, {3}, "x");
  const Function step = function({x}, Out(A(x)), {.updates = {{w, w.var() + x}}});
  const Tensor v = Tensor::from<double>({1, 2, 3});
  EXPECT_EQ(step(v)[0].to_vector<double>(), std::vector<double>({2, 4, 6}));
  EXPECT_EQ(step(v)[0].to_vector<double>(), std::vector<double>({3, 8, 15}));
  EXPECT_EQ(w.get_value().to_vector<double>(), std::vector<double>({4, 6, 8}));
  // A variable of a function has its own elements from the start.
  SharedVariable s = shared(Tensor::scalar(2.0).expand({3}));
  s.modify([](Tensor& t) { t.set<double>({1}, 5.0); });
  EXPECT_EQ(s.get_value().to_vector<double>(), std::vector<double>({2, 5, 2}));
}

// Tensors that are given together stay one memory. A view of it takes what one memory can hold.
TEST(Parameter, SharedElementsTakeOneValue) {
  const Tensor row = Tensor::from<double>({1, 2, 3});
  const std::vector<Parameter> p = parameters({row, row.expand({2, 3})});
  Parameter stretched = p[1];
  stretched.set_value(Tensor::from<double>({4, 5, 6, 4, 5, 6}, Extents{2, 3}));
  EXPECT_EQ(p[0].value().to_vector<double>(), std::vector<double>({4, 5, 6}));
  expect_error<ValueError>(
      [&] {
        stretched.set_value(Tensor::arange(6).to(DType::float64).view({2, 3}));
      },
      "share memory");
  EXPECT_EQ(p[0].value().to_vector<double>(), std::vector<double>({4, 5, 6}));
  stretched.modify([](Tensor& t) { t.fill(7.0); });
  EXPECT_EQ(p[0].value().to_vector<double>(), std::vector<double>({7, 7, 7}));
}

TEST(Parameter, TilesWithoutElementsAreCopiedMovedAndSaved) {
  const NamedLinop A = Diagonal(Tensor::zeros({3, 2, 0}), "A B C").split({{"B", slice(1, 2)}});
  const Tensor x = Tensor::zeros({3, 1, 0});
  EXPECT_EQ(A(x).shape(), x.shape());
  EXPECT_EQ(A.deepcopy()(x).shape(), x.shape());
  EXPECT_EQ(from_bytes(to_bytes(A))(x).shape(), x.shape());
  const Device other = Device::parse("cpu:1");
  EXPECT_EQ(A.to(other)(x.to(other)).shape(), x.shape());
}

TEST(Parameter, GradientsReachTrainableSourcesThroughWhatIsDerived) {
  const Tensor x = testing::random({4});
  const Parameter W = Parameter(testing::random({8, 4})).as_trainable();
  const NamedLinop A = Dense(W, "MN,N->M");
  ASSERT_TRUE(A.N().param("weight").is_derived()) << "a Gram weight";
  EXPECT_LE(gradient_error(A.N(), W, x), 1e-6);
  const Parameter h = Parameter(testing::random({3})).as_trainable();
  const NamedLinop C = Convolution(
      h, {.batch = Dims(), .boundary = Boundary::circular, .normal = ConvolutionNormal::kernel});
  EXPECT_LE(gradient_error(C.N(), h, x), 1e-6);
  const NamedLinop F = FftConvolution(h, {.batch = Dims()});
  EXPECT_LE(gradient_error(F, h, x), 1e-6);
  EXPECT_LE(gradient_error(F.N(), h, x), 1e-6);
  const Parameter w = Parameter(testing::random({5})).as_trainable();
  const NamedLinop S = Sampling({Tensor::from<index_t>({0, 3, 3, 1, 2})}, {4},
                                {.input = Dims("N"), .batch = Dims()});
  ASSERT_EQ(S.normal(Diagonal(w, "K")).name(), "Diagonal");
  EXPECT_LE(gradient_error(S.normal(Diagonal(w, "K")), w, x), 1e-6);
  const NamedLinop T = Nufft(Tensor::from<double>({0.3, -1.2, 1.9, 0.7, -0.4}, Extents{5, 1}), {4},
                             "K", {.batch = Dims(), .toeplitz = Toeplitz::yes});
  EXPECT_LE(gradient_error(T.normal(Diagonal(w, "K")), w, x), 1e-6);
  const Parameter s = Parameter(Tensor::scalar(testing::Complex(2, -1))).as_trainable();
  EXPECT_LE(gradient_error(A / s, s, x), 1e-6);
}

TEST(Parameter, ViewsShowAndWritePartsOfTheVariable) {
  Parameter whole = Tensor::from<double>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, Extents{3, 4});
  Parameter box = whole.view({1, 1}, {2, 2});
  EXPECT_TRUE(box.is_view());
  EXPECT_EQ(box.value().to_vector<double>(), std::vector<double>({5, 6, 9, 10}));
  EXPECT_EQ(box.view_start(), (Extents{1, 1}));
  EXPECT_TRUE(box.variable().is(whole.variable()));
  EXPECT_TRUE(box.shares_storage(whole));
  EXPECT_FALSE(box.is(whole));
  EXPECT_TRUE(box.is(whole.narrow(0, 1, 2).narrow(1, 1, 2)));
  EXPECT_TRUE(whole.view({0, 0}, {3, 4}).is(whole));
  const auto version = whole.version();
  box.set_value(Tensor::zeros({2, 2}));
  EXPECT_GT(whole.version(), version);
  EXPECT_EQ(whole.value().to_vector<double>(),
            std::vector<double>({0, 1, 2, 3, 4, 0, 0, 7, 8, 0, 0, 11}));
  box.modify([](Tensor& t) { t.fill(-1); });
  EXPECT_EQ(whole.value().at<double>({2, 2}), -1);
  EXPECT_EQ(box.borrowed().storage().id(), whole.borrowed().storage().id());
  // Backwards, with steps, and any strides.
  EXPECT_EQ(whole.view({slice({}, {}, -2), slice(3, 4)}).value().to_vector<double>(),
            std::vector<double>({11, 3}));
  Parameter odd = whole.view(ElementLayout{DType::float64, {2, 2}, {5, 1}, 0});
  EXPECT_EQ(odd.value().to_vector<double>(), std::vector<double>({0, 1, -1, -1}));
  odd.set_value(Tensor::full({2, 2}, 9.0));
  EXPECT_EQ(whole.value().to_vector<double>(),
            std::vector<double>({9, 9, 2, 3, 4, 9, 9, 7, 8, -1, -1, 11}));
}

TEST(Parameter, ViewsCountInRowMajorOrderWhereverElementsLie) {
  const Tensor turned =
      Tensor::from<double>({0, 3, 1, 4, 2, 5}, Extents{3, 2}).transpose(0, 1);  // 0 1 2; 3 4 5
  Parameter p = turned;
  Parameter part = p.view(ElementLayout{DType::float64, {2}, {4}, 1});
  EXPECT_EQ(part.value().to_vector<double>(), std::vector<double>({1, 5}));
  part.set_value(Tensor::from<double>({7, 8}));
  EXPECT_EQ(p.value().to_vector<double>(), std::vector<double>({0, 7, 2, 3, 4, 8}));
}

TEST(Parameter, ViewsInGraphsAreViewsAndGradientsReachTheWhole) {
  const Parameter whole = Tensor::from<double>({1, 2, 3, 4});
  for (const Parameter& part :
       {whole.view({slice(1, 3)}), whole.view(ElementLayout{DType::float64, {2}, {-1}, 2})}) {
    const Variable g = grad(ops::sum(part.var() * part.var(), {}), whole.var());
    EXPECT_EQ(function({}, {Out(g)})()[0].to_vector<double>(), std::vector<double>({0, 4, 6, 0}));
  }
}

TEST(Parameter, WrongViewsAreRefused) {
  const Parameter p = Tensor::ones({3, 4});
  expect_error<ShapeError>([&] { p.view({0}, {3}); }, "one per axis");
  expect_error<ValueError>([&] { p.view({0, 2}, {3, 3}); }, "out of range");
  expect_error<ValueError>([&] { p.view({0, -1}, {3, 1}); }, "out of range");
  expect_error<ShapeError>([&] { p.narrow(2, 0, 1); }, "axis 2");
  expect_error<ShapeError>([&] { p.view({slice(0, 1)}); }, "one per axis");
  expect_error<ValueError>([&] { p.view({slice(0, 1, 0), slice(0, 1)}); }, "step");
  expect_error<ShapeError>([&] { p.view(ElementLayout{DType::float64, {2}, {12}, 0}); }, "outside");
  Parameter part = p.narrow(0, 0, 1);
  expect_error<ShapeError>([&] { part.set_value(Tensor::ones({4})); }, "(1, 4)");
  expect_error<DTypeError>(
      [&] {
        part.set_value(Tensor::ones({1, 4}, DType::float32));
      },
      "float32");
  expect_error<ValueError>([&] { p.expression(); }, "not derived");
}

TEST(Parameter, TensorsOnOneStorageBecomeViewsOfOneVariable) {
  const Tensor all = Tensor::from<double>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  const Tensor other = Tensor::ones({2});
  const std::vector<Parameter> p = parameters({all.narrow(0, 2, 4), other, all.narrow(0, 4, 3)});
  EXPECT_TRUE(p[0].variable().is(p[2].variable()));
  EXPECT_FALSE(p[0].variable().is(p[1].variable()));
  EXPECT_FALSE(p[1].is_view());
  EXPECT_EQ(p[2].value().to_vector<double>(), std::vector<double>({4, 5, 6}));
  Parameter first = p[0];
  first.modify([](Tensor& t) { t.fill(-1); });
  EXPECT_EQ(p[2].value().to_vector<double>(), std::vector<double>({-1, -1, 6}));
  EXPECT_EQ(all.at<double>({4}), 4);
  // No more bytes than are used.
  EXPECT_LE(p[0].borrowed().storage().nbytes(), 5U * 8 + 63);
}

TEST(Parameter, TrainableOnesSaySo) {
  EXPECT_FALSE(Parameter(Tensor::ones({2})).is_trainable());
  const Parameter p = Parameter::trainable(Tensor::ones({2}));
  EXPECT_TRUE(p.is_trainable());
  EXPECT_TRUE(p.narrow(0, 0, 1).is_trainable());
  EXPECT_FALSE(p.as_trainable(false).is_trainable());
  EXPECT_TRUE(Diagonal(p, "N").H().param("weight").is_trainable());
}

}  // namespace
}  // namespace palimpsest
