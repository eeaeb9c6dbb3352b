// SPDX-License-Identifier: Apache-2.0
// Random scans: the announced peak is kept, and the smallest budget that is named works.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <optional>
#include <string>

#include "cli/run_command.hpp"
#include "palimpsest/base/random.hpp"
#include "palimpsest/imaging/scan_reconstruction.hpp"
#include "palimpsest/io/cartesian.hpp"
#include "palimpsest/io/cfl.hpp"
#include "palimpsest/io/npy.hpp"
#include "support/difference.hpp"
#include "support/long_run.hpp"

namespace palimpsest::cli {
namespace {

using testing::difference;

using Sample = std::complex<float>;

// A scan in a file, and the options of its reconstruction.
class RandomScan {
 public:
  explicit RandomScan(std::uint64_t seed) : seed_(seed) {
    const bool is_volume = pick(2) == 0;
    coils_ = 1 + pick(8);
    grid_ = {coils_, is_volume ? 12 + pick(9) : 1, 12 + pick(is_volume ? 9 : 60),
             is_volume ? 1 + pick(12) : 12 + pick(60)};
    has_maps_ = pick(2) == 0;
    undersampled_along_x_ = is_volume && has_maps_ && grid_[3] > 2 && pick(4) == 0;
    options.kspace = pick(2) == 0 ? write_raw() : write_array("kspace", kspace());
    if (has_maps_) options.maps = write_array("maps", maps());
    options.scratch = dir.path();
    if (pick(4) > 0) {
      options.regularizers.push_back(parse_regularizer(pick(2) == 0 ? "l2:0.01" : "l2:0"));
    } else {
      options.method = ReconstructMethod::adjoint;
    }
    options.iterations = 2;
    options.keeps_maps = pick(3) == 0;
    if (pick(4) == 0) options.virtual_coils = 1 + pick(coils_);
  }

  // A description, to understand a failure.
  std::string text() const {
    return "seed " + std::to_string(seed_) + ", " + options.kspace + " " + to_string(grid_) +
           ", columns " + std::to_string(columns_) + ", maps '" + options.maps + "', " +
           (regularizers_.empty() ? name_of(options.method) : regularizers_) +
           (options.keeps_maps ? ", keeps maps" : "") +
           (options.virtual_coils ? ", virtual coils " + std::to_string(*options.virtual_coils)
                                  : "") +
           ", " + name_of(options.partial);
  }

  // Another problem on the same scan, planes or a whole volume.
  void set_regularizer() {
    constexpr const char* kTerms[] = {"l1wav:0.01,shift=none",
                                      "tv:0.01",
                                      "l1fft:0.01",
                                      "nonneg",
                                      "l1:0.01",
                                      "l1wav:0.01",
                                      "tgv:0.01",
                                      "tv:0.01 ball:0.5",
                                      "ball:2"};
    regularizers_ = kTerms[pick(std::size(kTerms))];
    // Single precision draws the same shifts, so that budgets give the same image.
    options.regularizers.clear();
    for (std::size_t at = 0; at != std::string::npos;) {
      const std::size_t end = regularizers_.find(' ', at);
      options.regularizers.push_back(parse_regularizer(regularizers_.substr(at, end - at)));
      at = end == std::string::npos ? end : end + 1;
    }
    const std::string& first = options.regularizers[0].term;
    const bool has_no_term = first != "tv" && first != "ball" && first != "tgv";
    const index_t method = pick(6);
    options.method = !has_no_term || method > 1 ? ReconstructMethod::automatic
                     : method == 0              ? ReconstructMethod::pogm
                                                : ReconstructMethod::pocs;
    options.iterations = 3;
  }

  bool is_thin() const { return grid_[1] > 1 && (columns_ > 0 ? columns_ : grid_[3]) < 12; }

  ScratchDirectory dir;
  ScanReconstructionOptions options;

 private:
  index_t pick(index_t n) {
    return static_cast<index_t>(random_bits({seed_, 1}, drawn_++) % static_cast<std::uint64_t>(n));
  }
  Tensor random(const Extents& shape, std::uint64_t stream) const {
    return Tensor::random_normal(shape, DType::complex64, {seed_, stream});
  }
  // Omits every third row except in a dense centre.
  bool is_measured(index_t z, index_t y) const {
    const auto far = [](index_t i, index_t n) { return i < n / 2 - 6 || i > n / 2 + 6; };
    const bool is_centre =
        grid_[1] == 1 ? !far(y, grid_[2]) : !far(y, grid_[2]) && !far(z, grid_[1]);
    return is_centre || (z + y) % 3 > 0;
  }
  // k-space of coils whose maps have few frequencies, so that the maps can be estimated: the image
  // and the image shifted by a row, added.
  Tensor kspace() const {
    Tensor k = Tensor::empty(grid_, DType::complex64);
    const auto image = random({grid_[1], grid_[2] + 1, grid_[3]}, 2).to_vector<Sample>();
    const auto factors = random({coils_}, 5).to_vector<Sample>();
    auto* values = k.mutable_data<Sample>();
    const index_t nx = grid_[3], ny = grid_[2], nz = grid_[1];
    for (index_t i = 0; i < k.numel(); ++i) {
      const auto at = static_cast<std::size_t>(i / nx / ny % nz * (ny + 1) * nx + i % (ny * nx));
      values[i] = image[at] + factors[static_cast<std::size_t>(i / (nx * ny * nz))] *
                                  image[at + static_cast<std::size_t>(nx)];
      const index_t x = i % nx, y = i / nx % ny, z = i / nx / ny % nz;
      const bool is_out = undersampled_along_x_ && x == nx - 1 && y % 2 == 1;
      if (!is_measured(z, y) || is_out) values[i] = 0;
    }
    return k;
  }
  Tensor maps() const {
    return random({grid_[0], grid_[1], grid_[2], columns_ > 0 ? columns_ : grid_[3]}, 3);
  }
  std::string write_array(const std::string& name, Tensor array) {
    // BART drops the axis of a single coil.
    switch (coils_ == 1 && name == "kspace" ? 1 + pick(3) : pick(4)) {
      case 0:
        write_cfl(dir / name, array);
        return dir / (name + ".cfl");
      case 1:
        write_npy(dir / (name + ".npy"), array.to(DType::complex128));
        break;
      case 2: {
        // The same elements in Fortran order.
        const Tensor turned = array.permute({3, 2, 1, 0}).contiguous();
        write_npy(dir / (name + ".npy"), turned.permute({3, 2, 1, 0}));
        break;
      }
      default:
        write_npy(dir / (name + ".npy"), grid_[1] == 1 ? array.select(1, 0) : array);
    }
    return dir / (name + ".npy");
  }
  std::string write_raw() {
    RawScanHeader header;
    const bool is_oversampled = grid_[3] > 1 && pick(2) == 0;
    header.recon.matrix = {grid_[3], grid_[2] - pick(3), grid_[1]};
    header.encoded.field_of_view_mm = header.recon.field_of_view_mm = {240, 240, 240};
    undersampled_along_x_ = false;
    if (is_oversampled) {
      columns_ = grid_[3];
      grid_[3] *= 2;
      header.encoded.field_of_view_mm[0] = 480;
    }
    Tensor mask = Tensor::zeros({grid_[1], grid_[2]}, DType::bool_);
    for (index_t i = 0; i < mask.numel(); ++i) {
      mask.set<bool>({i / grid_[2], i % grid_[2]}, is_measured(i / grid_[2], i % grid_[2]));
    }
    RawScan scan = cartesian_scan(kspace(), mask, header);
    if (pick(4) == 0) {
      add_noise_readout(scan, random({coils_, 512}, 4));
      options.scan.prewhiten = true;
    }
    write_ismrmrd(dir / "scan.h5", scan);
    return dir / "scan.h5";
  }

  std::uint64_t seed_, drawn_ = 0;
  index_t coils_ = 1, columns_ = 0;
  Extents grid_;
  bool has_maps_ = false, undersampled_along_x_ = false;
  std::string regularizers_;
};

struct Outcome {
  index_t announced = 0, measured = 0;
  Tensor image;
};

Outcome run(ScanReconstructionOptions options, std::optional<index_t> budget) {
  options.budget = budget;
  ScanReconstruction reconstruction(options);
  Outcome outcome;
  outcome.announced = reconstruction.plan().peak_bytes;
  outcome.image = reconstruction.run().image;
  outcome.measured = reconstruction.measured_bytes();
  return outcome;
}

// The smallest budget, as the refusal of a smaller one names it; none if that is not refused.
std::optional<index_t> smallest_named(ScanReconstructionOptions options, index_t budget) {
  options.budget = budget;
  try {
    const ScanReconstruction reconstruction(options);
  } catch (const BudgetError& error) {
    const std::string text = error.what(), before = "Try ScanReconstructionOptions.budget ";
    return std::stoll(text.substr(text.find(before) + before.size()));
  }
  return std::nullopt;
}

void expect_kept(const Outcome& outcome) {
  EXPECT_LE(outcome.measured, outcome.announced);
  EXPECT_LE(static_cast<double>(outcome.announced), 1.05 * static_cast<double>(outcome.measured));
}

TEST(RandomScans, TheSmallestBudgetThatIsNamedWorksAndOnePerCentLessDoesNot) {
  const index_t scans = testing::longer_unless_sanitized(40);
  for (index_t i = 0; i < scans; ++i) {
    const RandomScan scan(static_cast<std::uint64_t>(i) + 1);
    SCOPED_TRACE(scan.text());
    const Outcome whole = run(scan.options, {});
    expect_kept(whole);
    const auto smallest = smallest_named(scan.options, 1);
    ASSERT_TRUE(smallest.has_value());
    EXPECT_LE(*smallest, whole.announced);
    const Outcome least = run(scan.options, *smallest);
    EXPECT_LE(least.announced, *smallest);
    expect_kept(least);
    EXPECT_LE(difference(least.image, whole.image), 1e-3);
    EXPECT_EQ(smallest_named(scan.options, *smallest * 99 / 100), smallest);
  }
}

TEST(RandomScans, AnnouncedIsMeasuredWithEveryRegularizer) {
  const index_t scans = testing::longer_unless_sanitized(30);
  for (index_t i = 0; i < scans; ++i) {
    RandomScan scan(static_cast<std::uint64_t>(i) + 1000);
    scan.set_regularizer();
    SCOPED_TRACE(scan.text());
    // The middle of a thin volume is too small for maps in three dimensions.
    if (scan.options.maps.empty() && scan.is_thin()) continue;
    const Outcome whole = run(scan.options, {});
    expect_kept(whole);
    const auto smallest = smallest_named(scan.options, 1);
    ASSERT_TRUE(smallest.has_value());
    const Outcome least = run(scan.options, *smallest);
    EXPECT_LE(least.announced, *smallest);
    expect_kept(least);
    EXPECT_LE(difference(least.image, whole.image), 1e-3);
  }
}

}  // namespace
}  // namespace palimpsest::cli
