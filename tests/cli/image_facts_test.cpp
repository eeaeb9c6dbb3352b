// SPDX-License-Identifier: Apache-2.0
// Facts of each image: place, times, counters, table position, calibration lines, navigators.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/raw_scan_maker.hpp"
#include "cli/run_command.hpp"
#include "palimpsest/imaging/quality/metrics.hpp"
#include "palimpsest/imaging/scan.hpp"
#include "palimpsest/imaging/trajectories.hpp"
#include "palimpsest/io/cartesian.hpp"
#include "palimpsest/io/ismrmrd_images.hpp"
#include "palimpsest/io/nifti.hpp"
#include "palimpsest/io/npy.hpp"
#include "palimpsest/io/png.hpp"

namespace palimpsest::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

constexpr Grid2 kGrid{48, 40, 240, 200};
using Vector = std::array<float, 3>;

class ImageFactsTest : public ::testing::Test {
 protected:
  static RawScan scan_of(const std::string& trajectory = "cartesian") {
    RawScan scan = empty_scan(header_of(kGrid, kGrid));
    scan.header.trajectory = trajectory;
    return scan;
  }
  static const Tensor& kspace() {
    static const Tensor k = kspace_of({.x = 6, .y = -4}, kGrid);
    return k;
  }
  static Readout turned(Readout readout, const Vector& read, const Vector& phase,
                        const Vector& normal) {
    readout.read_direction = read;
    readout.phase_direction = phase;
    readout.slice_direction = normal;
    return readout;
  }
  static Readout at(Readout readout, const Vector& position) {
    readout.position = position;
    return readout;
  }
  // Axial, coronal and sagittal, all through one place.
  static RawScan localizer() {
    RawScan scan = scan_of();
    append_lines(scan, kspace(), 0, 1, turned({.slice = 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}));
    append_lines(scan, kspace(), 0, 1, turned({.slice = 1}, {1, 0, 0}, {0, 0, -1}, {0, 1, 0}));
    append_lines(scan, kspace(), 0, 1, turned({.slice = 2}, {0, 1, 0}, {0, 0, -1}, {1, 0, 0}));
    return scan;
  }
  CommandResult recon(const RawScan& scan, const std::vector<std::string>& more) {
    write_ismrmrd(dir / "scan.h5", scan);
    std::vector<std::string> arguments{"recon", dir / "scan.h5"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const bool is_solved = std::find(more.begin(), more.end(), "--method") == more.end();
    if (is_solved) arguments.insert(arguments.end(), {"--lambda", "0"});
    return run_command(arguments);
  }
  CommandResult done(const RawScan& scan, const std::vector<std::string>& more) {
    const CommandResult result = recon(scan, more);
    EXPECT_EQ(result.code, 0) << result.err;
    return result;
  }
  double error(const std::string& name, std::optional<index_t> slice = {}) const {
    const Tensor image = read_npy(dir / name);
    const Tensor truth = pixels_of({.x = 6, .y = -4}, kGrid);
    return image_quality(truth, slice ? image.select(0, *slice).contiguous() : image,
                         {.mask = Tensor::full(truth.shape(), true)})
        .nrmse;
  }

  ScratchDirectory dir;
};

TEST_F(ImageFactsTest, EachImageHasItsOwnPlace) {
  done(localizer(), {"-o", dir / "a.mrd"});
  const IsmrmrdImages images = read_ismrmrd_images(dir / "a.mrd");
  ASSERT_EQ(images.heads.size(), 3U);
  EXPECT_EQ(images.heads[0].phase_direction, (Vector{0, 1, 0}));
  EXPECT_EQ(images.heads[1].phase_direction, (Vector{0, 0, -1}));
  EXPECT_EQ(images.heads[1].slice_direction, (Vector{0, 1, 0}));
  EXPECT_EQ(images.heads[2].read_direction, (Vector{0, 1, 0}));
  for (const IsmrmrdImageHead& head : images.heads) {
    EXPECT_EQ(head.position_mm, (Vector{0, 0, 0}));
    EXPECT_EQ(head.field_of_view_mm, (Vector{240, 200, 5}));
  }
}

TEST_F(ImageFactsTest, SlicesThatAreNoVolumeBecomeOneNiftiEach) {
  const CommandResult said = done(localizer(), {"-o", dir / "a.nii.gz", "--save", dir / "b.nii"});
  EXPECT_THAT(said.out, HasSubstr("not parallel and equally spaced: a file for each in place of"));
  EXPECT_THAT(dir.names(), ElementsAre("a_slice0.nii.gz", "a_slice1.nii.gz", "a_slice2.nii.gz",
                                       "b_slice0.nii", "b_slice1.nii", "b_slice2.nii", "scan.h5"));
  const NiftiImage coronal = read_nifti(dir / "b_slice1.nii");
  EXPECT_EQ(coronal.data.shape(), (Extents{1, 40, 48}));
  // Columns: along x to the right is minus left; along y from superior down.
  const AffineMatrix& a = *coronal.affine_ras;
  EXPECT_NEAR(a[0][0], -5, 1e-5);
  EXPECT_NEAR(a[2][1], -5, 1e-5);
  EXPECT_NEAR(a[1][2], -5, 1e-5);
  EXPECT_NEAR(a[0][3], 120, 1e-5);
  EXPECT_NEAR(a[2][3], 100, 1e-5);
  // Through ISMRMRD images too.
  done(localizer(), {"-o", dir / "c.mrd"});
  const CommandResult converted = run_command({"convert", dir / "c.mrd", dir / "d.nii"});
  ASSERT_EQ(converted.code, 0) << converted.err;
  EXPECT_THAT(converted.out, HasSubstr("d_slice2.nii"));
  EXPECT_EQ(read_nifti(dir / "d_slice1.nii").affine_ras, coronal.affine_ras);
  ASSERT_EQ(run_command({"convert", dir / "c.mrd", dir / "e.nii", "--slice", "S=1"}).code, 0);
  EXPECT_EQ(read_nifti(dir / "e.nii").affine_ras, coronal.affine_ras);
  // Files that cannot be written are refused before the solve.
  const CommandResult refused =
      recon(localizer(), {"-o", dir / "scan.nii", "--save", dir / "scan_slice1.nii"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("two outputs are the same file"));
  EXPECT_THAT(dir.names(), Not(::testing::Contains("scan_slice0.nii")));
}

TEST_F(ImageFactsTest, PicturesTurnEachSliceInItsOwnWay) {
  done(localizer(), {"-o", dir / "a.png", "--columns", "1"});
  EXPECT_GT(read_png(dir / "a.png").shape(0), 3 * 40);
}

TEST_F(ImageFactsTest, UnequalDistancesStay) {
  RawScan scan = scan_of();
  const float places[] = {0, 10, 15};
  for (index_t s = 0; s < 3; ++s) {
    append_lines(scan, kspace(), 0, 1, at({.slice = s}, {1, 2, places[s]}));
  }
  done(scan, {"-o", dir / "a.mrd", "--save", dir / "a.nii"});
  const IsmrmrdImages images = read_ismrmrd_images(dir / "a.mrd");
  for (std::size_t s = 0; s < 3; ++s) {
    EXPECT_EQ(images.heads[s].position_mm, (Vector{1, 2, places[s]}));
    const NiftiImage nifti = read_nifti(dir / ("a_slice" + std::to_string(s) + ".nii"));
    EXPECT_NEAR((*nifti.affine_ras)[2][3], double{places[s]}, 1e-6);
    EXPECT_EQ(nifti.spacing_mm[0], 5);
  }
}

TEST_F(ImageFactsTest, CountersTimesAndTheTableStay) {
  RawScan scan = scan_of();
  for (index_t s : {0, 2, 4}) {
    for (index_t r = 0; r < 2; ++r) {
      Readout readout =
          at({.slice = s, .contrast = 3, .repetition = 5 + r}, {0, 0, 3 * static_cast<float>(s)});
      readout.table_position = {0, 0, -static_cast<float>(100 + s)};
      readout.physiology_time_stamp = {static_cast<std::uint32_t>(7 * s), 8, 9};
      for (index_t y = 0; y < kGrid.ny; ++y) {
        readout.step_1 = y;
        // Each line has its time: that of line 20 counts.
        readout.time_stamp = 10000 * s + 1000 * r + y;
        append(scan, readout, kspace().select(1, y));
      }
    }
  }
  const CommandResult said =
      done(scan, {"--as", "T=repetition", "-o", dir / "a.mrd", "--save", dir / "a.nii"});
  EXPECT_THAT(said.out, AllOf(HasSubstr("has no place for table positions, time stamps of "
                                        "physiology, slice numbers, time stamps of slices"),
                              HasSubstr(".mrd keeps them")));
  const IsmrmrdImages images = read_ismrmrd_images(dir / "a.mrd");
  ASSERT_EQ(images.heads.size(), 6U);
  for (std::size_t k = 0; k < 6; ++k) {
    const IsmrmrdImageHead& head = images.heads[k];
    const index_t s = 2 * static_cast<index_t>(k % 3), r = static_cast<index_t>(k / 3);
    EXPECT_EQ(head.slice, s);
    EXPECT_EQ(head.repetition, 5 + r);
    EXPECT_EQ(head.contrast, 3);
    EXPECT_EQ(head.acquisition_time_stamp, 10000 * s + 1000 * r + 20);
    EXPECT_EQ(head.physiology_time_stamp[0], 7 * s);
    EXPECT_EQ(head.patient_table_position_mm, (Vector{0, 0, -static_cast<float>(100 + s)}));
    EXPECT_EQ(head.position_mm[2], 3 * static_cast<float>(s));
  }
  EXPECT_NEAR(read_nifti(dir / "a.nii").time_step_s, 2.5, 1e-6);
  // And back, and there again.
  ASSERT_EQ(run_command({"convert", dir / "a.mrd", dir / "b.mrd"}).code, 0);
  const IsmrmrdImages again = read_ismrmrd_images(dir / "b.mrd");
  for (std::size_t k = 0; k < 6; ++k) {
    EXPECT_EQ(again.heads[k].slice, images.heads[k].slice);
    EXPECT_EQ(again.heads[k].acquisition_time_stamp, images.heads[k].acquisition_time_stamp);
    EXPECT_EQ(again.heads[k].position_mm, images.heads[k].position_mm);
  }
}

TEST_F(ImageFactsTest, FramesOfContrastsKeepTheirCounter) {
  RawScan scan = scan_of();
  for (index_t c : {1, 4}) append_lines(scan, kspace(), 0, 1, {.contrast = c, .repetition = 2});
  done(scan, {"--as", "T=contrast", "-o", dir / "a.mrd"});
  const IsmrmrdImages images = read_ismrmrd_images(dir / "a.mrd");
  EXPECT_EQ(images.heads[0].contrast, 1);
  EXPECT_EQ(images.heads[1].contrast, 4);
  EXPECT_EQ(images.heads[1].repetition, 2);
  EXPECT_THAT(run_command({"info", dir / "a.mrd"}).out, HasSubstr("(T, Ny, Nx)"));
}

TEST_F(ImageFactsTest, FramesAlongATrajectoryKeepTheirTimes) {
  RawScan scan = scan_of("radial");
  const Tensor trajectory = radial_trajectory({.spokes = 63, .samples = 96, .golden = 1});
  for (index_t i = 0; i < 63; ++i) {
    const Tensor samples = Tensor::random_normal({MillimetreObject::kCoils, 96}, DType::complex64,
                                                 {3, std::uint64_t(i)});
    append(scan, {.step_1 = i, .time_stamp = 100 * i}, samples, trajectory.select(0, i));
  }
  done(scan, {"--frames", "21", "--method", "adjoint", "-o", dir / "a.mrd"});
  const IsmrmrdImages images = read_ismrmrd_images(dir / "a.mrd");
  ASSERT_EQ(images.heads.size(), 3U);
  const auto first = images.heads[0].acquisition_time_stamp;
  EXPECT_EQ(images.heads[1].acquisition_time_stamp, first + 2100);
  EXPECT_EQ(images.heads[2].acquisition_time_stamp, first + 4200);
  done(scan, {"--frames", "21", "--method", "adjoint", "-o", dir / "a.nii"});
  EXPECT_NEAR(read_nifti(dir / "a.nii").time_step_s, 2100 * 2.5e-3, 1e-5);
}

TEST_F(ImageFactsTest, ReadoutsThatContradictEachOtherAreSaid) {
  RawScan scan = scan_of();
  for (index_t s = 0; s < 2; ++s) {
    for (index_t y = 0; y < kGrid.ny; ++y) {
      const float moved = s == 1 && y > 30 ? 4.0F : 0.0F;
      append(scan, at({.step_1 = y, .slice = s}, {moved, 0, 10 * static_cast<float>(s)}),
             kspace().select(1, y));
    }
  }
  const CommandResult said = done(scan, {"-o", dir / "a.mrd"});
  EXPECT_THAT(said.out, HasSubstr("readouts of one image lie at different places in slice 1"));
  EXPECT_EQ(read_ismrmrd_images(dir / "a.mrd").heads[1].position_mm, (Vector{0, 0, 10}));
  for (Readout& readout : scan.readouts) readout.position = {0, 0, 0};
  EXPECT_THAT(done(scan, {"-o", dir / "b.nii"}).out, HasSubstr("all slices are at one position"));
}

// -- calibration, lines, navigators --------------------------------------------------------------

class Calibration : public ImageFactsTest {
 protected:
  // Slice 0 with a dense centre, slice 1 every second line only.
  static RawScan without_lines_in(index_t bare, index_t slices = 2) {
    RawScan scan = scan_of();
    for (index_t s = 0; s < slices; ++s) {
      for (index_t y = 0; y < kGrid.ny; ++y) {
        const bool is_centre = s != bare && y >= 10 && y < 30;
        if (y % 2 == 1 && !is_centre) continue;
        append(scan, at({.step_1 = y, .slice = s}, {0, 0, 10 * static_cast<float>(s)}),
               kspace().select(1, y));
      }
    }
    return scan;
  }
};

TEST_F(Calibration, ASliceWithoutLinesIsNamed) {
  for (const index_t bare : {0, 1}) {
    const CommandResult refused = recon(without_lines_in(bare), {"--save", dir / "x.npy"});
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.err, AllOf(HasSubstr("of slice " + std::to_string(bare) + " is too small"),
                                   HasSubstr("--share-maps to take those of slice " +
                                             std::to_string(1 - bare))));
  }
}

TEST_F(Calibration, ItMayTakeTheMapsOfTheNearestSlice) {
  for (const index_t bare : {0, 2}) {
    for (const char* memory : {"1G", "2500k"}) {
      const CommandResult result =
          done(without_lines_in(bare, 3), {"--share-maps", "--save", dir / "x.npy", "--json",
                                           "--memory", memory, "--scratch", dir.path()});
      if (result.code != 0) continue;
      const Json report = Json::parse(result.out);
      EXPECT_GE(report.at("announced_peak_bytes"), report.at("measured_peak_bytes"));
      EXPECT_LE(report.at("announced_peak_bytes").get<double>(),
                1.05 * report.at("measured_peak_bytes").get<double>());
      EXPECT_EQ(report.at("notes").size(), 2U) << report.at("notes");
      for (index_t s = 0; s < 3; ++s) EXPECT_LT(error("x.npy", s), 0.12) << bare << s;
    }
  }
  EXPECT_THAT(done(without_lines_in(1, 3), {"--share-maps", "--save", dir / "x.npy"}).out,
              HasSubstr("slice 1 takes the coil maps of slice 0"));
}

TEST_F(Calibration, MapsAreNotSharedBetweenPlanesThatAreNotParallel) {
  RawScan scan = without_lines_in(1);
  for (Readout& readout : scan.readouts) {
    if (readout.slice == 1) readout = turned(readout, {0, 1, 0}, {0, 0, -1}, {1, 0, 0});
  }
  const CommandResult refused = recon(scan, {"--share-maps", "--save", dir / "x.npy"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("of slice 1"), Not(HasSubstr("--share-maps"))));
}

TEST_F(Calibration, AnAbortedSliceIsNamed) {
  RawScan scan = scan_of();
  append_lines(scan, kspace(), 0, 1, at({.slice = 0}, {0, 0, 0}));
  append_lines(scan, kspace(), 0, 1, at({.slice = 1}, {0, 0, 10}), 22);
  const CommandResult refused = recon(scan, {"--save", dir / "x.npy"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("of slice 1 is too small: got 5 x 24"));
  const CommandResult shared = done(scan, {"--share-maps", "--save", dir / "x.npy"});
  EXPECT_THAT(shared.out, HasSubstr("images differ in what was measured"));
  // 62 of 80 lines.
  EXPECT_THAT(shared.out, HasSubstr("1.29-fold undersampled"));
}

TEST_F(Calibration, SeparateLinesOfSomeSlices) {
  RawScan scan = scan_of();
  scan.header.calibration_mode = "separate";
  Readout calibration;
  calibration.set_flag(ReadoutFlag::calibration);
  append_lines(scan, kspace(), 10, 1, calibration, 30);
  for (index_t s = 0; s < 2; ++s) {
    // The second one is measured completely.
    append_lines(scan, kspace(), 0, 2 - s, at({.slice = s}, {0, 0, 10 * static_cast<float>(s)}));
  }
  done(scan, {"--save", dir / "x.npy"});
  EXPECT_LT(error("x.npy", 0), 0.12);
  EXPECT_LT(error("x.npy", 1), 0.12);
}

TEST_F(Calibration, PartialFourierLooksAtEachSlice) {
  RawScan scan = scan_of();
  append_lines(scan, kspace(), 0, 1, at({.slice = 0}, {0, 0, 0}));
  append_lines(scan, kspace(), 0, 1, at({.slice = 1}, {0, 0, 10}), 30);
  append_lines(scan, kspace(), 10, 1, at({.slice = 2}, {0, 0, 20}));
  done(scan, {"--save", dir / "zeros.npy"});
  done(scan, {"--save", dir / "pocs.npy", "--partial", "pocs"});
  EXPECT_LT(std::abs(error("zeros.npy", 0) - error("pocs.npy", 0)), 1e-6);
  EXPECT_LT(error("pocs.npy", 1), 0.9 * error("zeros.npy", 1));
  EXPECT_GT(std::abs(error("zeros.npy", 2) - error("pocs.npy", 2)), 1e-4);
}

TEST_F(Calibration, SlicesWithoutNavigatorsAreNamed) {
  RawScan scan = scan_of("epi");
  for (index_t s = 0; s < 3; ++s) {
    for (int i = 0; i < 3 && s != 1; ++i) {
      Readout navigator{.slice = s};
      navigator.set_flag(ReadoutFlag::phase_correction);
      if (i == 1) navigator.set_flag(ReadoutFlag::reverse);
      append(scan, navigator, kspace().select(1, kGrid.ny / 2));
    }
    append_lines(scan, kspace(), 0, 1, at({.slice = s}, {0, 0, 10 * static_cast<float>(s)}));
  }
  EXPECT_THAT(done(scan, {"--save", dir / "x.npy"}).out,
              HasSubstr("no phase correction of slice 1: no navigator lines"));
}

// Slices whose readouts differ along a trajectory.
TEST_F(ImageFactsTest, TrajectoriesOfSlicesMayNotDiffer) {
  const auto scan_with = [](double turn, index_t samples, index_t odd) {
    RawScan scan = scan_of("radial");
    const Tensor trajectory = radial_trajectory({.spokes = 30, .samples = 96});
    for (index_t s = 0; s < 2; ++s) {
      for (index_t i = 0; i < 30; ++i) {
        Tensor k = trajectory.select(0, i).clone();
        auto* v = k.mutable_data<float>();
        const double angle = s == 1 ? turn : 0;
        for (index_t j = 0; j < 96; ++j) {
          const double x = v[2 * j], y = v[2 * j + 1];
          v[2 * j] = static_cast<float>(x * std::cos(angle) - y * std::sin(angle));
          v[2 * j + 1] = static_cast<float>(x * std::sin(angle) + y * std::cos(angle));
        }
        const index_t n = s == 1 && i == odd ? samples : 96;
        append(scan, {.step_1 = i, .slice = s},
               Tensor::ones({MillimetreObject::kCoils, n}, DType::complex64), k.narrow(0, 0, n));
      }
    }
    return scan;
  };
  EXPECT_EQ(recon(scan_with(0, 96, 0), {"--save", dir / "x.npy"}).code, 0);
  EXPECT_THAT(recon(scan_with(0.1, 96, 0), {"--save", dir / "x.npy"}).err,
              HasSubstr("slice 1 has another trajectory than slice 0"));
  EXPECT_THAT(recon(scan_with(0, 90, 7), {"--save", dir / "x.npy"}).err,
              HasSubstr("expected 5, 96 and 2 as the first one"));
}

// -- units ---------------------------------------------------------------------------------------

TEST_F(ImageFactsTest, UnitsOfTrajectoriesAreLookedAtFromBothSides) {
  const auto said = [&](double factor) {
    RawScan scan = scan_of("radial");
    const Tensor trajectory = radial_trajectory({.spokes = 30, .samples = 96});
    for (index_t i = 0; i < 30; ++i) {
      Tensor k = trajectory.select(0, i).clone();
      auto* v = k.mutable_data<float>();
      for (index_t j = 0; j < k.numel(); ++j) v[j] *= static_cast<float>(factor);
      append(scan, {.step_1 = i},
             Tensor::random_normal({MillimetreObject::kCoils, 96}, DType::complex64,
                                   {7, std::uint64_t(i)}),
             k);
    }
    const CommandResult result = recon(scan, {"--save", dir / "x.npy", "--method", "adjoint"});
    return result.out + result.err;
  };
  // Cycles per field of view, and parts of k-space.
  EXPECT_THAT(said(1), Not(HasSubstr("units?")));
  EXPECT_THAT(said(1.0 / 48), Not(HasSubstr("units?")));
  // Radians per pixel, cycles per mm, per m, radians per mm and per m.
  EXPECT_THAT(said(2 * std::numbers::pi / 48), AllOf(HasSubstr("units? The trajectory reaches 0.1"),
                                                     HasSubstr("radians per pixel")));
  EXPECT_THAT(said(1.0 / 240),
              HasSubstr("units? The coordinates look like cycles or radians per mm"));
  EXPECT_THAT(said(1000.0 / 240), HasSubstr("units?"));
  EXPECT_THAT(said(2 * std::numbers::pi / 240), HasSubstr("units?"));
  EXPECT_THAT(said(2000 * std::numbers::pi / 240), HasSubstr("units?"));
  EXPECT_THAT(said(0), HasSubstr("all coordinates of its readouts are 0"));
}

TEST_F(ImageFactsTest, UnitsOfTrajectoriesInFilesToo) {
  const Tensor trajectory = radial_trajectory({.spokes = 60, .samples = 96});
  write_npy(dir / "k.npy", Tensor::random_normal({4, 60, 96}, DType::complex64, {9, 1}));
  const auto said = [&](double factor) {
    Tensor k = trajectory.clone();
    auto* v = k.mutable_data<float>();
    for (index_t j = 0; j < k.numel(); ++j) v[j] *= static_cast<float>(factor);
    write_npy(dir / "t.npy", k);
    const CommandResult result =
        run_command({"recon", dir / "k.npy", "--trajectory", dir / "t.npy", "--method", "adjoint",
                     "--matrix", "48x48", "--save", dir / "x.npy"});
    return result.out + result.err;
  };
  EXPECT_THAT(said(1), Not(HasSubstr("units?")));
  EXPECT_THAT(said(2 * std::numbers::pi / 48), HasSubstr("units?"));
  EXPECT_THAT(said(0), HasSubstr("zeros only"));
}

}  // namespace
}  // namespace palimpsest::cli
