// SPDX-License-Identifier: Apache-2.0

#include <cmath>
#include <limits>

#include "io/files.hpp"
#include "palimpsest/io/format.hpp"
#include "palimpsest/io/nifti.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using testing::TemporaryDirectory;

using Affine = std::array<std::array<double, 4>, 3>;

NiftiImage some_image(DType dtype) {
  NiftiImage image;
  image.data = Tensor::arange(2 * 3 * 4 * 5, DType::int32).view({2, 3, 4, 5}).to(dtype);
  image.spacing_mm = {4, 2.5, 1.5};
  image.description = "made by a test";
  image.time_step_s = 0.125;
  return image;
}

TEST(WriteNifti, ReadsBackWhatWasWrittenInAllTypes) {
  const TemporaryDirectory directory;
  for (int i = 1; i < kDTypeCount; ++i) {
    for (const char* name : {"a.nii", "a.nii.gz"}) {
      const NiftiImage image = some_image(static_cast<DType>(i));
      write_nifti(directory / name, image);
      EXPECT_EQ(detect_format(directory / name), FileFormat::nifti);
      const NiftiImage back = read_nifti(directory / name);
      EXPECT_TRUE(equal(back.data, image.data)) << name_of(static_cast<DType>(i));
      EXPECT_EQ(back.spacing_mm, image.spacing_mm);
      EXPECT_EQ(back.description, image.description);
      EXPECT_EQ(back.time_step_s, 0.125);
      EXPECT_FALSE(back.affine_ras);
    }
  }
  NiftiImage flags = some_image(DType::bool_);
  write_nifti(directory / "b.nii", flags);
  EXPECT_TRUE(equal(read_nifti(directory / "b.nii").data, flags.data.to(DType::uint8)));
}

TEST(WriteNifti, KeepsAffinesAlsoOfTheQform) {
  const TemporaryDirectory directory;
  const double c = 0.8, s = 0.6;
  const Affine cases[] = {{{{1.5, 0, 0, -10}, {0, 2.5, 0, 20}, {0, 0, 4, 30}}},
                          {{{-1.5, 0, 0, 1}, {0, -2.5, 0, 2}, {0, 0, 4, 3}}},
                          {{{1.5 * c, 0, 4 * s, 1}, {0, -2.5, 0, 2}, {1.5 * s, 0, -4 * c, 3}}},
                          {{{0, 2.5 * c, -4 * s, 1}, {1.5, 0, 0, 2}, {0, 2.5 * s, 4 * c, 3}}}};
  for (const Affine& affine : cases) {
    NiftiImage image = some_image(DType::float32);
    image.affine_ras = affine;
    write_nifti(directory / "a.nii", image);
    std::string bytes = testing::read_bytes(directory / "a.nii");
    EXPECT_EQ(bytes[252], 1) << "qform_code";
    EXPECT_EQ(bytes[254], 1) << "sform_code";
    for (const bool by_qform : {false, true}) {
      if (by_qform) {
        bytes[254] = 0;
        testing::write_bytes(directory / "a.nii", bytes);
      }
      const NiftiImage back = read_nifti(directory / "a.nii");
      ASSERT_TRUE(back.affine_ras);
      for (std::size_t row = 0; row < 3; ++row) {
        for (std::size_t d = 0; d < 4; ++d) {
          EXPECT_NEAR((*back.affine_ras)[row][d], affine[row][d], 1e-5) << by_qform;
        }
      }
    }
  }
}

TEST(WriteNifti, AShearHasNoQform) {
  const TemporaryDirectory directory;
  NiftiImage image = some_image(DType::float32);
  image.affine_ras = Affine{{{1.5, 1, 0, 0}, {0, 2.5, 0, 0}, {0, 0, 4, 0}}};
  write_nifti(directory / "a.nii", image);
  const std::string bytes = testing::read_bytes(directory / "a.nii");
  EXPECT_EQ(bytes[252], 0);
  EXPECT_EQ(bytes[254], 1);
}

TEST(WriteNifti, LongAxesTakeVersionTwo) {
  const TemporaryDirectory directory;
  NiftiImage image;
  image.data = Tensor::arange(40000, DType::int16).view({1, 1, 40000});
  image.affine_ras = Affine{{{1, 0, 0, -3.25}, {0, 1, 0, 0}, {0, 0, 1, 0}}};
  write_nifti(directory / "a.nii", image);
  EXPECT_EQ(testing::read_bytes(directory / "a.nii").substr(4, 3), "n+2");
  const NiftiImage back = read_nifti(directory / "a.nii");
  EXPECT_TRUE(equal(back.data, image.data));
  EXPECT_EQ((*back.affine_ras)[0][3], -3.25);
}

TEST(WriteNifti, BytesDependOnTheContentAlone) {
  const TemporaryDirectory directory;
  write_nifti(directory / "a.nii.gz", some_image(DType::float64));
  write_nifti(directory / "b.nii.gz", some_image(DType::float64));
  EXPECT_EQ(testing::read_bytes(directory / "a.nii.gz"),
            testing::read_bytes(directory / "b.nii.gz"));
}

TEST(WriteNifti, RefusesWhatNiftiCannotHold) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.nii";
  expect_error<ShapeError>(
      [&] {
        write_nifti(path, {Tensor::ones({1, 1, 1, 1, 1, 1, 1, 1})});
      },
      "1 to 7 axes");
  expect_error<ShapeError>(
      [&] {
        write_nifti(path, {Tensor::ones({2, 0})});
      },
      "at least one element");
  NiftiImage image = some_image(DType::float32);
  image.spacing_mm[1] = std::numeric_limits<double>::quiet_NaN();
  expect_error<ValueError>([&] { write_nifti(path, image); }, "finite");
  expect_error<IoError>([&] { write_nifti(directory / "none/a.nii", some_image(DType::float32)); },
                        "none");
  EXPECT_TRUE(directory.names().empty());
}

}  // namespace
}  // namespace palimpsest
