// SPDX-License-Identifier: Apache-2.0
#include "linop/linop_support.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using testing::random;

NamedLinop matrix_operator() { return Dense(random({4, 3}), "MN,N->M"); }

TEST(NamedLinop, CopyingTheHandleKeepsTheOperator) {
  const NamedLinop A = matrix_operator();
  const NamedLinop B = A;
  EXPECT_TRUE(B.is(A));
  EXPECT_FALSE(A.copy().is(A));
  EXPECT_TRUE(identical(A.copy(), A));
}

TEST(NamedLinop, UndefinedHandlesSaySo) {
  const NamedLinop none;
  EXPECT_FALSE(none.defined());
  expect_error<ValueError>([&] { none.shape(); }, "undefined");
  expect_error<ValueError>([&] { none.H(); }, "undefined");
  expect_error<ValueError>([&] { none.N(); }, "undefined");
  expect_error<ValueError>([&] { none(Tensor::ones({2})); }, "undefined");
  expect_error<ValueError>([&] { Chain(none); }, "undefined");
}

TEST(NamedLinop, ACopySharesParametersAndHasCachesOfItsOwn) {
  const NamedLinop A = matrix_operator();
  const NamedLinop adjoint = A.H();
  const NamedLinop B = A.copy();
  EXPECT_TRUE(B.param("weight").is(A.param("weight")));
  EXPECT_FALSE(B.H().is(adjoint));
  Parameter w = B.param("weight");
  w.set_value(random({4, 3}, DType::complex128, 9));
  const Tensor x = random({3});
  EXPECT_TRUE(equal(A(x), B(x)));
}

TEST(NamedLinop, ASetterChangesThisHandleOnly) {
  const NamedLinop A = matrix_operator();
  const NamedLinop adjoint = A.H(), normal = A.N();
  const NamedLinop chain = Chain(A, Identity("M"));
  NamedLinop B = A;
  B.set_oshape("P");
  EXPECT_FALSE(B.is(A));
  EXPECT_EQ(B.shape().shapes().str(), "ishape: (N), oshape: (P), weightshape: (P, N)");
  EXPECT_EQ(A.oshape(), Dims("M"));
  EXPECT_EQ(chain[0].oshape(), Dims("M"));
  EXPECT_TRUE(A.H().is(adjoint));
  EXPECT_TRUE(A.N().is(normal));
  EXPECT_TRUE(B.param("weight").is(A.param("weight")));
}

TEST(NamedLinop, RenamingNeverChangesTheContraction) {
  const NamedLinop A = Dense(random({5, 3, 7}), "BMN,BN->BM");
  const Tensor x = random({5, 7});
  NamedLinop B = A;
  B.rename({{"M", "N"}, {"N", "M"}});
  EXPECT_EQ(B.shape().str(), "(B, M) -> (B, N)");
  EXPECT_TRUE(equal(B(x), A(x)));
  B.set_shape({"X Y", "X Z"});
  EXPECT_EQ(B.shape().dims("weightshape"), Dims("X Z Y"));
  EXPECT_TRUE(equal(B(x), A(x)));
  EXPECT_TRUE(equal(A.renamed({{"B", "C"}})(x), A(x)));
}

TEST(NamedLinop, SetShapeExchangesNames) {
  NamedLinop A = matrix_operator();
  A.set_shape({"M", "N"});
  EXPECT_EQ(A.shape().shapes().str(), "ishape: (M), oshape: (N), weightshape: (N, M)");
  expect_error<ShapeError>([&] { A.set_shape({"M P", "N"}); }, "not compatible");
  NamedLinop B = Identity("A");
  B.set_shape({"C", "C"});
  EXPECT_EQ(B.ishape(), Dims("C"));
  expect_error<ShapeError>([&] { B.set_shape({"C", "D"}); }, "expected two equal shapes");
  NamedLinop square = Dense(random({3, 3}), "MN,N->M", {.output = Dims("N")});
  expect_error<ShapeError>([&] { square.set_shape({"A", "B"}); }, "inconsistent mapping");
}

TEST(NamedLinop, OneShapeOperatorsSetBoth) {
  for (NamedLinop A :
       {Identity("() ..."), Scalar(2, "() ..."), Diagonal(Tensor::ones({3}), "() ...")}) {
    A.set_ishape("Nx ...");
    EXPECT_EQ(A.oshape(), Dims("Nx ...")) << A;
    A.set_oshape("Ny Nz");
    EXPECT_EQ(A.ishape(), Dims("Ny Nz")) << A;
  }
}

TEST(NamedLinop, FailedSettersChangeNothing) {
  NamedLinop A = matrix_operator();
  const NamedLinop before = A;
  expect_error<ShapeError>([&] { A.set_ishape("A B"); }, "not compatible");
  expect_error<ShapeError>([&] { A.rename({{"M", "N"}}); }, "collides");
  expect_error<ShapeError>([&] { A.set_param("weight", Tensor::ones({2})); }, "weight: got");
  expect_error<NameError>([&] { A.erase_param("w"); }, "expected one of 'weight'");
  expect_error<ValueError>([&] { A.set_linops({}); }, "not a container");
  EXPECT_TRUE(A.is(before));
}

TEST(NamedLinop, ParametersAndAttributesByName) {
  NamedLinop A = matrix_operator();
  EXPECT_TRUE(A.has_param("weight"));
  EXPECT_FALSE(A.has_param("locs"));
  expect_error<NameError>([&] { A.param("locs"); }, "[Dense] no parameter 'locs'");
  expect_error<NameError>([&] { A.attr("norm"); }, "no attribute 'norm'");
  const NamedLinop before = A;
  A.set_param("weight", random({6, 3}));
  EXPECT_EQ(A.size("M"), 6);
  EXPECT_EQ(before.size("M"), 4);
  NamedLinop fft = Fft(1);
  fft.set_attr("centered", true);
  EXPECT_TRUE(fft.attr("centered").as_bool());
  EXPECT_FALSE(identical(fft, Fft(1)));
}

TEST(NamedLinop, NamesAreForPeople) {
  NamedLinop A = matrix_operator();
  A.set_name("maps");
  EXPECT_EQ(A.str(), "maps(N -> M)");
  EXPECT_EQ(A.H().str(), "maps.H(M -> N)");
  EXPECT_EQ(A.H().H().name(), "maps");
  EXPECT_EQ(A.named("other").name(), "other");
  EXPECT_EQ(A.name(), "maps");
}

TEST(NamedLinop, PrintsContainersAsTrees) {
  const NamedLinop A = Chain(matrix_operator(), Add(Identity("M"), Scalar(2, "M")));
  EXPECT_EQ(A.str(),
            "Chain(N -> M)\n"
            "  Dense(N -> M)\n"
            "  Add(M -> M)\n"
            "    Identity(M -> M)\n"
            "    Scalar(M -> M)");
}

TEST(NamedLinop, KnowsSizes) {
  const NamedLinop A = matrix_operator();
  EXPECT_EQ(A.size("M"), 4);
  EXPECT_EQ(A.size("N"), 3);
  EXPECT_FALSE(A.size("K").has_value());
  EXPECT_EQ(A.matrix_size(), (MatrixSize{4, 3}));
  EXPECT_EQ(A.output_shape({3}), Extents{4});
  EXPECT_EQ(A.dims(), Dims("N M"));
  EXPECT_EQ(A.H().matrix_size(), (MatrixSize{3, 4}));
}

TEST(NamedLinop, SizesCanBeRecorded) {
  const NamedLinop F = Fft(2);
  expect_error<ShapeError>([&] { F.matrix_size(); }, "is unknown");
  const NamedLinop G = F.with_sizes({{"Nx", 4}, {"Ny", 5}, {"Kx", 4}, {"Ky", 5}});
  EXPECT_EQ(G.matrix_size(), (MatrixSize{20, 20}));
  EXPECT_FALSE(F.size("Nx").has_value());
  EXPECT_EQ(F.matrix_size({3, 4, 5}), (MatrixSize{60, 60}));
  EXPECT_EQ(G.renamed({{"Nx", "A"}}).size("A"), 4);
  EXPECT_EQ(G.H().size("Nx"), 4);
  EXPECT_EQ(G.recorded_sizes().size(), 4u);
  expect_error<ShapeError>([&] { G.with_sizes({{"Nx", 6}}); }, "Conflicting");
  expect_error<ShapeError>([&] { matrix_operator().with_sizes({{"N", 6}}); }, "Conflicting");
  expect_error<NameError>([&] { G.with_sizes({{"Nz", 6}}); }, "no dim 'Nz'");
  expect_error<ValueError>([&] { F.with_sizes({{"Nx", -1}}); }, "none negative");
  expect_error<ShapeError>([&] { G(Tensor::ones({4, 6})); }, "size of dim 'Ny': expected 5, got 6");
}

TEST(NamedLinop, HugeMatricesOverflow) {
  const NamedLinop huge =
      Zero("A B", "A B").with_sizes({{"A", index_t{1} << 40}, {"B", index_t{1} << 40}});
  EXPECT_THROW(huge.matrix_size(), OverflowError);
}

TEST(NamedLinop, ChildrenByPosition) {
  const NamedLinop A = Chain(matrix_operator(), Identity("M"), Scalar(2, "M"));
  EXPECT_EQ(A.linop_count(), 3u);
  EXPECT_EQ(A[2].name(), "Scalar");
  EXPECT_EQ(A.slice(1, 3).linop_count(), 2u);
  EXPECT_TRUE(A.slice(0, 1)[0].is(A[0]));
  expect_error<ValueError>([&] { A[3]; }, "[Chain] child 3 is out of range");
  expect_error<ValueError>([&] { A.slice(2, 2); }, "out of range");
  expect_error<ValueError>([&] { A.slice(0, 4); }, "out of range");
}

}  // namespace
}  // namespace palimpsest
