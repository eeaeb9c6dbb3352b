// SPDX-License-Identifier: Apache-2.0
// The kernels of OpenBLAS, chosen and checked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "palimpsest/kernels/matrices/blas_caller.hpp"

namespace palimpsest {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr const char* kVariable = "OPENBLAS_CORETYPE";

int processor_level() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw")) return 2;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 1 : 0;
#else
  return 0;
#endif
}

TEST(Blas, KernelsHaveTheInstructionsOfTheProcessor) {
  const std::string text = blas_library_version();
  EXPECT_THAT(text, HasSubstr("products checked"));
  if (std::getenv(kVariable) != nullptr) {
    EXPECT_THAT(text, HasSubstr("chosen by OPENBLAS_CORETYPE"));
  } else if (processor_level() > 0 && text.find("OpenBLAS") != std::string::npos) {
    EXPECT_THAT(text,
                AnyOf(HasSubstr("for Haswell"), HasSubstr("for Zen"), HasSubstr("for SkylakeX"),
                      HasSubstr("for Cooperlake"), HasSubstr("for SapphireRapids")));
  }
}

// Begins with kernels without AVX, as OpenBLAS chooses them for a processor that it does not know.
class BlasKernelChoice : public ::testing::Test {
 protected:
  void SetUp() override {
    environment_ = variable();
    n_checks = n_wrong = 0;
    if (use_blas_kernels("Prescott") != "Prescott") GTEST_SKIP() << "another BLAS";
  }
  void TearDown() override {
    EXPECT_EQ(variable(), environment_);
    use_blas_kernels(nullptr);
    choose_blas_kernels(std::getenv(kVariable), [] { return true; });
  }

  // The first n_wrong kernels are said to be wrong.
  static bool check() { return ++n_checks > n_wrong; }
  static int n_checks, n_wrong;

 private:
  static std::string variable() {
    const char* const text = std::getenv(kVariable);
    return text != nullptr ? text : "unset";
  }
  std::string environment_;
};
int BlasKernelChoice::n_checks = 0, BlasKernelChoice::n_wrong = 0;

TEST_F(BlasKernelChoice, FollowsTheInstructionsOfTheProcessor) {
  const BlasKernels kernels = choose_blas_kernels(nullptr, [] { return blas_multiplies(); });
  const char* const expected[] = {"Prescott", "Haswell", "SkylakeX"};
  EXPECT_EQ(kernels.core, expected[processor_level()]);
  EXPECT_TRUE(kernels.are_right);
  if (processor_level() > 0) {
    EXPECT_THAT(kernels.reason, HasSubstr("instead of those for Prescott"));
  }
}

TEST_F(BlasKernelChoice, OfTheUserStays) {
  const BlasKernels kernels = choose_blas_kernels("Prescott", check);
  EXPECT_EQ(kernels.core, "Prescott");
  EXPECT_THAT(kernels.reason, HasSubstr(kVariable));
  EXPECT_TRUE(kernels.are_right);
  n_wrong = 9;
  EXPECT_FALSE(choose_blas_kernels("Prescott", check).are_right);
  EXPECT_EQ(use_blas_kernels("Prescott"), "Prescott");
}

TEST_F(BlasKernelChoice, OfTheUserIsIgnoredIfTheLibraryLacksIt) {
  const BlasKernels kernels = choose_blas_kernels("ThisOne", check);
  EXPECT_EQ(kernels.core, choose_blas_kernels(nullptr, check).core);
  EXPECT_EQ(kernels.reason.find(kVariable), std::string::npos);
}

TEST_F(BlasKernelChoice, PassesByWrongKernels) {
  if (processor_level() < 2) GTEST_SKIP() << "needs AVX-512";
  n_wrong = 1;
  EXPECT_EQ(choose_blas_kernels(nullptr, check).core, "Haswell");

  use_blas_kernels("SkylakeX");
  n_checks = 0;
  const BlasKernels kernels = choose_blas_kernels(nullptr, check);
  EXPECT_EQ(kernels.core, "Haswell");
  EXPECT_THAT(kernels.reason, HasSubstr("those for SkylakeX multiply wrongly"));
}

TEST_F(BlasKernelChoice, IsTheLibrarysIfAllOthersAreWrong) {
  n_wrong = 2;
  const std::string own = use_blas_kernels(nullptr);
  use_blas_kernels("Prescott");
  const BlasKernels kernels = choose_blas_kernels(nullptr, check);
  EXPECT_EQ(kernels.core, own);
  n_checks = 0;
  n_wrong = 9;
  EXPECT_FALSE(choose_blas_kernels(nullptr, check).are_right);
}

TEST_F(BlasKernelChoice, AllMultiplyRightly) {
  const char* const cores[] = {"Prescott", "Nehalem", "Haswell", "Zen", "SkylakeX"};
  for (int i = 0; i < (processor_level() == 2 ? 5 : processor_level() == 1 ? 4 : 1); ++i) {
    EXPECT_EQ(use_blas_kernels(cores[i]), cores[i]);
    EXPECT_TRUE(blas_multiplies()) << cores[i];
  }
}

DType wrong_dtype;

// Adds 1 to the last element of one product of the check.
void nearly_multiply(DType dtype, index_t m, index_t n, index_t k, const GemmFactor& a,
                     const GemmFactor& b, void* out, index_t leading, const GemmScale& scale) {
  gemm_unguarded(dtype, m, n, k, a, b, out, leading, scale);
  if (dtype != wrong_dtype || m < 60 || !a.transposed || a.conjugated) return;
  visit_inexact(dtype, "nearly_multiply",
                [&](auto tag) { static_cast<typename decltype(tag)::type*>(out)[m * n - 1] += 1; });
}

TEST(Blas, TheCheckFindsOneWrongElement) {
  const BlasCaller caller;
  for (const DType dtype : {DType::float32, DType::float64, DType::complex64, DType::complex128}) {
    wrong_dtype = dtype;
    EXPECT_FALSE(blas_multiplies(nearly_multiply)) << name_of(dtype);
  }
}

}  // namespace
}  // namespace palimpsest
