// SPDX-License-Identifier: Apache-2.0
// Every operator, its adjoint, normal operator and tiles obey the laws, in four dtypes, for odd and
// even sizes, with batch dimensions, alone and in each container.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "contract/linop_samples.hpp"

namespace palimpsest {
namespace {

using testing::input_extents;
using testing::LinopSample;

class LinopContract : public ::testing::TestWithParam<LinopSample> {
 protected:
  static void expect_holds(const NamedLinop& A, TestOptions options, DType dtype) {
    options.dtype = dtype;
    const ContractReport report = check_contract(A, options);
    EXPECT_TRUE(report.ok()) << A << "\n" << name_of(dtype) << "\n" << report.str();
  }

  Extents extents() const {
    return input_extents(GetParam().make(DType::complex128), GetParam().options);
  }

  // With recorded sizes of its input, which its adjoint may need.
  NamedLinop sized() const {
    NamedLinop A = GetParam().make(DType::complex128);
    DimMap missing;
    for (const auto& [d, n] : GetParam().options.sizes) {
      if (A.dims().contains(d) && !A.size(d)) missing.emplace(d, n);
    }
    return missing.empty() ? A : A.with_sizes(missing);
  }

  // The output's extents, for operators on the same device.
  static Extents output_of(const NamedLinop& A, const Extents& input) {
    return A(Tensor::zeros(input, DType::complex128)).shape();
  }
};

TEST_P(LinopContract, HoldsInDouble) {
  expect_holds(GetParam().make(DType::complex128), GetParam().options, DType::complex128);
}

TEST_P(LinopContract, HoldsInSingle) {
  expect_holds(GetParam().make(DType::complex64), GetParam().options, DType::complex64);
}

TEST_P(LinopContract, HoldsForRealData) {
  expect_holds(GetParam().make(DType::complex64), GetParam().options, DType::float32);
  expect_holds(GetParam().make(DType::complex128), GetParam().options, DType::float64);
}

TEST_P(LinopContract, HoldsForTheAdjoint) {
  const NamedLinop A = sized();
  expect_holds(A.H(), {.extents = output_of(A, extents())}, DType::complex128);
}

TEST_P(LinopContract, HoldsForTheNormalOperator) {
  expect_holds(GetParam().make(DType::complex128).N(), {.extents = extents()}, DType::complex128);
}

// Result and input in one buffer, with an offset and reversed.
TEST_P(LinopContract, WritesIntoMemoryThatMeetsItsInput) {
  const NamedLinop A = sized();
  const Extents own = extents(), image = output_of(A, own);
  const std::tuple<NamedLinop, Extents, Extents> all[] = {
      {A, own, image}, {A.H(), image, own}, {A.N(), own, own}};
  for (const auto& [B, in, out] : all) {
    const Tensor values = Tensor::random_normal(in, DType::complex128, {17});
    const Tensor expected = B(values);
    const index_t n = values.numel(), m = expected.numel();
    for (const index_t shift : {index_t{0}, index_t{1}, (n + 1) / 2}) {
      for (const bool is_backwards : {false, true}) {
        const Tensor buffer = Tensor::zeros({n + m + shift}, DType::complex128);
        const Tensor reals = buffer.view_as_real().view({2 * buffer.numel()});
        Tensor x = buffer(slice(0, n));
        Tensor y = (is_complex(expected.dtype()) ? buffer : reals)(slice(shift, shift + m));
        if (is_backwards) y = y.flip(Axes{0});
        x = x.view(in);
        y = y.view(out);
        x.copy_from(values);
        B.apply(x, y);
        EXPECT_TRUE(allclose(y, expected, 1e-12, 1e-12)) << B << shift << is_backwards;
      }
    }
  }
}

// Names of the user that derived operators might make for themselves: the results are the same, in
// a chain with an operator that has further such names too.
TEST_P(LinopContract, TakesNamesLikeThoseOfDerivedOperators) {
  const NamedLinop A = sized();
  const Extents own = extents();
  const Tensor x = Tensor::random_normal(own, DType::complex128, {5});
  const Tensor y = A(x), back = A.H()(y), there = A(back);
  std::vector<ND> made;
  const auto is_usual = [](const ND& d) {
    return d.is_concrete() && d.text().find('~') == std::string_view::npos;
  };
  const auto collect = [&](const NamedLinop& B) {
    for (const ND& d : B.dims()) {
      if (is_usual(d)) made.push_back(d);
    }
  };
  for (const NamedLinop& B : {A, A.H()}) {
    for (const NamedLinop& derived : {B, B.N(), B.N(Output::fresh)}) collect(derived);
    for (const ND& d : B.dims()) {
      if (!is_usual(d)) continue;
      for (const int k : {1, 2}) made.push_back(d + k);
      if (const auto n = B.size(d)) made.push_back(ND(d.base(), static_cast<int>(2 * *n)));
    }
  }
  for (const char* const name : {"Kx", "Ky", "Kz", "W1", "W2", "D"}) made.emplace_back(name);
  std::uint64_t state = GetParam().name.size();
  const auto next = [&](std::size_t n) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::size_t>(state >> 33) % n;
  };
  for (int round = 0; round < 4; ++round) {
    Renaming names;
    std::set<ND> taken;
    for (const ND& d : A.dims()) {
      if (!d.is_concrete()) continue;
      ND name = made[next(made.size())];
      while (!taken.insert(name).second) name = name + 1;
      names.emplace(d, name);
    }
    const NamedLinop B = A.renamed(names);
    SCOPED_TRACE(B.str());
    EXPECT_TRUE(equal(B(x), y));
    EXPECT_TRUE(allclose(B.N()(x), back, 1e-4, 1e-4));
    EXPECT_TRUE(allclose(B.N(Output::fresh)(x), back, 1e-10, 1e-10));
    EXPECT_TRUE(allclose(B.H().N()(y), there, 1e-4, 1e-4));
    EXPECT_TRUE(allclose(A.N().renamed(names)(x), back, 1e-4, 1e-4));
    // Behind an operator from a dimension of another such name and size.
    if (A.ishape().has_ellipsis() || own.empty() || !A.ishape()[0].is_concrete()) continue;
    ND inner = made[next(made.size())];
    while (!taken.insert(inner).second) inner = inner + 1;
    Dims from = B.ishape(), weight{B.ishape()[0], inner};
    from = from.replaced(B.ishape()[0], Dims(inner));
    const Tensor w = Tensor::random_normal({own[0], 2}, DType::complex128, {6});
    const NamedLinop basis = Dense(w, weight, from, B.ishape());
    const NamedLinop C = B * basis;
    Extents few = own;
    few[0] = 2;
    const Tensor v = Tensor::random_normal(few, DType::complex128, {7});
    EXPECT_TRUE(allclose(C.N()(v), C.H()(C(v)), 1e-4, 1e-4));
    EXPECT_TRUE(allclose((B.N() * basis)(v), B.N()(basis(v)), 1e-10, 1e-10));
    EXPECT_EQ(C.N().size(inner), 2);
  }
}

// A tile along each dimension that can be cut, of the operator, its adjoint and its normal
// operator.
TEST_P(LinopContract, HoldsForTiles) {
  const NamedLinop A = sized();
  const Extents input = extents();
  const std::pair<NamedLinop, Extents> all[] = {
      {A, input}, {A.H(), output_of(A, input)}, {A.N(), input}};
  for (const auto& [B, own] : all) {
    for (const ND& d : B.dims()) {
      const bool is_named = d.is_concrete() || d.is_ordinal();
      const auto n = is_named ? B.size(d) : std::nullopt;
      if (!n || *n < 2) continue;
      NamedLinop tile;
      try {
        tile = B.split({{d, slice(1, *n)}});
      } catch (const SplitError&) {
        continue;
      }
      Extents cut;
      const std::size_t hidden = own.size() + 1 - B.ishape().size();
      std::size_t axis = 0;
      for (const ND& e : B.ishape()) {
        for (std::size_t k = e.is_ellipsis() ? hidden : 1; k > 0; --k) {
          cut.push_back(own[axis++] - (e == d ? 1 : 0));
        }
      }
      SCOPED_TRACE("along " + d.str());
      const TestOptions options{.extents = cut, .dtype = DType::complex128};
      EXPECT_TRUE(dot_test(tile, options).ok) << tile;
      EXPECT_TRUE(check_normal(tile, options).ok) << tile;
      EXPECT_TRUE(check_inplace(tile, options).ok()) << tile;
      EXPECT_TRUE(check_gradient(tile, options).ok) << tile;
    }
  }
}

// -- inside containers ---------------------------------------------------------------------------

// Each operator in one container, in long runs in all.
bool is_long() { return std::getenv("PALIMPSEST_LONG") != nullptr; }

TEST_P(LinopContract, HoldsInAChain) {
  const NamedLinop A = GetParam().make(DType::complex128);
  const std::complex<double> s(0.5, -2);
  expect_holds(Chain(Scalar(s, A.ishape()), A, Scalar(s, A.oshape())), {.extents = extents()},
               DType::complex128);
}

TEST_P(LinopContract, HoldsInASum) {
  const NamedLinop A = sized();
  expect_holds(Add(A, std::complex<double>(1, -2) * A), {.extents = extents()}, DType::complex128);
}

TEST_P(LinopContract, HoldsInAStack) {
  const NamedLinop A = sized();
  Extents wide{2};
  for (const index_t n : extents()) wide.push_back(n);
  expect_holds(Stack({A, 2 * A}, {.in = {"Ss", 0}, .out = {"Tt", 0}}), {.extents = wide},
               DType::complex128);
  if (!is_long()) return;
  expect_holds(Stack({A, 2 * A}, {.out = {"Ss", 0}}), {.extents = extents()}, DType::complex128);
  expect_holds(Stack({A, 2 * A}, {.in = {"Ss", 0}}), {.extents = wide}, DType::complex128);
}

bool is_real_linear(const NamedLinop& A) {
  return A.type().real_linear || std::any_of(A.linops().begin(), A.linops().end(), is_real_linear);
}

// Along a dimension with a known size.
TEST_P(LinopContract, HoldsWhenJoined) {
  const NamedLinop A = sized();
  const Extents own = extents();
  const std::size_t hidden = own.size() + 1 - A.ishape().size();
  for (const ND& d : unite(A.ishape(), A.oshape())) {
    if (!d.is_concrete() || !A.size(d)) continue;
    const bool is_in = A.ishape().contains(d), is_out = A.oshape().contains(d);
    Extents joined;
    std::size_t axis = 0;
    for (const ND& e : A.ishape()) {
      for (std::size_t k = e.is_ellipsis() ? hidden : 1; k > 0; --k) {
        joined.push_back(own[axis++] * (e == d ? 2 : 1));
      }
    }
    ConcatDims along;
    if (is_in) along.in = d;
    if (is_out) along.out = d;
    SCOPED_TRACE("along " + d.str());
    expect_holds(Concat({A, 2 * A}, along), {.extents = joined}, DType::complex128);
    if (!is_long()) return;
  }
}

TEST_P(LinopContract, HoldsAsAFactor) {
  const NamedLinop A = sized();
  const auto leads = [](const Dims& dims) {
    const auto at = dims.index_of(ND::ellipsis());
    return !at || *at == 0;
  };
  if (!leads(A.ishape()) || !leads(A.oshape()) ||
      A.ishape().has_ellipsis() != A.oshape().has_ellipsis()) {
    return;  // refused: see Kronecker
  }
  const Tensor W = Tensor::random_normal({2, 3}, DType::complex128, {9});
  const NamedLinop B = Dense(W, "Pp Qq,Qq->Pp");
  if (is_real_linear(A)) {
    EXPECT_THROW(Kronecker(A, B), ValueError);
    return;
  }
  if (GetParam().name == "DiagonalUnderEllipsis") {
    EXPECT_THROW(Kronecker(A, B), ShapeError);
    return;
  }
  Extents own = extents();
  if (A.ishape().has_ellipsis()) {
    own = Extents(std::span<const index_t>(own).last(A.ishape().size() - 1));
  }
  Extents first{3}, second = own;
  for (const index_t n : own) first.push_back(n);
  second.push_back(3);
  expect_holds(Kronecker(A, B), {.extents = second}, DType::complex128);
  if (is_long()) expect_holds(Kronecker(B, A), {.extents = first}, DType::complex128);
}

TEST(LinopValues, AreThoseOfPlainLoops) {
  for (const LinopSample& sample : testing::linop_samples()) {
    if (!sample.expected) continue;
    SCOPED_TRACE(sample.name);
    for (const DType dtype : {DType::complex64, DType::complex128}) {
      const NamedLinop A = sample.make(dtype);
      const Tensor x = Tensor::random_normal(input_extents(A, sample.options), dtype, {11});
      const Tensor got = A(x), expected = sample.expected(x);
      ASSERT_EQ(got.shape(), expected.shape());
      const double tolerance = dtype == DType::complex64 ? 1e-5 : 1e-13;
      EXPECT_TRUE(allclose(got, expected, tolerance, tolerance)) << got << expected;
    }
  }
}

TEST(LinopRefusals, SayWhatIsWrong) {
  for (const testing::Refusal& refusal : testing::linop_refusals()) {
    SCOPED_TRACE(refusal.text);
    refusal.expect();
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, LinopContract, ::testing::ValuesIn(testing::linop_samples()),
                         [](const auto& tested) { return tested.param.name; });

TEST(LinopContract, CoversEveryType) {
  std::set<std::string> covered{"Normal"};  // of every sample without a simpler normal operator
  const std::function<void(const NamedLinop&)> visit = [&](const NamedLinop& A) {
    covered.insert(A.type().name);
    for (const NamedLinop& child : A.linops()) visit(child);
  };
  for (const LinopSample& sample : testing::linop_samples()) {
    visit(sample.make(DType::complex128));
  }
  for (const std::string& name : linop_names()) {
    if (name == "palimpsest.Prox") continue;  // holds a proximal function in a file
    EXPECT_TRUE(covered.contains(name)) << name << " has no sample";
  }
}

}  // namespace
}  // namespace palimpsest
