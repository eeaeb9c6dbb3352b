// SPDX-License-Identifier: Apache-2.0
#include "linop/linop_support.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "palimpsest/ops/shape/shape_ops.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

const LinopType kEdge{.name = "mylab.Edge",
                      .functions = {.fn = [](const NamedLinop& A, const Variable& x) {
                        return A.param("w").var() * (x - ops::roll(x, 1, -1));
                      }}};
PALIMPSEST_REGISTER_LINOP(kEdge);

NamedLinop Edge(Parameter w, Dims d) { return make_linop(kEdge, NamedShape(d), {{"w", w}}); }

const LinopType kSquare{
    .name = "mylab.Square",
    .functions = {.fn = [](const NamedLinop&, const Variable& x) { return x * x; }}};

TEST(Registry, FindsTypesByName) {
  EXPECT_EQ(find_linop("mylab.Edge"), &kEdge);
  ASSERT_NE(find_linop("Fft"), nullptr);
  EXPECT_EQ(find_linop("Fft"), &Fft(1).type());
  EXPECT_EQ(find_linop("Nothing"), nullptr);
  EXPECT_THAT(linop_names(), ::testing::IsSupersetOf({"Add", "Chain", "Dense", "mylab.Edge"}));
}

TEST(Registry, ANameIsTakenOnce) {
  expect_error<ValueError>([] { register_linop(kEdge); }, "already registered");
  expect_error<ValueError>([] { register_linop(Fft(1).type()); }, "already registered");
  const LinopType nameless{};
  expect_error<ValueError>([&] { register_linop(nameless); }, "empty");
}

TEST(UserOperator, GetsItsAdjointAndNormalForFree) {
  for (const DType dtype : {DType::complex64, DType::complex128}) {
    const NamedLinop A = Edge(testing::random({5}, dtype), "N");
    const ContractReport report = check_contract(A, {.sizes = {{"N", 5}}});
    EXPECT_TRUE(report.ok()) << report.str();
  }
  const NamedLinop A = Edge(Tensor::from<double>({1, 2, 3}), "N");
  EXPECT_EQ(A.name(), "Edge");
  EXPECT_EQ(A.str(), "Edge(N -> N)");
  testing::expect_close(testing::dense(A.H(), {.sizes = {{"N", 3}}}),
                        testing::adjoint(testing::dense(A, {.sizes = {{"N", 3}}})));
}

TEST(UserOperator, ItsAdjointHasItsParametersAndTheAdjointOfThatIsIt) {
  const NamedLinop A = Edge(Tensor::from<double>({1, 2, 3}), "N");
  EXPECT_TRUE(A.H().param("w").is(A.param("w")));
  EXPECT_TRUE(A.H().H().is(A));
  EXPECT_EQ(A.H().name(), "Edge.H");
  const Tensor x = Tensor::from<double>({1, 0, 0});
  EXPECT_EQ(A.H().H()(x).to_vector<double>(), A(x).to_vector<double>());
}

TEST(UserOperator, ThatIsNotLinearHasNoAdjoint) {
  const NamedLinop A = make_linop(kSquare, "N");
  const Tensor x = Tensor::ones({3});
  EXPECT_EQ(A(x).numel(), 3);
  expect_error<NotLinearError>([&] { A.H()(x); }, "[Square.H]");
}

TEST(UserOperator, WithoutFunctionsItCannotBeApplied) {
  static const LinopType empty{.name = "mylab.Empty", .functions = {}};
  const NamedLinop A = make_linop(empty, "N");
  expect_error<ValueError>([&] { A(Tensor::ones({3})); }, "neither fn nor adj_fn");
}

}  // namespace
}  // namespace palimpsest
