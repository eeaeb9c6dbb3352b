// SPDX-License-Identifier: Apache-2.0
// The examples of docs/operators.md, and that this page has a section with an example for every
// type of operator. With PALIMPSEST_WRITE_DOCS set the table in that page is written.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "linop/linop_support.hpp"
#include "palimpsest/palimpsest.hpp"

namespace palimpsest {
namespace {

Tensor numbers(const std::vector<double>& values) { return Tensor::from(values); }

// The elements, row-major.
std::string text(const Tensor& t) {
  std::string result;
  const auto rounded = [](double v) { return std::round(v * 1e4) / 1e4 + 0.0; };
  for (const testing::Complex& z : testing::values(t)) {
    std::ostringstream number;
    number << rounded(z.real());
    if (rounded(z.imag()) != 0) number << std::showpos << rounded(z.imag()) << "i";
    result += (result.empty() ? "" : " ") + number.str();
  }
  return result;
}

TEST(OperatorExample, Identity) {
  const NamedLinop I = Identity("A");
  EXPECT_EQ(text(I(numbers({1, 2}))), "1 2");
  EXPECT_TRUE(I.H().is(I) && I.N().is(I));
}

TEST(OperatorExample, Zero) {
  const NamedLinop Z = Zero("A", "B", {.sizes = {{"A", 3}, {"B", 2}}});
  EXPECT_EQ(text(Z(numbers({1, 2, 3}))), "0 0");
  EXPECT_EQ(Z.H().str(), "Zero(B -> A)");
}

TEST(OperatorExample, Scalar) {
  const NamedLinop A = Scalar(std::complex<double>(2, 3), "A");
  EXPECT_EQ(text(A(numbers({1, 2}))), "2+3i 4+6i");
  EXPECT_EQ(text(A.H()(numbers({1, 2}))), "2-3i 4-6i");
  EXPECT_EQ(text(A.N()(numbers({1, 2}))), "13 26");
}

TEST(OperatorExample, Diagonal) {
  const NamedLinop D = Diagonal(numbers({1, 10}), "A B", {.weight_shape = Dims("A")});
  EXPECT_EQ(text(D(numbers({1, 2, 3, 4}).view({2, 2}))), "1 2 30 40");
  EXPECT_EQ(text(D.N()(Tensor::ones({2, 2}))), "1 1 100 100");
}

TEST(OperatorExample, ShapeSpec) {
  const NamedLinop A = ShapeSpec("A B", "C D");
  EXPECT_EQ(text(A(numbers({1, 2}).view({1, 2}))), "1 2");
  EXPECT_EQ(A.str(), "ShapeSpec(A, B -> C, D)");
}

TEST(OperatorExample, Dense) {
  const NamedLinop A = Dense(numbers({1, 2, 3, 4, 5, 6}).view({2, 3}), "MN,N->M");
  EXPECT_EQ(text(A(numbers({1, 0, 1}))), "4 10");
  EXPECT_EQ(text(A.H()(numbers({1, 1}))), "5 7 9");
  EXPECT_EQ(A.renamed({{"M", "K"}}).str(), "Dense(N -> K)");
}

TEST(OperatorExample, Fft) {
  const NamedLinop F = Fft(1, {.centered = true});
  EXPECT_EQ(text(F(numbers({0, 0, 1, 0}))), "0.5 0.5 0.5 0.5");
  EXPECT_EQ(&F.N().type(), &Identity().type());
  const NamedLinop B = Fft(1, {.norm = FftNorm::backward});
  EXPECT_EQ(text(B.inverse()(B(numbers({1, 2, 3, 4})))), "1 2 3 4");
}

TEST(OperatorExample, Pad) {
  const NamedLinop A = Pad({2}, {5});
  EXPECT_EQ(text(A(numbers({1, 2}))), "0 1 2 0 0");
  EXPECT_EQ(A.str(), "Pad(..., Nx -> ..., Nx1)");
}

TEST(OperatorExample, Crop) {
  const NamedLinop A = Crop({5}, {2});
  EXPECT_EQ(text(A(numbers({1, 2, 3, 4, 5}))), "2 3");
  EXPECT_EQ(text(A.N()(numbers({1, 2, 3, 4, 5}))), "0 2 3 0 0");
}

TEST(OperatorExample, PadDim) {
  const NamedLinop A = PadDim("A", 2, 4, "A B");
  EXPECT_EQ(text(A(numbers({1, 2}).view({2, 1}))), "1 2 0 0");
  EXPECT_EQ(A.str(), "PadDim(A, B -> A1, B)");
}

TEST(OperatorExample, Truncate) {
  const NamedLinop A = Truncate("A", 3, 2, "A");
  EXPECT_EQ(text(A(numbers({1, 2, 3}))), "1 2");
  EXPECT_EQ(text(A.N()(numbers({1, 2, 3}))), "1 2 0");
}

TEST(OperatorExample, Restrict) {
  const NamedLinop A = Restrict("A", {{"A", slice(1, 3)}}, {.sizes = {{"A", 4}}});
  EXPECT_EQ(text(A(numbers({1, 2, 3, 4}))), "2 3");
  EXPECT_EQ(text(A.N()(numbers({1, 2, 3, 4}))), "0 2 3 0");
  const NamedLinop E = Embed("A", {{"A", slice(2, 4)}}, {.sizes = {{"A", 5}}});
  EXPECT_EQ(text(E(numbers({7, 8}))), "0 0 7 8 0");
}

TEST(OperatorExample, Permute) {
  const NamedLinop A = Permute("A B", "B A");
  EXPECT_EQ(text(A(numbers({1, 2, 3, 4}).view({2, 2}))), "1 3 2 4");
}

TEST(OperatorExample, Rearrange) {
  const NamedLinop A = Rearrange("(A B) -> B A", {.sizes = {{"A", 2}}});
  EXPECT_EQ(text(A(numbers({1, 2, 3, 4, 5, 6}))), "1 4 2 5 3 6");
  EXPECT_EQ(A.str(), "Rearrange(Ab -> B, A)");
}

TEST(OperatorExample, SumReduce) {
  const NamedLinop A = SumReduce("A C", "A", {.sizes = {{"C", 3}}});
  EXPECT_EQ(text(A(numbers({1, 2, 3, 4, 5, 6}).view({2, 3}))), "6 15");
  EXPECT_EQ(text(A.H()(numbers({1, 2}))), "1 1 1 2 2 2");
}

TEST(OperatorExample, Repeat) {
  const NamedLinop A = Repeat({{"C", 3}}, "A", "A C");
  EXPECT_EQ(text(A(numbers({1, 2}))), "1 1 1 2 2 2");
  EXPECT_EQ(text(A.N()(numbers({1, 2}))), "3 6");
}

TEST(OperatorExample, Sampling) {
  const NamedLinop A = Sampling({Tensor::from<index_t>({1, 3, 1})}, {4});
  EXPECT_EQ(text(A(numbers({5, 6, 7, 8}))), "6 8 6");
  EXPECT_EQ(text(A.H()(numbers({5, 4, -1}))), "0 4 0 4");
  EXPECT_EQ(text(A.N()(numbers({1, 1, 1, 1}))), "0 2 0 1");
}

TEST(OperatorExample, ArrayToBlocks) {
  const NamedLinop A = ArrayToBlocks({5}, {3}, {2});
  EXPECT_EQ(text(A(numbers({1, 2, 3, 4, 5}))), "1 2 3 3 4 5");
  EXPECT_EQ(text(A.N()(numbers({1, 1, 1, 1, 1}))), "1 1 2 1 1");
  const NamedLinop B = BlocksToArray({5}, {3}, {2});
  EXPECT_EQ(text(B(numbers({1, 2, 3, 4, 5, 6}).view({2, 3}))), "1 2 7 5 6");
}

TEST(OperatorExample, Sparse) {
  const NamedLinop S = Sparse(numbers({1, 2, 3}), Tensor::from<index_t>({0, 4, 1}),
                              Tensor::from<index_t>({0, 2, 3}), 5);
  EXPECT_EQ(text(S(numbers({1, 10, 0, 0, 100}))), "201 30");
  EXPECT_EQ(text(S.H()(numbers({1, 1}))), "1 3 0 0 2");
}

TEST(OperatorExample, Interpolate) {
  const Tensor locs = numbers({1.5, -0.25}).view({2, 1});
  const NamedLinop A = Interpolate(locs, {4}, {.width = 2.0, .kernel = Spline{.order = 1}});
  EXPECT_EQ(text(A(numbers({0, 10, 20, 40}))), "15 10");
  EXPECT_EQ(text(A.H()(numbers({1, 0}))), "0 0.5 0.5 0");
}

TEST(OperatorExample, Nufft) {
  const Tensor locs = numbers({0, 1, 0.5}).view({3, 1});
  const NamedLinop A = Nufft(locs, {4}, "K", {.scale = NufftScale::none, .eps = 1e-9});
  EXPECT_EQ(text(A(Tensor::ones({4}))), "4 0 2.4142+1i");
  const NamedLinop T = Nufft(locs, {4}, "K", {.toeplitz = Toeplitz::yes});
  EXPECT_EQ(toeplitz_kernel(T).shape(), Extents({8}));
}

TEST(OperatorExample, Convolution) {
  const Tensor h = numbers({1, 2, 3}), x = numbers({1, 0, 0, 0});
  EXPECT_EQ(text(Convolution(h)(x)), "2 3 0 0");
  EXPECT_EQ(text(Convolution(h, {.boundary = Boundary::circular})(x)), "2 3 0 1");
  EXPECT_EQ(text(FftConvolution(h)(x)), "2 3 0 1");
}

TEST(OperatorExample, Roll) {
  const NamedLinop A = Roll("A", "A", {1});
  EXPECT_EQ(text(A(numbers({1, 2, 3}))), "3 1 2");
  EXPECT_EQ(text(A.H()(numbers({3, 1, 2}))), "1 2 3");
}

TEST(OperatorExample, FiniteDifference) {
  const Tensor x = numbers({1, 4, 9});
  EXPECT_EQ(text(FiniteDifference("A", "A")(x)), "3 5 -8");
  EXPECT_EQ(text(FiniteDifference("A", "A", {.boundary = DifferenceBoundary::neumann})(x)),
            "3 5 0");
  EXPECT_EQ(Gradient("Ny Nx", "Ny Nx").oshape(), Dims("D Ny Nx"));
}

TEST(OperatorExample, Wavelet) {
  const NamedLinop W = Wavelet("A", "A", {.family = "haar", .levels = 1});
  EXPECT_EQ(text(W(numbers({1, 1, 1, 3}))), "1.4142 2.8284 0 -1.4142");
  EXPECT_EQ(text(W.H()(W(numbers({1, 1, 1, 3})))), "1 1 1 3");
}

TEST(OperatorExample, ToDevice) {
  const Device other{DeviceType::cpu, 1};
  const NamedLinop T = ToDevice(Device{}, other, "A");
  EXPECT_EQ(T(numbers({1, 2})).device().str(), "cpu:1");
  EXPECT_EQ(text(T.H()(T(numbers({1, 2})))), "1 2");
}

TEST(OperatorExample, Sleep) {
  const NamedLinop A = Sleep(0.01, "A");
  EXPECT_EQ(text(A(numbers({1, 2}))), "1 2");
  EXPECT_EQ(text(A.H()(numbers({1, 2}))), "1 2");
}

TEST(OperatorExample, Breakpoint) {
  int n_forward = 0, n_adjoint = 0;
  set_breakpoint_hook("example", [&](const BreakpointHit& hit) {
    ++(hit.direction == PassDirection::forward ? n_forward : n_adjoint);
  });
  const NamedLinop A = Breakpoint("M", "example") * Dense(Tensor::ones({2, 3}), "MN,N->M");
  EXPECT_EQ(text((A + 2 * A).N()(numbers({1, 0, 0}))), "18 18 18");
  EXPECT_EQ(n_forward, 2);
  EXPECT_EQ(n_adjoint, 2);
  set_breakpoint_hook("example", [](const BreakpointHit&) {});
}

TEST(OperatorExample, Kronecker) {
  const NamedLinop K =
      Kronecker(Dense(Tensor::ones({1, 2}), "MN,N->M"), Diagonal(numbers({1, 10}), "A"));
  EXPECT_EQ(text(K(numbers({1, 2, 3, 4}).view({2, 2}))), "4 60");
  EXPECT_EQ(K.shape().str(), "(N, A) -> (M, A)");
}

TEST(OperatorExample, RealPart) {
  const Tensor z = Tensor::from<std::complex<double>>({{1, 2}, {3, 4}});
  EXPECT_EQ(text(RealPart("A")(z)), "1 3");
  EXPECT_EQ(text(RealPart("A").N()(z)), "1 3");
}

TEST(OperatorExample, ImagPart) {
  const Tensor z = Tensor::from<std::complex<double>>({{1, 2}, {3, 4}});
  EXPECT_EQ(text(ImagPart("A")(z)), "2 4");
  EXPECT_EQ(text(ImagPart("A").N()(z)), "0+2i 0+4i");
}

TEST(OperatorExample, AsReal) {
  const Tensor z = Tensor::from<std::complex<double>>({{1, 2}, {3, 4}});
  EXPECT_EQ(text(AsReal("A")(z)), "1 2 3 4");
  EXPECT_EQ(text(AsComplex("A")(AsReal("A")(z))), "1+2i 3+4i");
}

TEST(OperatorExample, SimpleLinop) {
  const NamedLinop A = SimpleLinop({.fn = [](const Variable& x) { return x * 2.0; },
                                    .adj_fn = [](const Variable& y) { return y * 3.0; }});
  EXPECT_EQ(text(A(numbers({1}))) + ", " + text(A.H()(numbers({1}))), "2, 3");
  EXPECT_EQ(text(A.N()(numbers({1}))), "6");
}

TEST(OperatorExample, Chain) {
  const NamedLinop A = Chain(Dense(Tensor::ones({2, 3}), "KN,N->K"), Scalar(2),
                             Dense(Tensor::ones({4, 2}), "MK,K->M"));
  EXPECT_EQ(A.shape().str(), "(N) -> (M)");
  EXPECT_EQ(text(A(numbers({1, 2, 3}))), "24 24 24 24");
}

TEST(OperatorExample, Add) {
  const NamedLinop A = Diagonal(numbers({1, 2}), "A") + 3 * Identity("A");
  EXPECT_EQ(text(A(numbers({1, 1}))), "4 5");
}

TEST(OperatorExample, Concat) {
  const NamedLinop A = Dense(Tensor::ones({1, 2}), "MN,N->M"),
                   B = Dense(Tensor::ones({2, 3}), "MN,N->M");
  const NamedLinop D = BlockDiagonal({A, B}, "N", "M");
  EXPECT_EQ(text(D(numbers({1, 2, 3, 4, 5}))), "3 12 12");
  EXPECT_EQ(text(Concat({A, A}, {.out = "M"})(numbers({1, 2}))), "3 3");
}

TEST(OperatorExample, Stack) {
  const NamedLinop A = Scalar(2, "A"), B = Scalar(3, "A");
  const NamedLinop S = Stack({A, B}, {.out = {"S", 0}});
  EXPECT_EQ(S.shape().str(), "(A) -> (S, A)");
  EXPECT_EQ(text(S(numbers({1, 10}))), "2 20 3 30");
  EXPECT_EQ(text(S.N()(numbers({1}))), "13");
}

TEST(OperatorExample, Normal) {
  const NamedLinop A = FiniteDifference("A", "A");
  EXPECT_EQ(A.N().str(), "Normal(A -> A)\n  FiniteDifference(A -> A)");
  EXPECT_EQ(text(A.N()(numbers({0, 1, 0, 0}))), "-1 2 -1 0");
}

// -- the page ------------------------------------------------------------------------------------

const std::filesystem::path kPage =
    std::filesystem::path(PALIMPSEST_SOURCE_DIR) / "docs/operators.md";

std::string page() {
  std::ifstream file(kPage);
  EXPECT_TRUE(file) << kPage;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool is_of_the_library(const std::string& name) { return name.find('.') == std::string::npos; }

std::string table() {
  const auto yes = [](bool is) { return is ? " yes |" : " |"; };
  std::string result =
      "| type | version | container | own adjoint | own normal | inverse | knows sizes | one shape "
      "| "
      "linear over |\n|---|---|---|---|---|---|---|---|---|\n";
  for (const std::string& name : linop_names()) {
    if (!is_of_the_library(name)) continue;
    const LinopType& type = *find_linop(name);
    std::string anchor = name;
    for (char& c : anchor) c = static_cast<char>(std::tolower(c));
    result += "| [" + name + "](#" + anchor + ") | " + std::to_string(type.version) + " |" +
              yes(type.assemble != nullptr) + yes(type.adjoint || type.functions.adj_fn) +
              yes(type.normal || type.functions.normal_fn) + yes(type.inverse) +
              yes(type.functions.size) + yes(type.one_shape) +
              (type.real_linear ? " R |\n" : " C |\n");
  }
  return result;
}

TEST(OperatorPage, HasTheTableThatTheRegistrySays) {
  const std::string begin = "<!-- begin of the table -->\n", end = "<!-- end of the table -->";
  const std::string text = page();
  const std::size_t from = text.find(begin), to = text.find(end);
  ASSERT_TRUE(from != std::string::npos && to != std::string::npos);
  if (std::getenv("PALIMPSEST_WRITE_DOCS")) {
    std::ofstream(kPage) << text.substr(0, from + begin.size()) << table() << text.substr(to);
    return;
  }
  EXPECT_EQ(text.substr(from + begin.size(), to - from - begin.size()), table())
      << "Try to run this test with PALIMPSEST_WRITE_DOCS=1";
}

TEST(OperatorPage, HasASectionWithFormulaExampleAndErrorsForEveryType) {
  const std::string text = page();
  int n_types = 0;
  for (const std::string& name : linop_names()) {
    if (!is_of_the_library(name)) continue;
    ++n_types;
    const std::size_t at = text.find("\n### " + name + "\n");
    ASSERT_NE(at, std::string::npos) << "no section on " << name;
    std::size_t end = text.find("\n##", at + 5);
    if (end == std::string::npos) end = text.size();
    const std::string section = text.substr(at, end - at);
    for (const char* part : {"A x = ", "Errors: ", "```cpp\n", "EXPECT_"}) {
      EXPECT_NE(section.find(part), std::string::npos) << name << " lacks " << part;
    }
    // Its example is one of those above, which were run.
    const auto* suite = ::testing::UnitTest::GetInstance();
    bool has_test = false;
    for (int s = 0; s < suite->total_test_suite_count(); ++s) {
      const auto* info = suite->GetTestSuite(s);
      for (int t = 0; t < info->total_test_count(); ++t) {
        has_test = has_test || (info->name() == std::string("OperatorExample") &&
                                info->GetTestInfo(t)->name() == name);
      }
    }
    EXPECT_TRUE(has_test) << name << " has no example";
  }
  EXPECT_GE(n_types, 34);
}

}  // namespace
}  // namespace palimpsest
