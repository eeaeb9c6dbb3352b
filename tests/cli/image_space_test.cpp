// SPDX-License-Identifier: Apache-2.0
// The space of the image: field of view and pixels of the header, or others, on a grid as along a
// trajectory; square pixels of pictures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/command_test.hpp"
#include "cli/raw_scan_maker.hpp"
#include "palimpsest/imaging/quality/metrics.hpp"
#include "palimpsest/io/cartesian.hpp"
#include "palimpsest/io/nifti.hpp"
#include "palimpsest/io/npy.hpp"
#include "palimpsest/io/png.hpp"

namespace palimpsest::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class ImageSpace : public CommandTest {
 protected:
  void write_scan(const MillimetreObject& object, const Grid2& encoded, const Grid2& image,
                  index_t slices = 1) const {
    RawScan scan = empty_scan(header_of(encoded, image));
    const Tensor k = kspace_of(object, encoded);
    for (index_t s = 0; s < slices; ++s) {
      Readout readout{.slice = s};
      readout.position = {1, 2, 3 + 10 * static_cast<float>(s)};
      append_lines(scan, k, 0, 1, readout);
    }
    write_ismrmrd(dir / "scan.h5", scan);
  }
  Json recon(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"recon", dir / "scan.h5", "--save", dir / "x.npy", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const bool has_terms = std::any_of(more.begin(), more.end(), [](const std::string& word) {
      return word == "--reg" || word == "--method";
    });
    if (!has_terms) arguments.insert(arguments.end(), {"--lambda", "0"});
    return report_of(arguments);
  }
  Tensor image() const { return read_npy(dir / "x.npy"); }
  double error(const MillimetreObject& object, const Grid2& grid) const {
    const Tensor truth = pixels_of(object, grid);
    const Tensor found = image();
    EXPECT_EQ(found.shape(), truth.shape());
    if (found.shape() != truth.shape()) return 1;
    return image_quality(truth, found, {.mask = Tensor::full(truth.shape(), true)}).nrmse;
  }
};

TEST_F(ImageSpace, ItHasTheFieldOfViewAndThePixelsOfTheHeader) {
  struct Row {
    Grid2 encoded, image;
    bool is_wide_x, is_wide_y;
    double error;
  };
  // The errors are those of the edges of ellipses at this number of pixels.
  const Row rows[] = {{{128, 64, 400, 200}, {32, 32, 200, 200}, true, false, 0.12},
                      {{128, 64, 400, 200}, {64, 64, 200, 200}, true, false, 0.12},
                      {{128, 64, 400, 200}, {128, 128, 200, 200}, true, false, 0.2},
                      {{128, 72, 400, 300}, {64, 64, 200, 200}, true, true, 0.16},
                      {{128, 48, 400, 200}, {64, 64, 200, 200}, true, false, 0.16},
                      // No whole number of pixels: 42.7 of 4.7 mm.
                      {{64, 64, 300, 300}, {50, 50, 200, 200}, false, true, 0.2},
                      {{60, 60, 240, 240}, {44, 58, 176, 232}, false, false, 0.14}};
  for (const Row& row : rows) {
    SCOPED_TRACE(::testing::Message() << row.encoded.nx << " x " << row.encoded.ny << " to "
                                      << row.image.nx << " x " << row.image.ny);
    const MillimetreObject object{
        .x = 6, .y = -4, .is_wide_x = row.is_wide_x, .is_wide_y = row.is_wide_y};
    write_scan(object, row.encoded, row.image);
    const Json report = recon();
    EXPECT_LT(error(object, row.image), row.error);
    const auto voxel = report.at("sizes").at("voxel_mm");
    EXPECT_NEAR(voxel[0].get<double>(), row.image.width / static_cast<double>(row.image.nx), 0.02);
    EXPECT_NEAR(voxel[1].get<double>(), row.image.height / static_cast<double>(row.image.ny), 0.02);
  }
}

TEST_F(ImageSpace, OptionsTakeThePlaceOfTheHeader) {
  const Grid2 encoded{128, 72, 400, 300};
  const MillimetreObject object{.x = 6, .y = -4, .is_wide_x = true, .is_wide_y = true};
  write_scan(object, encoded, {64, 64, 200, 200});
  recon({"--matrix", "encoded"});
  EXPECT_LT(error(object, {64, 48, 200, 200}), 0.16);
  recon({"--matrix", "96x80"});
  EXPECT_LT(error(object, {96, 80, 200, 200}), 0.2);
  recon({"--fov", "240x180", "--matrix", "80x60"});
  EXPECT_LT(error(object, {80, 60, 240, 180}), 0.16);
  recon({"--fov", "400x300", "--matrix", "encoded"});
  EXPECT_LT(error(object, encoded), 0.16);
  recon({"--fov", "500x300", "--matrix", "encoded"});
  EXPECT_EQ(image().shape(), (Extents{72, 160}));
  const CommandResult said =
      run_command({"recon", dir / "scan.h5", "--fov", "500x300", "--save", dir / "y.npy"});
  EXPECT_THAT(said.out, HasSubstr("larger than the encoded field of view: 0 outside"));
}

TEST_F(ImageSpace, ItIsSaid) {
  write_scan({}, {128, 48, 400, 200}, {64, 64, 200, 200});
  const CommandResult said = run_command({"recon", dir / "scan.h5", "--save", dir / "x.npy"});
  EXPECT_THAT(said.out, HasSubstr("image: 64 x 64 pixels of 3.125 x 3.125 x 5 mm\n"));
  EXPECT_THAT(said.out, HasSubstr("k-space is filled with zeros, without a filter"));
  write_scan({}, {128, 64, 400, 200}, {64, 64, 200, 200});
  const CommandResult plain = run_command({"recon", dir / "scan.h5", "--save", dir / "x.npy"});
  EXPECT_THAT(plain.out, Not(HasSubstr("filter")));
}

TEST_F(ImageSpace, WrongSizesAreRefusedByName) {
  write_scan({}, {128, 48, 400, 200}, {64, 64, 200, 200});
  const auto refusal = [&](const std::vector<std::string>& more, const std::string& input) {
    std::vector<std::string> arguments{"recon", dir / input, "--save", dir / "y.npy"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const CommandResult result = run_command(arguments);
    EXPECT_EQ(result.code, 2) << result.out;
    return result.err;
  };
  for (const std::string text : {"64", "0x64", "64x", "64x64x64x64", "-4x4", "axb", "64x64,2"}) {
    EXPECT_THAT(refusal({"--matrix", text}, "scan.h5"), HasSubstr("[--matrix] got '" + text));
    EXPECT_THAT(refusal({"--fov", text}, "scan.h5"), HasSubstr("[--fov] got '" + text));
  }
  EXPECT_THAT(refusal({"--fov", "nanx200"}, "scan.h5"), HasSubstr("[--fov] got"));
  EXPECT_THAT(refusal({"--matrix", "60000x64"}, "scan.h5"), HasSubstr("expected at most 2048"));
  EXPECT_THAT(refusal({"--start", dir / "x.npy"}, "scan.h5"), HasSubstr("x.npy"));
  write_npy(dir / "k.npy", kspace_of({}, {32, 32, 200, 200}));
  EXPECT_THAT(refusal({"--matrix", "64x64"}, "k.npy"), HasSubstr("has no field of view"));
  EXPECT_THAT(refusal({"--fov", "200x200"}, "k.npy"), HasSubstr("has no field of view"));
  EXPECT_THAT(refusal({"--matrix", "encoded"}, "k.npy"), HasSubstr("has no field of view"));
}

// Every kind of division, with budgets that put the arrays into files.
TEST_F(ImageSpace, VolumesToo) {
  constexpr index_t kCoils = 3, kNz = 16, kNy = 20, kNx = 32;
  RawScanHeader header;
  header.recon.matrix = {20, 26, 12};
  header.encoded.field_of_view_mm = {320, 200, 64};
  header.recon.field_of_view_mm = {160, 160, 60};
  const Tensor k = Tensor::random_normal({kCoils, kNz, kNy, kNx}, DType::complex64, {4, 1});
  const Tensor all = Tensor::ones({kNz, kNy}, DType::bool_);
  write_ismrmrd(dir / "scan.h5", cartesian_scan(k, all, header));
  recon({"--method", "adjoint"});
  EXPECT_EQ(image().shape(), (Extents{12, 26, 20}));
  // Maps of the columns of the image, and of all points.
  for (const index_t nx : {20, 32}) {
    write_npy(dir / "maps.npy",
              Tensor::random_normal({kCoils, kNz, kNy, nx}, DType::complex64, {4, 2}));
    const std::vector<std::string> reg = {"--reg", nx == 20 ? "tv(Nz,Ny):0.01" : "tv:0.01"};
    for (const char* memory : {"1G", "1200k"}) {
      std::vector<std::string> more = {
          "--maps", dir / "maps.npy", "--iterations", "4",    "--memory",
          memory,   "--scratch",      dir.path(),     reg[0], reg[1]};
      recon(more);
      EXPECT_EQ(image().shape(), (Extents{12, 26, 20}));
    }
  }
}

TEST_F(ImageSpace, PicturesHaveSquarePixels) {
  const MillimetreObject object{.is_wide_x = true};
  write_scan(object, {128, 48, 400, 200}, {64, 64, 200, 200}, 3);
  recon({"--slice", "0", "--matrix", "encoded", "-o", dir / "one.png"});
  EXPECT_EQ(image().shape(), (Extents{48, 64}));
  EXPECT_EQ(read_png(dir / "one.png").shape(), (Extents{64, 64}));
  recon({"--slice", "0", "--matrix", "encoded", "-o", dir / "deep.png", "--bits", "16"});
  EXPECT_EQ(read_png(dir / "deep.png").shape(), (Extents{64, 64}));
  recon({"--matrix", "encoded", "-o", dir / "all.png"});
  const Extents encoded = read_png(dir / "all.png").shape();
  recon({"-o", dir / "all.png"});
  EXPECT_EQ(read_png(dir / "all.png").shape(), encoded);
  // The picture alone: NIfTI keeps the pixels, and its picture is square again.
  recon({"--slice", "0", "--matrix", "encoded", "-o", dir / "one.nii"});
  const NiftiImage nifti = read_nifti(dir / "one.nii");
  EXPECT_EQ(nifti.data.shape(), (Extents{1, 48, 64}));
  EXPECT_NEAR(nifti.spacing_mm[1], 200.0 / 48, 1e-6);
  ASSERT_EQ(run_command({"convert", dir / "one.nii", dir / "again.png"}).code, 0);
  EXPECT_EQ(read_png(dir / "again.png").shape(), (Extents{64, 64}));
}

TEST_F(ImageSpace, TrajectoriesHaveTheSameRule) {
  const Grid2 wide{96, 96, 300, 300};
  RawScan scan = empty_scan(header_of(wide, {64, 64, 200, 200}));
  scan.header.trajectory = "other";
  const MillimetreObject object{.x = 6, .y = -4, .is_wide_y = true};
  const Tensor k = kspace_of(object, wide);
  for (index_t y = 0; y < 96; ++y) {
    Tensor line = Tensor::empty({96, 2}, DType::float32);
    for (index_t x = 0; x < 96; ++x) {
      line.set<float>({x, 0}, static_cast<float>(x - 48));
      line.set<float>({x, 1}, static_cast<float>(y - 48));
    }
    append(scan, {.step_1 = y}, k.select(1, y), line);
  }
  write_ismrmrd(dir / "scan.h5", scan);
  recon({"--fov", "300x300", "--matrix", "encoded", "--iterations", "20"});
  EXPECT_LT(error(object, wide), 0.2);
  recon({"--fov", "300x300", "--matrix", "72x64", "--iterations", "20"});
  EXPECT_EQ(image().shape(), (Extents{64, 72}));
}

}  // namespace
}  // namespace palimpsest::cli
