// SPDX-License-Identifier: Apache-2.0
// From a file to an image on several ranks.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "distributed/distributed_support.hpp"
#include "palimpsest/imaging/scan_reconstruction.hpp"
#include "palimpsest/imaging/trajectories.hpp"
#include "palimpsest/io/npy.hpp"
#include "palimpsest/linop/transforms/nufft.hpp"
#include "support/expect_error.hpp"

namespace palimpsest::testing {
namespace {

// A file of this rank with the same content on all ranks.
class KspaceFile {
 public:
  explicit KspaceFile(const Tensor& kspace, const std::string& name = "")
      : path_(::testing::TempDir() + "palimpsest_ranks_" + std::to_string(::getpid()) + name +
              ".npy") {
    write_npy(path_, kspace);
  }
  KspaceFile(const KspaceFile&) = delete;
  KspaceFile& operator=(const KspaceFile&) = delete;
  ~KspaceFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Smooth coils of a box in the middle; every second row outside the centre is missing.
Tensor kspace_of(index_t coils, index_t nz, index_t ny, index_t nx, std::uint64_t seed) {
  Tensor images = Tensor::zeros({coils, nz, ny, nx}, DType::complex64);
  auto* const v = images.mutable_data<std::complex<float>>();
  const auto n = [](index_t i, index_t extent) {
    return static_cast<float>(i) / static_cast<float>(extent) - 0.5F;
  };
  index_t at = 0;
  for (index_t c = 0; c < coils; ++c) {
    const float angle = 6.2831853F * static_cast<float>(c) / static_cast<float>(coils);
    for (index_t z = 0; z < nz; ++z) {
      for (index_t y = 0; y < ny; ++y) {
        for (index_t x = 0; x < nx; ++x, ++at) {
          const float py = n(y, ny), px = n(x, nx), pz = nz == 1 ? 0 : n(z, nz);
          const bool is_inside = py * py + px * px + pz * pz < 0.15F;
          const float weight = 1 + std::cos(angle) * py + std::sin(angle) * px + 0.3F * pz;
          v[at] = is_inside ? std::polar(weight, 2 * px + angle * py) : std::complex<float>();
        }
      }
    }
  }
  const NamedLinop F =
      Fft(nz == 1 ? 2 : 3, {.batch = nz == 1 ? Dims("C Nz") : Dims("C"),
                            .grid = nz == 1 ? Grid{"Ny Nx", "Ky Kx"} : Grid{"Nz Ny Nx", "Kz Ky Kx"},
                            .norm = FftNorm::ortho,
                            .centered = true});
  Tensor kspace = F(images).contiguous().clone();
  const Tensor noise = random_values(kspace.shape(), DType::complex64, seed);
  auto* const k = kspace.mutable_data<std::complex<float>>();
  for (index_t i = 0; i < kspace.numel(); ++i) {
    k[i] += 1e-4F * noise.data<std::complex<float>>()[i];
    const index_t y = i / nx % ny, z = i / nx / ny % nz;
    const bool is_centre = std::abs(y - ny / 2) < 8 && (nz == 1 || std::abs(z - nz / 2) < 8);
    if (!is_centre && (y + z) % 2 == 1) k[i] = 0;
  }
  return kspace;
}

ScanReconstructionOptions options_for(const std::string& path, const Team& team) {
  ScanReconstructionOptions options;
  options.kspace = path;
  options.regularizers = {parse_regularizer("l2:0.01")};
  options.iterations = 4;
  options.team = team;
  options.scratch = ::testing::TempDir();
  return options;
}

struct Done {
  ScanReconstructionResult result;
  index_t announced = 0, measured = 0;
};

Done reconstructed(const ScanReconstructionOptions& options) {
  ScanReconstruction reconstruction(options);
  Done done{reconstruction.run(), reconstruction.plan().peak_bytes, 0};
  done.measured = reconstruction.measured_bytes();
  return done;
}

void expect_same_image(const Tensor& kspace, double tolerance) {
  const KspaceFile file(kspace);
  const Team team = Team::world();
  const Done one = reconstructed(options_for(file.path(), {}));
  const Done together = reconstructed(options_for(file.path(), team));
  EXPECT_EQ(together.result.iterations, one.result.iterations);
  EXPECT_EQ(together.result.status, one.result.status);
  EXPECT_LE(together.measured, together.announced);
  if (team.rank() != 0) return;
  EXPECT_LE(distance(together.result.image, one.result.image), tolerance);
}

TEST(ReconOnRanks, PlanesOfAVolumeAreDealtOutBitForBit) {
  expect_same_image(kspace_of(4, 24, 26, 9, 1), 0);
}

TEST(ReconOnRanks, FramesOfASeriesAreDealtOutBitForBit) {
  Tensor series = Tensor::empty({5, 4, 1, 32, 30}, DType::complex64);
  for (index_t t = 0; t < 5; ++t) {
    series.select(0, t).copy_from(kspace_of(4, 1, 32, 30, static_cast<std::uint64_t>(t)));
  }
  expect_same_image(series, 0);
}

// Spokes differ from frame to frame; later frames are brighter.
TEST(ReconOnRanks, FramesAlongTrajectoriesTakeOneScale) {
  constexpr index_t kFrames = 3, kSpokes = 12, kSamples = 48;
  const Tensor trajectory =
      radial_trajectory({.spokes = kFrames * kSpokes, .samples = kSamples, .golden = 1});
  const NamedLinop F =
      Nufft(trajectory, {24, 24}, "Sp Ro", {.input = "Ny Nx", .kspace = "Ky Kx", .batch = "C"});
  Tensor images = random_values({3, 24, 24}, DType::complex64, 5);
  Tensor kspace = F(images).contiguous().clone();
  auto* k = kspace.mutable_data<std::complex<float>>();
  for (index_t i = 0; i < kspace.numel(); ++i) {
    k[i] *= static_cast<float>(1 + i / kSamples % (kFrames * kSpokes) / kSpokes);
  }
  const KspaceFile file(kspace), spokes(trajectory, "spokes"), maps(images, "maps");
  const auto options = [&](const Team& team) {
    ScanReconstructionOptions result = options_for(file.path(), team);
    result.scan.trajectory = spokes.path();
    result.maps = maps.path();
    result.regularizers = {parse_regularizer("l1wav:0.01,shift=none")};
    result.scan.readouts_per_frame = kSpokes;
    return result;
  };
  const Done one = reconstructed(options({}));
  ScanReconstructionOptions all = options({});
  all.regularizers = {parse_regularizer("tv(T):0.01")};
  EXPECT_EQ(one.result.scale, reconstructed(all).result.scale);
  EXPECT_LE(one.measured, one.announced);
  EXPECT_GE(one.measured, 0.99 * static_cast<double>(one.announced));
  const Done together = reconstructed(options(Team::world()));
  EXPECT_LE(together.measured, together.announced);
  const bool shares_coils = Team::world().size() > kFrames;
  EXPECT_NEAR(together.result.scale / one.result.scale, 1, shares_coils ? 1e-5 : 0);
  if (Team::world().rank() != 0) return;
  EXPECT_LE(distance(together.result.image, one.result.image), shares_coils ? 2e-5 : 0);
}

// A rank of two has one frame more: the other waits for it longer than for a message.
TEST(ReconOnRanks, ARankThatHasMoreToSolveIsWaitedFor) {
  if (Team::world().size() != 2 || std::getenv("PALIMPSEST_LONG") == nullptr) return;
  Tensor series = Tensor::empty({3, 4, 1, 32, 30}, DType::complex64);
  for (index_t t = 0; t < 3; ++t) {
    series.select(0, t).copy_from(kspace_of(4, 1, 32, 30, static_cast<std::uint64_t>(t)));
  }
  const KspaceFile file(series);
  ScanReconstruction reconstruction(options_for(file.path(), Team::world(2)));
  const auto slowly = [](index_t, double) {
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
  };
  EXPECT_EQ(reconstruction.run(slowly).iterations, 4);
}

TEST(ReconOnRanks, CoilsOfOnePlaneAreDealtOutBitForBit) {
  expect_same_image(kspace_of(6, 1, 32, 30, 3), 0);
  expect_same_image(kspace_of(8, 1, 90, 110, 5), 0);
}

TEST(ReconOnRanks, ARankThatIsInterruptedEndsItOnAll) {
  const Team team = Team::world();
  Tensor series = Tensor::empty({5, 4, 1, 32, 30}, DType::complex64);
  for (index_t t = 0; t < 5; ++t) series.select(0, t).copy_from(kspace_of(4, 1, 32, 30, 1));
  for (const Tensor& kspace : {series, kspace_of(6, 1, 32, 30, 3)}) {
    const KspaceFile file(kspace);
    ScanReconstructionOptions options = options_for(file.path(), team);
    options.cancel.emplace();
    ScanReconstruction reconstruction(options);
    int iterations = 0;
    const ScanReconstructionResult result = reconstruction.run([&](index_t, double) {
      if (++iterations == 2 && team.rank() == team.size() - 1) options.cancel->cancel();
    });
    EXPECT_EQ(result.status, Status::cancelled);
  }
}

TEST(ReconOnRanks, MapsAndBudgetsWorkToo) {
  const KspaceFile file(kspace_of(6, 1, 32, 30, 3));
  ScanReconstructionOptions options = options_for(file.path(), Team::world());
  const ScanReconstruction free(options);
  options.budget = free.plan().peak_bytes;
  options.keeps_maps = true;
  const Done done = reconstructed(options);
  EXPECT_LE(done.measured, *options.budget);
  if (Team::world().rank() != 0) return;
  EXPECT_EQ(done.result.maps.shape(), (Extents{6, 32, 30}));
}

TEST(ReconOnRanks, RefusesRanksWithoutWork) {
  const KspaceFile file(kspace_of(6, 1, 32, 30, 3));
  expect_error<ValueError>(
      [&] {
        ScanReconstruction(options_for(file.path(), Team::pretend({{"rank", 7}})));
      },
      "7 for coils");
}

TEST(ReconOnRanks, RefusesCheckpointsOfSharedSolves) {
  const KspaceFile file(kspace_of(6, 1, 32, 30, 3));
  ScanReconstructionOptions options = options_for(file.path(), Team::pretend({{"rank", 2}}));
  options.checkpoint = CheckpointOptions{.path = "state"};
  expect_error<ValueError>([&] { ScanReconstruction{options}; },
                           "[ScanReconstructionOptions.checkpoint] 2 ranks share");
  options.checkpoint.reset();
  options.resume = "state";
  expect_error<ValueError>([&] { ScanReconstruction{options}; },
                           "[ScanReconstructionOptions.resume] 2 ranks share");
}

TEST(ReconOnRanks, FindsRanksWithOtherScans) {
  const Team team = Team::world();
  if (team.size() == 1) return;
  const KspaceFile file(kspace_of(6, 1, team.rank() == 0 ? 32 : 34, 30, 3));
  ScanReconstruction reconstruction(options_for(file.path(), team));
  expect_error<ShapeError>([&] { reconstruction.run(); }, "ranks 0 and 1 differ");
}

TEST(ReconOnRanks, AFileThatOneRankCannotReadEndsTheOthers) {
  const Team team = Team::world();
  if (team.size() == 1) return;
  const KspaceFile file(kspace_of(6, 1, 32, 30, 3));
  if (team.rank() == team.size() - 1) {
    team.abandon("no such file");
    return;
  }
  ScanReconstruction reconstruction(options_for(file.path(), team));
  expect_error<CommunicationError>([&] { reconstruction.run(); }, "no such file");
}

}  // namespace
}  // namespace palimpsest::testing
