// SPDX-License-Identifier: Apache-2.0
// Recorded properties of a simplified normal operator: the sizes of A, and the dimensions that it
// sums over, which its names do not show.
#include "linop_support.hpp"
#include "palimpsest/compile/tensor_math.hpp"
#include "palimpsest/linop/containers/concat.hpp"
#include "palimpsest/linop/containers/stack.hpp"
#include "palimpsest/linop/copies/saving.hpp"
#include "palimpsest/linop/operators/complex_parts.hpp"
#include "palimpsest/linop/operators/pad_dim.hpp"
#include "palimpsest/linop/operators/rearrange.hpp"
#include "palimpsest/linop/operators/restrict.hpp"
#include "palimpsest/linop/split/batch.hpp"
#include "palimpsest/linop/transforms/nufft.hpp"
#include "palimpsest/linop/transforms/wavelet.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using testing::random;

Tile tile(const ND& d, index_t start, index_t stop) { return {{d, slice(start, stop)}}; }

// A.N() cut along d is exact, or it is refused; then the normal operators of tiles of A, if any,
// add up to it.
void expect_exact_or_refused(const NamedLinop& A, const ND& d, index_t n, const Tensor& x) {
  const NamedLinop N = A.N();
  SCOPED_TRACE(A.str() + "\nwith the normal operator\n" + N.str() + "\nalong " + d.str());
  EXPECT_TRUE(N.split(tile(d, 0, n)).is(N)) << "the full range is refused";
  for (index_t k = 1; k < n; ++k) {
    try {
      const Tensor sum = N.split(tile(d, 0, k))(x) + N.split(tile(d, k, n))(x);
      EXPECT_LE(testing::difference(sum, N(x)), 1e-9) << k;
    } catch (const SplitError&) {
    }
  }
}

TEST(NormalKnowledge, ACutAlongWhatASimplifiedOneSumsOverIsExactOrRefused) {
  const Tensor locs = Tensor::random_uniform({20, 2}, DType::float64, {5, 1});
  const auto nufft = [&](Toeplitz toeplitz) {
    return Nufft(locs, {6, 6}, "R", {.batch = Dims(), .width = 4.0, .toeplitz = toeplitz});
  };
  const Tensor image = random({6, 6});
  expect_exact_or_refused(nufft(Toeplitz::no), "R", 20, image);
  expect_exact_or_refused(nufft(Toeplitz::yes), "R", 20, image);
  const NamedLinop maps =
      Diagonal(random({3, 6, 6}), "C Nx Ny") * Repeat({{"C", 3}}, "Nx Ny", "C Nx Ny");
  const NamedLinop F =
      Nufft(locs, {6, 6}, "R", {.batch = "C", .width = 4.0, .toeplitz = Toeplitz::yes});
  expect_exact_or_refused(F * maps, "R", 20, image);
  expect_exact_or_refused(F * maps, "C", 3, image);
  const Tensor index = Tensor::from<index_t>({0, 2, 2, 4});
  expect_exact_or_refused(Sampling({index}, {6}, {.input = "Nx"}), "K", 4, random({6}));
  const std::vector<NamedLinop> two{Diagonal(random({6}), "N"), Diagonal(random({6}), "N")};
  expect_exact_or_refused(Stack(two, {.out = {ND("S"), 0}}), "S", 2, random({6}));
  expect_exact_or_refused(Repeat({{"C", 3}}, "N", "C N"), "C", 3, random({6}));
  expect_exact_or_refused(Restrict("N", {{"N", slice(1, 5)}}, {.sizes = {{"N", 6}}}), "N1", 4,
                          random({6}));
}

TEST(NormalKnowledge, ACutOfJoinedOutputsIsThatOfNoPart) {
  for (const index_t rows : {2, 3}) {
    const NamedLinop first = Dense(random({3, 4}), "MN,N->M"),
                     second = Dense(random({rows, 4}), "MN,N->M");
    const NamedLinop joined = Concat({first, second}, {.out = "M"});
    EXPECT_EQ(joined.N().size("M"), 3 + rows);
    expect_exact_or_refused(joined, "M", 3 + rows, random({4}));
    expect_error<SplitError>([&] { joined.N().split(tile("M", 0, 2)); }, "cannot split");
    expect_error<SplitError>([&] { joined.N().split(tile("M", 2, 3)); }, "Try to split first");
    const NamedLinop diagonal = Concat({first.renamed({{"M", "P"}}), second.renamed({{"M", "P"}})},
                                       {.in = "N", .out = "P"});
    expect_exact_or_refused(diagonal, "P", 3 + rows, random({8}));
    // Cut first, then take the normal operator.
    const Tensor x = random({4});
    const Tensor parts =
        joined.split(tile("M", 0, 2)).N()(x) + joined.split(tile("M", 2, 3 + rows)).N()(x);
    EXPECT_LE(testing::difference(parts, joined.N()(x)), 1e-12);
    const NamedLinop other = Diagonal(random({5}), "M") * Dense(random({5, 4}), "MN,N->M");
    if (rows == 2) {
      const NamedLinop stacked = Stack({joined, other}, {.out = {ND("S"), 0}}).N();
      expect_error<SplitError>(
          [&] {
            create_batched_linop(stacked, BatchSpec{.sizes = {{"M", 1}}});
          },
          "cannot split");
    }
  }
}

TEST(NormalKnowledge, SummandsOfDifferentSizesAreNotCutTogether) {
  const NamedLinop a = Dense(random({30, 4}), "MN,N->M"), b = Dense(random({20, 4}), "MN,N->M");
  const NamedLinop sum = a.N() + b.N();
  expect_error<SplitError>([&] { sum.split(tile("M", 0, 2)); }, "different sizes");
}

TEST(NormalKnowledge, WhatIsRefusedStaysSoInTreesTilesCopiesAndFiles) {
  const NamedLinop A = Repeat({{"C", 3}}, "N", "C N").with_sizes({{"N", 6}});
  const NamedLinop scaled = 2.0 * A.N();
  for (const NamedLinop& B :
       {scaled, A.N() * Diagonal(random({6}), "N"), A.N().split(tile("N", 0, 3)),
        from_bytes(to_bytes(A.N())), A.N().copy(), A.N().H(), A.N().renamed({{"N", "X"}}),
        A.normal(Scalar(3.0, "C N"))}) {
    SCOPED_TRACE(B.str());
    EXPECT_TRUE(B.dims().contains("C"));
    EXPECT_EQ(B.size("C"), 3);
    expect_error<SplitError>([&] { B.split(tile("C", 0, 2)); }, "cannot split");
  }
  // In a sum with another operator, the other one belongs to the first tile.
  const NamedLinop other = Dense(random({3, 6}), "CN,N->C").N();
  EXPECT_EQ(A.N().renamed({{"C", "D"}}).size("D"), 3);
  const NamedLinop sum = other + Identity("N");
  const Tensor x = random({6});
  EXPECT_LE(
      testing::difference(sum.split(tile("C", 0, 1))(x) + sum.split(tile("C", 1, 3))(x), sum(x)),
      1e-12);
}

TEST(NormalKnowledge, SizesAreThoseOfTheOperator) {
  const auto refuses = [](const NamedLinop& A, Extents wrong) {
    SCOPED_TRACE(A.str());
    expect_error<ShapeError>([&] { A(Tensor::ones(wrong, DType::complex128)); }, "");
    expect_error<ShapeError>([&] { A.N()(Tensor::ones(wrong, DType::complex128)); }, "expected");
  };
  refuses(Pad({10}, {20}), {7});
  refuses(PadDim("N", 4, 6, "N"), {5});
  refuses(Embed("N", {{"N", slice(1, 3)}}, {.sizes = {{"N", 6}}}), {5});
  refuses(Rearrange("(A B) -> A B", {.sizes = {{"A", 2}, {"B", 3}}}), {7});
  refuses(Fft(1).with_sizes({{"Nx", 8}}), {7});
  refuses(Repeat({{"C", 3}}, "N", "C N").with_sizes({{"N", 6}}), {5});
  const NamedLinop F = Fft(1, {.batch = "C"}).with_sizes({{"C", 4}});
  EXPECT_EQ(F.N().size("C"), 4);
  EXPECT_EQ(split_linop(F.N(), {{"C", 2}}).tiles.size(), 2U);
}

TEST(MatrixSize, IsThatOfTheInputWhereOnlyItsSizesAreKnown) {
  EXPECT_EQ(Fft(2).with_sizes({{"Nx", 8}, {"Ny", 10}}).matrix_size(), (MatrixSize{80, 80}));
  EXPECT_EQ(Fft(2).with_sizes({{"Kx", 8}, {"Ky", 10}, {"Nx", 8}, {"Ny", 10}}).matrix_size(),
            (MatrixSize{80, 80}));
  expect_error<ShapeError>([] { Fft(2).with_sizes({{"Nx", 8}}).matrix_size(); }, "is unknown");
  const index_t big = index_t{1} << 40;
  const NamedLinop A = Identity("A B").with_sizes({{"A", big}, {"B", big}});
  expect_error<OverflowError>([&] { A.matrix_size(); }, "overflow");
}

}  // namespace
}  // namespace palimpsest
