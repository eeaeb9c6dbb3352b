// SPDX-License-Identifier: Apache-2.0
// The commands that read, convert, compare and show images.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli/command_test.hpp"
#include "palimpsest/imaging/results/image_formats.hpp"
#include "palimpsest/io/cfl.hpp"
#include "palimpsest/io/format.hpp"
#include "palimpsest/io/ismrmrd.hpp"
#include "palimpsest/io/npy.hpp"
#include "palimpsest/io/png.hpp"

namespace palimpsest::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Json = nlohmann::json;

using ImageFiles = CommandTest;

TEST_F(ImageFiles, ConvertsBetweenAllFormatsAndBack) {
  NiftiImage start;
  start.data = Tensor::random_normal({3, 4, 5, 6}, DType::complex64, {1, 1});
  start.spacing_mm = {3.3F, 0.9F, 1.1F};
  start.time_step_s = 0.042F;
  start.affine_ras = {{{0.8F, -0.1F, 0.3F, 12.25F}, {0.2F, 0.7F, 0.1F, -3}, {0.1F, 0.2F, 3, 1}}};
  write_nifti(dir / "a.nii.gz", start);
  run({"convert", dir / "a.nii.gz", dir / "a.mrd"});
  run({"convert", dir / "a.mrd", dir / "b.nii"});
  const NiftiImage back = read_nifti(dir / "b.nii");
  EXPECT_TRUE(equal(back.data, start.data));
  EXPECT_EQ(back.affine_ras, start.affine_ras);
  EXPECT_EQ(back.spacing_mm, start.spacing_mm);
  EXPECT_EQ(back.time_step_s, start.time_step_s);
  run({"convert", dir / "a.mrd", dir / "c.cfl"});
  run({"convert", dir / "c.hdr", dir / "d.npy"});
  EXPECT_TRUE(equal(read_npy(dir / "d.npy"), start.data));
  EXPECT_TRUE(equal(from_bart(read_cfl(dir / "c")).data.contiguous(), start.data));
  run({"convert", dir / "d.npy", dir / "e.h5"});
  run({"convert", dir / "e.h5", dir / "f.nii.gz"});
  EXPECT_TRUE(equal(read_nifti(dir / "f.nii.gz").data, start.data));
  run({"convert", dir / "a.mrd", dir / "g.png"});
  EXPECT_EQ(read_png(dir / "g.png").rank(), 2U);
}

TEST_F(ImageFiles, ConvertSaysWhichElementsItWrites) {
  write_npy(dir / "a.npy", Tensor::random_normal({6, 8}, DType::complex64, {1, 1}));
  write_npy(dir / "real.npy", Tensor::random_normal({6, 8}, DType::float64, {1, 1}));
  for (const auto& [words, text] :
       {std::pair(std::vector<std::string>{dir / "a.npy", dir / "b.nii", "--part", "phase"},
                  "(Ny, Nx) (6, 8), float32\n"),
        {{dir / "a.npy", dir / "b.npy"}, "(6, 8), complex64\n"},
        {{dir / "real.npy", dir / "b.npy"}, "(6, 8), float64\n"},
        {{dir / "real.npy", dir / "b.cfl"}, "(6, 8), complex64\n"},
        {{dir / "a.npy", dir / "b.png", "--bits", "16"}, "(6, 8), gray values of 16 bits\n"}}) {
    std::vector<std::string> all = words;
    all.insert(all.begin(), "convert");
    const CommandResult result = run_command(all);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr(text));
  }
}

TEST_F(ImageFiles, EndingsMayBeCapitals) {
  const Tensor data = Tensor::random_normal({2, 12, 16}, DType::float32, {1, 3});
  write_npy(dir / "a.npy", data);
  for (const char* name : {"X.NII", "X.Nii.GZ", "X.H5", "X.MRD", "X.NPY"}) {
    run({"convert", dir / "a.npy", dir / name});
    run({"convert", dir / name, dir / "b.npy"});
    EXPECT_TRUE(equal(read_npy(dir / "b.npy"), data)) << name;
  }
  EXPECT_EQ(detect_format(dir / "X.NII"), FileFormat::nifti);
  EXPECT_EQ(read_file(dir / "X.Nii.GZ").substr(0, 2), "\x1f\x8b");
  EXPECT_EQ(detect_format(dir / "X.H5"), FileFormat::ismrmrd);
  run({"convert", dir / "a.npy", dir / "X.PNG"});
  EXPECT_EQ(detect_format(dir / "X.PNG"), FileFormat::png);
  run({"pattern", dir / "P.NPY", "--size", "64,64"});
  EXPECT_EQ(read_npy(dir / "P.NPY").dtype(), DType::bool_);
  refuse({"convert", dir / "a.npy", dir / "X.CFL"}, "got the ending '.CFL'");
}

TEST_F(ImageFiles, ConvertCutsNamesAndTakesParts) {
  write_npy(dir / "k.npy", Tensor::random_normal({2, 3, 4, 5}, DType::complex64, {1, 2}));
  run({"convert", dir / "k.npy", dir / "k.cfl", "--axes", "S,C,Ny,Nx"});
  const Image image = from_bart(read_cfl(dir / "k"));
  EXPECT_EQ(image.names.str(), "(S, C, Ny, Nx)");
  EXPECT_TRUE(equal(image.data.contiguous(), read_npy(dir / "k.npy")));
  run({"convert", dir / "k.cfl", dir / "cut.npy", "--slice", "S=1", "--slice", "Nx=1:4", "--part",
       "imag"});
  const Tensor cut = read_npy(dir / "cut.npy");
  EXPECT_EQ(cut.shape(), (Extents{3, 4, 3}));
  EXPECT_TRUE(
      equal(cut, part_of(read_npy(dir / "k.npy").select(0, 1).narrow(2, 1, 3), ImagePart::imag)));
  refuse({"convert", dir / "k.cfl", dir / "x.npy", "--slice", "T=1"}, "no axis T");
  refuse({"convert", dir / "k.cfl", dir / "x.npy", "--slice", "S=2"}, "expected 0 to 1");
  refuse({"convert", dir / "k.cfl", dir / "x.npy", "--slice", "Nx=3:3"}, "'Nx=3:3'");
  refuse({"convert", dir / "k.cfl", dir / "x.npy", "--slice", "Nx"}, "such as Nz=10:20");
  refuse({"convert", dir / "k.npy", dir / "x.npy", "--axes", "Ny,Nx"}, "4 axes");
  refuse({"convert", dir / "k.npy", dir / "x.npy", "--axes", "T,Ny,Ny,Nx"}, "--axes");
  refuse({"convert", dir / "k.npy", dir / "x.npy", "--part", "abs"}, "magnitude");
  refuse({"convert", dir / "k.npy", dir / "x.tif"}, "expected '.png', '.nii'");
  refuse({"convert", dir / "k.npy", dir / "k.npy"}, "overwrite the input");
  refuse({"convert", dir / "none.npy", dir / "x.npy"}, "none.npy");
}

TEST_F(ImageFiles, PlacesMoveWithTheCut) {
  NiftiImage start;
  start.data = Tensor::random_normal({4, 5, 6}, DType::float32, {1, 1});
  start.affine_ras = {{{-2, 0, 0, 10}, {0, -2, 0, 20}, {0, 0, 3, 30}}};
  start.spacing_mm = {3, 2, 2};
  write_nifti(dir / "a.nii", start);
  run({"convert", dir / "a.nii", dir / "b.nii", "--slice", "Nx=2:5", "--slice", "Nz=1"});
  const NiftiImage cut = read_nifti(dir / "b.nii");
  EXPECT_EQ(cut.data.shape(), (Extents{1, 5, 3}));
  EXPECT_EQ((*cut.affine_ras)[0][3], 6);
  EXPECT_EQ((*cut.affine_ras)[2][3], 33);
}

TEST_F(ImageFiles, ConvertSortsRawScans) {
  run({"simulate", dir / "scan.h5", "--size", "16", "--coils", "3", "--pattern", "full",
       "--save-kspace", dir / "k.npy"});
  run({"convert", dir / "scan.h5", dir / "sorted.npy"});
  EXPECT_TRUE(equal(read_npy(dir / "sorted.npy"), read_npy(dir / "k.npy")));
  run({"convert", dir / "scan.h5", dir / "sorted.cfl"});
  EXPECT_EQ(read_cfl(dir / "sorted").shape(), (Extents{3, 1, 16, 16}));
  RawScan scan = read_ismrmrd(dir / "scan.h5");
  scan.header.trajectory = "spiral";
  write_ismrmrd(dir / "spiral.h5", scan);
  refuse({"convert", dir / "spiral.h5", dir / "x.npy"}, "expected 'cartesian'");
}

TEST_F(ImageFiles, CompareListsErrorsInsideTheMask) {
  Tensor reference = Tensor::zeros({16, 16}, DType::float32);
  Tensor middle = reference.narrow(0, 4, 8).narrow(1, 4, 8);
  middle.fill<float>(2);
  Tensor noisy = reference.clone();
  noisy.set<float>({0, 0}, 1);
  write_npy(dir / "r.npy", reference);
  write_npy(dir / "x.npy", noisy);
  const Json inside = Json::parse(run({"compare", dir / "r.npy", dir / "x.npy", "--json"}).out);
  EXPECT_NEAR(inside["images"][0]["nrmse"].get<double>(), 0, 1e-9);
  EXPECT_EQ(inside["images"][0]["points"], 64);
  const Json all =
      Json::parse(run({"compare", dir / "r.npy", dir / "x.npy", "--mask", "none", "--json"}).out);
  EXPECT_NEAR(all["images"][0]["nrmse"].get<double>(), 1.0 / std::sqrt(257.0), 1e-6);
  Tensor corner = Tensor::zeros({16, 16}, DType::float32);
  corner.set<float>({4, 4}, 1);
  write_npy(dir / "mask.npy", corner);
  const Json one = Json::parse(
      run({"compare", dir / "r.npy", dir / "x.npy", "--mask", dir / "mask.npy", "--json"}).out);
  EXPECT_EQ(one["images"][0]["points"], 1);
  const CommandResult table =
      run({"compare", dir / "r.npy", dir / "x.npy", "--label", "noisy", "-o", dir / "c.png"});
  EXPECT_THAT(table.out, AllOf(HasSubstr("PSNR"), HasSubstr("SSIM"), HasSubstr("noisy"),
                               HasSubstr("64 of 256 points")));
  EXPECT_EQ(read_png(dir / "c.png").rank(), 2U);
  refuse({"compare", dir / "r.npy", dir / "x.npy", "--mask", dir / "none.npy"}, "none.npy");
  write_npy(dir / "small.npy", Tensor::ones({2, 2}, DType::float32));
  refuse({"compare", dir / "r.npy", dir / "x.npy", "--mask", dir / "small.npy"}, "(2, 2)");
  refuse({"compare", dir / "r.npy", dir / "small.npy"}, "differ in shape");
}

TEST_F(ImageFiles, CompareOfComplexValuesFindsThePhase) {
  const Tensor r = Tensor::random_normal({8, 8}, DType::complex64, {1, 7});
  Tensor x = r.clone();
  auto* values = x.mutable_data<std::complex<float>>();
  for (index_t i = 0; i < 64; ++i) values[i] *= std::complex<float>(0, 1);
  write_npy(dir / "r.npy", r);
  write_cfl(dir / "x", x);
  const Json json =
      Json::parse(run({"compare", dir / "r.npy", dir / "x.cfl", "--complex", "--json"}).out);
  EXPECT_NEAR(json["images"][0]["nrmse"].get<double>(), 0, 1e-6);
  EXPECT_NEAR(json["images"][0]["scale_imag"].get<double>(), -1, 1e-6);
  run({"compare", dir / "r.npy", dir / "x.cfl", "--complex", "--error-scale", "2", "-o",
       dir / "c.png"});
}

TEST_F(ImageFiles, ShowMakesPicturesAndPreviews) {
  Tensor x = Tensor::zeros({5, 20, 30}, DType::float32);
  Tensor middle = x.select(0, 2).narrow(0, 5, 10).narrow(1, 10, 10);
  middle.fill<float>(1);
  write_npy(dir / "x.npy", x);
  const CommandResult preview = run({"show", dir / "x.npy", "--columns", "30"});
  EXPECT_THAT(preview.out, AllOf(HasSubstr("@@@@@@@@@@"), HasSubstr("(Nz, Ny, Nx) (5, 20, 30)")));
  run({"show", dir / "x.npy", "-o", dir / "a.png"});
  run({"show", dir / "x.npy", "-o", dir / "row.png", "--columns", "5", "--window", "0:2"});
  const Tensor row = read_png(dir / "row.png");
  EXPECT_EQ(row.shape(), (Extents{20 + 12 + 16, 5 * 38 + 8}));
  EXPECT_EQ(row.at<std::uint8_t>({8 + 12 + 10, 8 + 2 * 38 + 15}), 128);
  write_npy(dir / "c.npy", Tensor::random_normal({8, 9}, DType::complex64, {1, 7}));
  run({"show", dir / "c.npy", "-o", dir / "p.png", "--part", "phase", "--bits", "16"});
  EXPECT_EQ(read_png(dir / "p.png").shape(), (Extents{8, 9}));
  EXPECT_EQ(read_png(dir / "p.png").dtype(), DType::uint16);
  refuse({"show", dir / "c.npy", "-o", dir / "q.png", "--window", "1:0"}, "increase");
  refuse({"show", dir / "c.npy", "-o", dir / "q.png", "--window", "1"}, "such as 0:1.5");
  refuse({"show", dir / "c.npy", "-o", dir / "q.png", "--bits", "12"}, "8 or 16");
  refuse({"show", dir / "c.npy", "--columns", "-1"}, "--columns");
  refuse({"show", dir / "c.npy", "-o", dir / "q.npy"}, "expected '.png'");
  Tensor bad = Tensor::ones({2, 2}, DType::float32);
  bad.set<float>({1, 0}, std::numeric_limits<float>::quiet_NaN());
  write_npy(dir / "bad.npy", bad);
  refuse({"show", dir / "bad.npy"}, "the first at (1, 0)");
  write_npy(dir / "line.npy", Tensor::ones({4}));
  refuse({"show", dir / "line.npy"}, "wrong rank");
}

TEST_F(ImageFiles, ACflAppearsWholeOrNotAtAll) {
  write_npy(dir / "x.npy", Tensor::ones({4, 4}, DType::complex64));
  run({"convert", dir / "x.npy", dir / "y.cfl"});
  EXPECT_THAT(dir.names(), ElementsAre("x.npy", "y.cfl", "y.hdr"));
  refuse({"convert", dir / "y.cfl", dir / "y.hdr"}, "overwrite the input");
}

}  // namespace
}  // namespace palimpsest::cli
