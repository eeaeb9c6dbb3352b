// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/split/budget.hpp"

#include <unistd.h>

#include <filesystem>
#include <string>

#include "linop_support.hpp"
#include "palimpsest/base/atomic_file.hpp"
#include "palimpsest/base/config.hpp"
#include "palimpsest/linop/copies/saving.hpp"
#include "palimpsest/linop/operators/simple.hpp"
#include "palimpsest/linop/transforms/convolution.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"

namespace palimpsest {
namespace {

using testing::difference;
using testing::random;

const TensorType kImage{DType::complex64, {16, 32}, {}};

NamedLinop sense(const Tensor& maps) {
  return Chain(Dense(maps, "CNyNx,NyNx->CNyNx"),
               Fft(2, {.batch = "C", .grid = Grid{"NyNx", "KyKx"}}),
               Diagonal(random({16, 32}, DType::float32), "CKyKx"));
}
NamedLinop sense_normal() { return sense(random({24, 16, 32}, DType::complex64)).N(); }

TEST(SplitToBudget, WhatFitsIsTheOperatorItself) {
  const NamedLinop A = sense_normal();
  const BudgetSplit split = split_to_budget(A, kImage, 1 << 30);
  EXPECT_TRUE(split.op.is(A));
  EXPECT_TRUE(split.sizes.empty());
  EXPECT_EQ(split.tiles, 1);
  EXPECT_EQ(split.plan.peak_bytes, A.plan(kImage).peak_bytes);
  EXPECT_EQ(split.operator_bytes, operator_bytes(A));
  EXPECT_EQ(split.peak_bytes, split.plan.peak_bytes + split.operator_bytes);
}

TEST(SplitToBudget, HalvesTilesUntilThePlanFits) {
  const NamedLinop A = sense_normal();
  const Tensor x = random({16, 32}, DType::complex64);
  const Tensor expected = A(x);
  index_t before = split_to_budget(A, kImage, 1 << 30).peak_bytes, smallest = before;
  for (const double part : {0.9, 0.8, 0.7}) {
    const auto budget = static_cast<index_t>(part * static_cast<double>(before));
    const BudgetSplit split = split_to_budget(A, kImage, budget);
    EXPECT_LE(split.peak_bytes, budget);
    ASSERT_TRUE(split.sizes.contains("C"));
    EXPECT_LE(split.peak_bytes, smallest);
    smallest = split.peak_bytes;
    const NamedLinop fresh = split.op.copy();
    const MemoryScope scope;
    const Tensor y = fresh(x);
    EXPECT_EQ(static_cast<index_t>(scope.peak_bytes()), split.plan.peak_bytes);
    EXPECT_LE(difference(y, expected), 1e-6);
  }
}

TEST(SplitToBudget, AnImpossibleBudgetNamesTheSmallestWhichThenWorks) {
  const NamedLinop A = sense_normal();
  std::string text;
  try {
    split_to_budget(A, kImage, 1000);
  } catch (const BudgetError& error) {
    text = error.what();
  }
  ASSERT_NE(text.find("the smallest budget found is "), std::string::npos) << text;
  EXPECT_NE(text.find("C: 1"), std::string::npos) << text;
  const index_t smallest =
      std::stoll(text.substr(text.find("found is ") + std::string("found is ").size()));
  const BudgetSplit split = split_to_budget(A, kImage, smallest);
  EXPECT_EQ(split.peak_bytes, smallest);
  EXPECT_EQ(split.sizes.at("C"), 1);
  testing::expect_error<BudgetError>([&] { split_to_budget(A, kImage, smallest - 1); },
                                     std::to_string(smallest));
}

TEST(SplitToBudget, WhatCannotBeCutSaysSo) {
  const NamedLinop A = Fft(2);
  testing::expect_error<BudgetError>([&] { split_to_budget(A, kImage, 10); }, "uncut");
  testing::expect_error<ValueError>([&] { split_to_budget(A, kImage, -1); }, "bytes");
  testing::expect_error<ValueError>([&] { split_to_budget(A, kImage, 10, {.candidates = "Q"}); },
                                    "candidates");
}

TEST(SplitToBudget, OnlyCandidatesAreCut) {
  const NamedLinop A = Diagonal(random({64, 32}, DType::complex64), "A B");
  const TensorType x{DType::complex64, {64, 32}, {}};
  const NamedLinop twice = Chain(A, Dense(random({8, 32}, DType::complex64), "MB,A B->A M"));
  const index_t whole = split_to_budget(twice, x, 1 << 30).peak_bytes;
  EXPECT_TRUE(split_to_budget(twice, x, whole - 1000, {.candidates = "A"}).sizes.contains("A"));
  EXPECT_TRUE(split_to_budget(twice, x, whole - 1000, {.candidates = "B"}).sizes.contains("B"));
}

TEST(ConfigBudget, HoldsForOperatorsWithUnnamedDimensions) {
  const Tensor x = random({4, 5}, DType::float64);
  const NamedLinop A = Sampling({Tensor::from<index_t>({0, 1, 2})}, {5});
  const Tensor expected = A(x);
  const NamedLinop W = Dense(random({40, 60}, DType::float64));
  const Tensor v = random({60}, DType::float64);
  const Tensor product = W(v);
  const index_t smallest = smallest_budget(W, {DType::float64, {60}, {}});
  {
    const ConfigScope scope({.budget = 1000000000});
    EXPECT_TRUE(equal(A(x), expected));
  }
  const ConfigScope scope({.budget = smallest});
  EXPECT_LE(difference(W(v), product), 1e-14);
}

TEST(ConfigBudget, IncludesWhatIsDerivedOnFirstUse) {
  const auto made = [] {
    return Convolution(
        random({9, 9}),
        {.batch = Dims(), .boundary = Boundary::circular, .method = ConvolutionMethod::fft});
  };
  const Tensor x = random({16, 16});
  const TensorType type{DType::complex128, {16, 16}, {}};
  const index_t budget = smallest_budget(made(), type);
  {
    const NamedLinop A = made();
    const ConfigScope scope({.budget = budget});
    const MemoryScope measured;
    A(x);
    EXPECT_LE(static_cast<index_t>(measured.peak_bytes()) + 81 * 16, budget);
  }
  {
    const ConfigScope scope({.budget = budget - 1});
    testing::expect_error<BudgetError>([&] { made()(x); }, "smallest budget");
  }
  // A plan leaves nothing to derive.
  const NamedLinop A = made();
  const Plan plan = A.plan(type);
  const MemoryScope measured;
  A(x);
  EXPECT_EQ(static_cast<index_t>(measured.peak_bytes()), plan.peak_bytes);
}

TEST(SplitToBudget, IsDeterministic) {
  const NamedLinop A = sense_normal();
  const index_t budget = split_to_budget(A, kImage, 1 << 30).peak_bytes * 7 / 10;
  const BudgetSplit a = split_to_budget(A, kImage, budget), b = split_to_budget(A, kImage, budget);
  EXPECT_EQ(a.sizes, b.sizes);
  EXPECT_EQ(a.peak_bytes, b.peak_bytes);
}

TEST(ConfigBudget, AnApplicationCutsItselfAndKeepsToIt) {
  const NamedLinop A = sense_normal();
  const Tensor x = random({16, 32}, DType::complex64);
  const Tensor expected = A(x);
  const index_t data = operator_bytes(A);
  const index_t budget = split_to_budget(A, kImage, 1 << 30).peak_bytes * 7 / 10;
  const ConfigScope scope({.budget = budget});
  const MemoryScope measured;
  const Tensor y = A(x);
  EXPECT_LE(static_cast<index_t>(measured.peak_bytes()) + data, budget);
  EXPECT_LE(difference(y, expected), 1e-6);
  EXPECT_LE(A.plan(kImage).peak_bytes + data, budget);
  const MemoryScope again;
  A(x);
  EXPECT_EQ(again.calls(), 1u);  // only the result is allocated: the function was kept
}

// A copy has the tiles but not the plan: several lanes would run them in parallel.
TEST(ConfigBudget, HoldsForCopiesOfWhatWasSplit) {
  const ConfigScope lanes({.threads = 4, .parallel_grain = 1});
  const NamedLinop A = sense_normal();
  const index_t budget = smallest_budget(A, kImage);
  const BudgetSplit split = split_to_budget(A, kImage, budget);
  ASSERT_GT(split.tiles, 1);
  const Tensor x = random({16, 32}, DType::complex64);
  for (const NamedLinop& B : {split.op, split.op.copy(), from_bytes(to_bytes(split.op))}) {
    const ConfigScope scope({.budget = budget});
    EXPECT_LE(B.plan(kImage).peak_bytes + split.operator_bytes, budget);
    B(x);
    const MemoryScope measured;
    const Tensor y = B(x);
    EXPECT_LE(static_cast<index_t>(measured.peak_bytes()) + split.operator_bytes, budget);
    EXPECT_LE(difference(y, A(x)), 1e-6);
  }
}

TEST(ConfigBudget, TilesFollowWritesToTheWeights) {
  const Tensor W = random({24, 40});
  const NamedLinop A = Dense(W, "MN,N->M");
  const TensorType type{DType::complex128, {40}, {}};
  const NamedLinop N = A.N();  // a Gram weight, which is derived
  const Tensor x = random({40});
  // Cut or not, the next plan uses the new weights.
  Parameter weight = A.param("weight");
  N(x);
  weight.modify([](Tensor& t) { t.fill(0.5); });
  EXPECT_LE(difference(N(x), A.H()(A(x))), 1e-13);
}

TEST(SplitToBudget, WhatWasPlannedIsAppliedWithoutCompilingAgain) {
  int graphs = 0;
  const auto twice = [&graphs](const Variable& x) {
    ++graphs;
    return x * 2.0;
  };
  const NamedLinop A = Chain(Dense(random({24, 40}), "MN,N->M"),
                             SimpleLinop({.fn = twice, .adj_fn = twice, .ishape = "M"}));
  const BudgetSplit split = split_to_budget(A, {DType::float64, {40}, {}}, 1 << 30);
  const int planned = graphs;
  EXPECT_GT(planned, 0);
  const Tensor x = random({40}, DType::float64);
  EXPECT_EQ(difference(split.op(x), A(x)), 0);
  EXPECT_EQ(graphs, planned);
}

// -- mapped files ---------------------------------------------------------------------------------

class MappedMaps : public ::testing::Test {
 protected:
  MappedMaps()
      : path_(::testing::TempDir() + "palimpsest_mapped_maps_" + std::to_string(getpid()) +
              ".bin") {
    const Tensor maps = random({12, 16, 32}, DType::complex64);
    maps_ = maps;
    AtomicFile file(path_);
    file.write(maps.raw_data(), static_cast<std::size_t>(maps.nbytes()));
    file.commit();
    mapped_ = Tensor(Storage::from_file(path_, 0, static_cast<std::size_t>(maps.nbytes())),
                     DType::complex64, maps.shape(), maps.strides(), 0);
  }
  ~MappedMaps() override { std::filesystem::remove(path_); }

  std::string path_;
  Tensor maps_, mapped_;
};

TEST_F(MappedMaps, CountAsFarAsOneStepReadsThem) {
  const NamedLinop A = sense(maps_).N(), B = sense(mapped_).N();
  EXPECT_EQ(operator_bytes(A) - operator_bytes(B), maps_.nbytes());
  const BudgetSplit whole = split_to_budget(B, kImage, 1 << 30);
  EXPECT_EQ(whole.operator_bytes, operator_bytes(B) + maps_.nbytes());
  const BudgetSplit cut = split_to_budget(B, kImage, whole.peak_bytes / 2);
  ASSERT_TRUE(cut.sizes.contains("C"));
  EXPECT_EQ(cut.operator_bytes, operator_bytes(B) + maps_.nbytes() / 12 * cut.sizes.at("C"));
}

TEST_F(MappedMaps, GiveTheSameResultsWhileTheyAreStreamed) {
  const NamedLinop A = sense(maps_).N(), B = sense(mapped_).N();
  const Tensor x = random({16, 32}, DType::complex64);
  const index_t budget = split_to_budget(B, kImage, 1 << 30).peak_bytes / 2;
  const Tensor expected = A(x);
  const ConfigScope scope({.budget = budget});
  for (int i = 0; i < 3; ++i) EXPECT_LE(difference(B(x), expected), 1e-6);
}

}  // namespace
}  // namespace palimpsest
