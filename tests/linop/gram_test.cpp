// SPDX-License-Identifier: Apache-2.0
// Normal operators that fold to a Gram weight: cut along the dimensions that they sum over, and
// after files, copies and gradients.
#include "linop_support.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/linop/copies/saving.hpp"
#include "palimpsest/linop/split/batch.hpp"
#include "palimpsest/linop/split/budget.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "palimpsest/ops/gradient.hpp"
#include "palimpsest/ops/reduce/reduce.hpp"

namespace palimpsest {
namespace {

using testing::dense;
using testing::difference;
using testing::expect_close;
using testing::expect_error;
using testing::random;

Tile tile(const ND& d, index_t start, index_t stop) { return {{d, slice(start, stop)}}; }

NamedLinop sense(Parameter maps) {
  return Fft(2, {.batch = "C"}) * Dense(std::move(maps), "CNxNy,NxNy->CNxNy");
}

Dims refused(const NamedLinop& A) {
  const SplitTest test = check_split(A);
  EXPECT_TRUE(test.ok) << A.str() << ": " << test.failure;
  return test.refused;
}

TEST(Gram, OfMapsIsASumOverCoils) {
  const NamedLinop A = sense(random({5, 3, 4})), N = A.N();
  ASSERT_EQ(N.type().name, "Dense");
  EXPECT_EQ(N.dims(), Dims("Nx Ny C Kx Ky"));  // Kx and Ky can no longer be cut
  EXPECT_EQ(N.size("C"), 5);
  EXPECT_EQ(refused(N), Dims());
  const NamedLinop part = N.split(tile("C", 1, 3));
  EXPECT_EQ(part.size("C"), 2);
  expect_close(dense(part), dense(A.split(tile("C", 1, 3)).N()));
  expect_close(dense(part.split(tile("C", 1, 2))), dense(A.split(tile("C", 2, 3)).N()));
  expect_close(dense(N.split({{"C", slice(0, 2)}, {"Nx", slice(1, 3)}})),
               dense(A[0].split({{"C", slice(0, 2)}, {"Nx", slice(1, 3)}}).N()));
  EXPECT_TRUE(N.split(tile("C", 0, 5)).is(N));
  const Tensor x = random({3, 4});
  const NamedLinop batched = create_batched_linop(N, BatchSpec{{{"C", 2}}});
  EXPECT_EQ(batched.type().name, "Add");
  EXPECT_LE(difference(batched(x), A.H()(A(x))), 1e-14);
  const NamedLinop regularized = N + 0.5 * Identity("NxNy");
  EXPECT_EQ(refused(regularized), Dims());
}

TEST(Gram, RowsAndColumnsMeetInCrossTerms) {
  const NamedLinop A = Dense(random({6, 3}), "MN,N->M"), N = A.N();
  EXPECT_EQ(refused(N), Dims("N"));
  expect_close(dense(N.split(tile("M", 2, 5))), dense(A.split(tile("M", 2, 5)).N()));
  // Its square sums over M twice.
  const NamedLinop square = N.N();
  ASSERT_EQ(square.type().name, "Dense");
  expect_close(dense(square), dense(N) * dense(N), 1e-10);
  expect_error<SplitError>([&] { square.split(tile("M", 0, 2)); }, "cross terms");
}

TEST(Gram, BatchesAndRenaming) {
  const NamedLinop A = Dense(random({2, 5, 3}), "BMN,BN->BM");
  NamedLinop N = A.N();
  EXPECT_EQ(refused(N), Dims("N"));
  N.rename({{"M", "Q"}, {"B", "Z"}});
  EXPECT_EQ(N.dims(), Dims("Z N Q"));
  expect_close(dense(N.split({{"Z", slice(1, 2)}, {"Q", slice(0, 3)}})),
               dense(A.split({{"B", slice(1, 2)}, {"M", slice(0, 3)}}).N()));
  const NamedLinop chain = Chain(N, Diagonal(random({3}), "Z N"));
  expect_close(dense(chain.split(tile("Q", 0, 5))), dense(chain));
  EXPECT_FALSE(refused(chain).contains("Q"));
}

TEST(Gram, TilesSeeWhatIsWritten) {
  const NamedLinop A = Dense(random({6, 3}), "MN,N->M");
  const NamedLinop part = A.N().split(tile("M", 1, 3));
  EXPECT_TRUE(part.param("factor").variable().is(A.param("weight").variable()));
  Parameter w = A.param("weight");
  w.set_value(random({6, 3}, DType::complex128, 12));
  const Tensor x = random({3});
  const NamedLinop expected = A.split(tile("M", 1, 3));
  EXPECT_LE(difference(part(x), expected.H()(expected(x))), 1e-14);
  const NamedLinop copy = part.deepcopy();
  w.modify([](Tensor& t) { t.fill(0); });
  EXPECT_EQ(testing::values(part(x)), std::vector<testing::Complex>(3));
  EXPECT_GT(difference(copy(x), part(x)), 0.5);
}

TEST(Gram, FollowsItsFactorWhenLoaded) {
  const NamedLinop N = Dense(random({6, 3}), "MN,N->M").N();
  const NamedLinop B = from_bytes(to_bytes(N));
  const Tensor x = random({3});
  EXPECT_TRUE(equal(B(x), N(x)));
  EXPECT_TRUE(B.param("weight").is_derived());
  EXPECT_EQ(B.size("M"), 6);
  Parameter w = B.param("factor");
  w.set_value(random({6, 3}, DType::complex128, 12));
  const NamedLinop C = Dense(random({6, 3}, DType::complex128, 12), "MN,N->M");
  EXPECT_LE(difference(B(x), C.N()(x)), 1e-14);
  expect_close(dense(B.split(tile("M", 0, 2))), dense(C.split(tile("M", 0, 2)).N()));
  const NamedLinop part = N.split(tile("M", 1, 3));
  EXPECT_TRUE(equal(from_bytes(to_bytes(part))(x), part(x)));
}

TEST(Gram, AWeightThatIsSetIsNone) {
  NamedLinop N = Dense(random({6, 3}), "MN,N->M").N();
  N.set_param("weight", random({3, 3}));
  EXPECT_LE(difference(N(random({3})), Dense(random({3, 3}), "MN,N->M")(random({3}))), 1e-14);
  expect_error<SplitError>([&] { N.split(tile("M", 0, 2)); }, "cross terms");
}

TEST(Gram, OfSeveralMemorySpaces) {
  const NamedLinop A = sense(random({6, 4, 4}));
  const Device one{DeviceType::cpu, 1}, two{DeviceType::cpu, 2};
  const NamedLinop batched = create_batched_linop(A.N(), BatchSpec{{{"C", 2}}, {one, two}});
  const Tensor x = random({4, 4});
  EXPECT_LE(difference(batched(x), A.N()(x)), 1e-14);
  EXPECT_LE(difference(A.N().to(one)(x.to(one)).to(Device{}), A.N()(x)), 1e-14);
  EXPECT_LE(difference(A.N().to(DType::complex64)(x.to(DType::complex64)), A.N()(x)), 1e-6);
}

TEST(Gram, GradientsReachTheWeight) {
  const Parameter w = Parameter::trainable(random({6, 3}));
  const NamedLinop A = Dense(w, "MN,N->M"), N = A.N();
  EXPECT_TRUE(N.param("weight").is_trainable());
  const Variable x = constant(random({3}));
  const auto gradient = [&](const Variable& y) {
    return function({}, {Out(grad(ops::sum(ops::abs2(y), {}), w.var()))})()[0];
  };
  const Tensor expected = gradient(A.H()(A(x)));
  EXPECT_LE(difference(gradient(N(x)), expected), 1e-13);
  EXPECT_LE(difference(gradient(Chain(N, Scalar(2, "N"))(x)), gradient((2 * N)(x))), 1e-13);
  // Also of tiles, in the part of the weight that they hold.
  const Tensor part = gradient(N.split(tile("M", 0, 2))(x));
  EXPECT_EQ(testing::values(part.narrow(0, 2, 4).contiguous()), std::vector<testing::Complex>(12));
  // Values follow the current parameter.
  Parameter now = w;
  now.modify([](Tensor& t) { t.fill(0); });
  EXPECT_EQ(testing::values(N(random({3}))), std::vector<testing::Complex>(3));
}

TEST(Gram, BudgetsAreMet) {
  const NamedLinop N = sense(random({8, 32, 32}, DType::complex64)).N();
  const TensorType x{DType::complex64, {32, 32}, {}};
  const index_t whole = split_to_budget(N, x, 1 << 30).peak_bytes;
  EXPECT_LE(smallest_budget(N, x), whole);
  const BudgetSplit split = split_to_budget(N, x, whole);
  EXPECT_LE(difference(split.op(random({32, 32}, DType::complex64)),
                       N(random({32, 32}, DType::complex64))),
            1e-6);
}

}  // namespace
}  // namespace palimpsest
