// SPDX-License-Identifier: Apache-2.0
// A reconstruction compiles its solver once, counted by the replacements that rewrites report.
#include <gtest/gtest.h>

#include <atomic>
#include <complex>
#include <functional>

#include "cli/run_command.hpp"
#include "palimpsest/base/config.hpp"
#include "palimpsest/base/log.hpp"
#include "palimpsest/imaging/reconstruct.hpp"
#include "palimpsest/imaging/regularizers.hpp"
#include "palimpsest/imaging/scan_reconstruction.hpp"
#include "palimpsest/io/npy.hpp"

namespace palimpsest::cli {
namespace {

// Counts the lines of rewrite_trace while `action` runs.
index_t replacements(const std::function<void()>& action) {
  std::atomic<index_t> count = 0;
  set_log_sink([&](LogLevel, std::string_view) { ++count; });
  {
    const ConfigScope scope({.rewrite_trace = true});
    action();
  }
  set_log_sink({});
  return count;
}

class SolverCompilation : public ::testing::TestWithParam<const char*> {};

TEST_P(SolverCompilation, HappensOnce) {
  const ScratchDirectory dir;
  // A single coil: the adjoint of several is also tried coil by coil.
  const Tensor maps = Tensor::random_normal({1, 32, 32}, DType::complex64, {9, 1});
  const Tensor kspace = Tensor::random_normal({1, 32, 32}, DType::complex64, {9, 2});
  write_npy(dir / "k.npy", kspace);
  write_npy(dir / "maps.npy", maps);
  const Regularizer regularizer = parse_regularizer(GetParam());
  // The same solver, which this function makes once.
  const index_t once = replacements(
      [&] { plan_reconstruct(kspace, maps, {}, {.regularizers = {regularizer}, .scale = 1}); });
  ScanReconstructionOptions options;
  options.kspace = dir / "k.npy";
  options.maps = dir / "maps.npy";
  options.regularizers = {regularizer};
  const index_t of_scan = replacements([&] { ScanReconstruction{options}; });
  EXPECT_GT(once, 10);
  EXPECT_EQ(of_scan, once);
  // A budget that is large enough takes the solver that was compiled to measure its bytes.
  options.budget = index_t{1} << 40;
  EXPECT_EQ(replacements([&] { ScanReconstruction{options}; }), once);
}

INSTANTIATE_TEST_SUITE_P(Regularizers, SolverCompilation,
                         ::testing::Values("l2:0.01", "l1wav:0.01", "tv:0.01", "tgv:0.01", "nonneg",
                                           "ball:0.5"));

}  // namespace
}  // namespace palimpsest::cli
