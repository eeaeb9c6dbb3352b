// SPDX-License-Identifier: Apache-2.0
// The resident memory of a reconstruction, including code and libraries, compared with the
// announced peak.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "cli/run_command.hpp"
#include "palimpsest/io/cartesian.hpp"
#include "palimpsest/io/npy.hpp"
#include "support/long_run.hpp"

namespace palimpsest::cli {
namespace {

using Json = nlohmann::json;

// Code that planned and runs, plans of libraries, stacks of threads: additional to an idle process.
// Measured: up to 17.4 MB, with light optimization.
constexpr index_t kOfTheProcess = 20 << 20;

class ResidentMemory : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "sanitizers keep memory of their own";
#endif
  }
  static Tensor random(const Extents& shape, std::uint64_t stream) {
    return Tensor::random_normal(shape, DType::complex64, {5, stream});
  }
  // A raw scan of a volume in which every second row is measured, and maps for it.
  void write_volume(index_t coils, index_t n) {
    Tensor mask = Tensor::zeros({n, n}, DType::bool_);
    for (index_t i = 0; i < n * n; ++i) {
      const auto is_near = [n](index_t k) { return k > n / 2 - 8 && k < n / 2 + 8; };
      const index_t z = i / n, y = i % n;
      mask.set<bool>({z, y}, (z + y) % 2 == 0 || (is_near(z) && is_near(y)));
    }
    RawScanHeader header;
    header.recon.matrix = {n, n, n};
    write_ismrmrd(dir / "volume.h5", cartesian_scan(random({coils, n, n, n}, 1), mask, header));
    write_npy(dir / "volume_maps.npy", random({coils, n, n, n}, 2));
  }
  // Runs a reconstruction without and with the smallest budget.
  void expect_within(const std::vector<std::string>& arguments) {
    const auto with = [&](std::vector<std::string> more) {
      more.insert(more.begin(), arguments.begin(), arguments.end());
      more.insert(more.begin(), "recon");
      return more;
    };
    const index_t empty = run_command({"--version"}, {.measures_memory = true}).resident_bytes;
    const CommandResult refused = run_command(with({"--memory", "1", "--json"}));
    const std::string before = "Try --memory ";
    ASSERT_NE(refused.err.find(before), std::string::npos) << refused.err;
    const std::string smallest = refused.err.substr(refused.err.find(before) + before.size());
    for (const std::string& budget : {std::string("1T"), smallest.substr(0, smallest.find('\n'))}) {
      const CommandResult result = run_command(
          with({"--memory", budget, "--iterations", "3", "--json"}), {.measures_memory = true});
      ASSERT_EQ(result.code, 0) << result.err;
      const Json report = Json::parse(result.out);
      const auto announced = report.at("announced_peak_bytes").get<index_t>();
      EXPECT_LE(result.resident_bytes - empty, announced + kOfTheProcess)
          << ::testing::PrintToString(arguments) << " within " << budget << ": announced "
          << announced << ", resident " << result.resident_bytes << ", empty " << empty;
      // The process peak of the report equals the peak of the system.
      EXPECT_NEAR(report.at("process_peak_bytes").get<double>(),
                  static_cast<double>(result.resident_bytes), 4e6);
      std::printf("announced %lld, above an empty process %lld\n",
                  static_cast<long long>(announced),
                  static_cast<long long>(result.resident_bytes - empty));
    }
  }
  ScratchDirectory dir;
};

TEST_F(ResidentMemory, OfARawVolume) {
  write_volume(6, 64);
  expect_within({dir / "volume.h5", "--maps", dir / "volume_maps.npy", "--save", dir / "a.npy"});
}

TEST_F(ResidentMemory, OfARawVolumeWhoseMapsAreEstimatedAndKept) {
  write_volume(4, 40);
  expect_within({dir / "volume.h5", "--save-maps", dir / "m.npy", "-o", dir / "a.png"});
}

TEST_F(ResidentMemory, OfAPlaneOfManyCoils) {
  const index_t n = testing::length_factor() > 1 ? 512 : 256;
  ASSERT_EQ(run_command({"simulate", dir / "scan.h5", "--size", std::to_string(n), "--coils", "32",
                         "--save-maps", dir / "maps.npy", "--save-kspace", dir / "k.npy"})
                .code,
            0);
  expect_within({dir / "scan.h5", "--maps", dir / "maps.npy", "--save", dir / "a.npy"});
  expect_within({dir / "k.npy", "--maps", dir / "maps.npy", "--save", dir / "a.npy"});
  if (testing::length_factor() > 1) expect_within({dir / "scan.h5", "-o", dir / "a.png"});
}

TEST_F(ResidentMemory, OfArraysOfAVolume) {
  // Every second row along z and y. Complete data need no transforms: the smallest budget then cuts
  // them into some hundred tiles, and their compiled programs of 0.1 MB each count to no budget.
  Tensor kspace = random({6, 48, 48, 48}, 3);
  auto* const samples = kspace.mutable_data<std::complex<float>>();
  for (index_t i = 0; i < kspace.numel(); ++i) {
    const index_t y = i / 48 % 48, z = i / (48 * 48) % 48;
    if ((z + y) % 2 == 1) samples[i] = 0;
  }
  write_npy(dir / "k.npy", kspace);
  write_npy(dir / "m.npy", random({6, 48, 48, 48}, 4));
  expect_within({dir / "k.npy", "--maps", dir / "m.npy", "--save", dir / "a.npy"});
}

}  // namespace
}  // namespace palimpsest::cli
