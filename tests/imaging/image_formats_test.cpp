// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/results/image_formats.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "palimpsest/base/error.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;

Image oblique_image(const char* names, Extents shape) {
  Image image;
  image.data = Tensor::random_normal(std::move(shape), DType::complex64, {3, 1});
  image.names = Dims(names);
  image.voxel_mm = {1.1, 0.9, 3.3};
  const double c = std::cos(0.4), s = std::sin(0.4);
  image.affine_lps = lps_affine({{{{c, 0, -s}, {0, 1, 0}, {s, 0, c}}}, {12.5, -3.25, 40.125}},
                                image.voxel_mm, spatial_extents(image));
  image.time_step_s = 0.0421;
  image.description = "A & B <1>";
  return image;
}

void expect_same(const Image& a, const Image& b) {
  EXPECT_EQ(a.names.str(), b.names.str());
  EXPECT_TRUE(equal(a.data.contiguous(), b.data.contiguous()));
  EXPECT_EQ(a.voxel_mm, b.voxel_mm);
  EXPECT_EQ(a.affine_lps, b.affine_lps);
  EXPECT_EQ(a.time_step_s, b.time_step_s);
  EXPECT_EQ(a.description, b.description);
}

TEST(ImageFormats, SurviveNiftiAndIsmrmrdBitForBit) {
  const Image series = oblique_image("T Nz Ny Nx", {3, 4, 5, 6});
  expect_same(from_nifti(to_nifti(series)), series);
  expect_same(from_ismrmrd(to_ismrmrd(series)), series);
  expect_same(from_nifti(to_nifti(from_ismrmrd(to_ismrmrd(series)))), series);
  const Image slices = oblique_image("T S C Ny Nx", {2, 3, 2, 5, 6});
  expect_same(from_ismrmrd(to_ismrmrd(slices)), slices);
}

TEST(ImageFormats, IsmrmrdHeadsWithoutDirectionsSayNoPlace) {
  const Image plane = oblique_image("Ny Nx", {5, 6});
  IsmrmrdImages images = to_ismrmrd(plane);
  images.heads[0].attributes.clear();
  EXPECT_TRUE(from_ismrmrd(images).affine_lps);
  images.heads[0].phase_direction = images.heads[0].read_direction;
  EXPECT_FALSE(from_ismrmrd(images).affine_lps);
  images.heads[0].phase_direction = {0, 0, 0};
  EXPECT_FALSE(from_ismrmrd(images).affine_lps);
}

TEST(ImageFormats, IsmrmrdHeadsSayWhereASliceLies) {
  const Image slices = oblique_image("S Ny Nx", {4, 5, 6});
  IsmrmrdImages images = to_ismrmrd(slices);
  ASSERT_EQ(images.heads.size(), 4U);
  for (std::size_t k = 0; k < 4; ++k) {
    const IsmrmrdImageHead& head = images.heads[k];
    EXPECT_EQ(head.slice, static_cast<index_t>(k));
    EXPECT_NEAR(double{head.field_of_view_mm[0]}, 6.6, 1e-6);
    EXPECT_NEAR(double{head.field_of_view_mm[2]}, 3.3, 1e-6);
    for (std::size_t row = 0; row < 3; ++row) {
      const auto& a = (*slices.affine_lps)[row];
      const double at = a[0] * 3 + a[1] * 2 + a[2] * double(k) + a[3];
      EXPECT_NEAR(double{head.position_mm[row]}, at, 1e-4);
    }
  }
  // Without attributes of this library the position follows from the headers, in any order.
  for (IsmrmrdImageHead& head : images.heads) head.attributes.clear();
  std::swap(images.heads[0], images.heads[3]);
  Tensor data = images.data.clone();
  Tensor first = data.select(0, 0), last = data.select(0, 3);
  first.copy_from(images.data.select(0, 3));
  last.copy_from(images.data.select(0, 0));
  images.data = data;
  const Image back = from_ismrmrd(images);
  EXPECT_TRUE(equal(back.data.contiguous(), slices.data.contiguous()));
  EXPECT_NEAR(back.voxel_mm[2], 3.3, 1e-5);
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t d = 0; d < 4; ++d) {
      EXPECT_NEAR((*back.affine_lps)[row][d], (*slices.affine_lps)[row][d], 1e-4);
    }
  }
}

TEST(ImageFormats, ImagesWithoutCountersAreFrames) {
  IsmrmrdImages images;
  images.heads.resize(3);
  images.data = Tensor::arange(12, DType::float32).view({3, 1, 1, 2, 2});
  const Image image = from_ismrmrd(images);
  EXPECT_EQ(image.names.str(), "(T, Ny, Nx)");
  EXPECT_TRUE(equal(image.data, images.data.view({3, 2, 2})));
}

TEST(ImageFormats, NiftiPutsSlicesInThePlaceOfZAndTimeFourth) {
  const Image slices = oblique_image("S T Ny Nx", {3, 2, 5, 6});
  const NiftiImage nifti = to_nifti(slices);
  EXPECT_EQ(nifti.data.shape(), (Extents{2, 3, 5, 6}));
  EXPECT_EQ(nifti.spacing_mm, (std::array<double, 3>{3.3, 0.9, 1.1}));
  // RAS: the first two rows are negated.
  EXPECT_EQ((*nifti.affine_ras)[0][0], -(*slices.affine_lps)[0][0]);
  EXPECT_EQ((*nifti.affine_ras)[2][2], (*slices.affine_lps)[2][2]);
  EXPECT_EQ(to_nifti(oblique_image("M T Nz Ny Nx", {2, 3, 4, 5, 6})).data.shape(),
            (Extents{2, 3, 4, 5, 6}));
  EXPECT_EQ(to_nifti(oblique_image("M Ny Nx", {2, 5, 6})).data.shape(), (Extents{2, 1, 1, 5, 6}));
}

TEST(ImageFormats, BartHasAPlaceForEachDimension) {
  const Image image = oblique_image("S T M C Nz Ny Nx", {2, 3, 4, 5, 1, 6, 7});
  const Tensor array = to_bart(image);
  EXPECT_EQ(array.shape(), (Extents{1, 1, 2, 1, 1, 3, 1, 1, 1, 1, 1, 4, 5, 1, 6, 7}));
  const Image back = from_bart(array);
  EXPECT_EQ(back.names.str(), "(S, T, M, C, Ny, Nx)");
  EXPECT_TRUE(equal(back.data.contiguous(), image.data.squeeze(4).contiguous()));
  EXPECT_EQ(from_bart(Tensor::ones({7})).names.str(), "(Ny, Nx)");
}

TEST(ImageFormats, RefuseAxesThatTheyHaveNoPlaceFor) {
  expect_error<ShapeError>([] { to_nifti(oblique_image("S Nz Ny Nx", {2, 3, 4, 5})); }, "[NIfTI]");
  expect_error<ShapeError>(
      [] {
        to_ismrmrd(oblique_image("Q Ny Nx", {2, 4, 5}));
      },
      "no counter for the axis Q");
  expect_error<ShapeError>([] { to_bart(oblique_image("Q Ny Nx", {2, 4, 5})); }, "no dimension Q");
  expect_error<ShapeError>([] { from_ismrmrd({}); }, "no images");
  Image wrong = oblique_image("Ny Nx", {4, 5});
  wrong.names = Dims("Nx");
  expect_error<ShapeError>([&] { to_nifti(wrong); }, "a name for each");
}

}  // namespace
}  // namespace palimpsest
