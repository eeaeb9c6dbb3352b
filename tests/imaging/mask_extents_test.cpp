// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/recon/mask_extents.hpp"

#include <gmock/gmock.h>

#include "imaging/simulated.hpp"
#include "palimpsest/imaging/patterns.hpp"
#include "palimpsest/imaging/recon/image_solver.hpp"
#include "palimpsest/imaging/reconstruct.hpp"
#include "palimpsest/imaging/sensitivities.hpp"
#include "support/difference.hpp"

namespace palimpsest {
namespace {

using testing::coil_kspace;
using testing::difference;
using ::testing::HasSubstr;
using ::testing::Not;

Extents changes_of(const std::vector<bool>& mask, const Extents& shape, std::size_t axes) {
  Extents extents(axes, 1);
  note_changes(Tensor::from(mask, shape), extents);
  return extents;
}

TEST(MaskExtents, AreThoseOfTheAxesAlongWhichAMaskChanges) {
  EXPECT_EQ(changes_of({true, true, true, true, true, true}, {2, 3}, 2), (Extents{1, 1}));
  EXPECT_EQ(changes_of({true, true, true, false, false, false}, {2, 3}, 2), (Extents{2, 1}));
  EXPECT_EQ(changes_of({true, false, true, true, false, true}, {2, 3}, 2), (Extents{1, 3}));
  EXPECT_EQ(changes_of({true, true, true, true, false, true}, {2, 3}, 2), (Extents{2, 3}));
  // Frames that differ, each the same along both axes.
  EXPECT_EQ(changes_of({true, true, false, false}, {2, 1, 2}, 2), (Extents{1, 1}));
  EXPECT_EQ(changes_of({true}, {1, 1}, 2), (Extents{1, 1}));
  EXPECT_EQ(changes_of({}, {0, 3}, 2), (Extents{1, 1}));
}

TEST(MaskExtents, GrowWithEachMask) {
  Extents extents(2, 1);
  note_changes(Tensor::from(std::vector<float>{1, 1, 2, 2}, Extents{2, 2}), extents);
  EXPECT_EQ(extents, (Extents{2, 1}));
  note_changes(Tensor::from(std::vector<float>{1, 2, 1, 2}, Extents{2, 2}), extents);
  EXPECT_EQ(extents, (Extents{2, 2}));
}

TEST(MaskExtents, ShortenedMasksHaveTheFirstElements) {
  const Tensor mask = Tensor::from(std::vector<float>{1, 1, 2, 2, 3, 3, 4, 4}, Extents{2, 2, 2});
  const Tensor shortened = shortened_mask(mask, {2, 1});
  EXPECT_EQ(shortened.shape(), (Extents{2, 2, 1}));
  EXPECT_EQ(shortened.contiguous().to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
}

TEST(MaskExtents, CompleteReadoutsAreNotTransformed) {
  ImageItem item{.n_coils = 4, .shape = {24, 20}, .dims = Dims("Ny Nx")};
  const auto text = [&] {
    return ImageSolver(item, {.regularizers = {parse_regularizer("l1wav:0.01")}},
                       {index_t{1} << 40, index_t{1} << 40})
        .operator_text();
  };
  EXPECT_THAT(text(), HasSubstr("Kx"));
  item.sampling = GridSampling{.mask_extents = {24, 1}};
  EXPECT_THAT(text(), Not(HasSubstr("Kx")));
  EXPECT_THAT(text(), HasSubstr("Ky"));
}

// A weight that differs by a rounding error needs both transforms.
TEST(MaskExtents, ImagesAreThoseOfAllTransforms) {
  constexpr index_t kRows = 48, kColumns = 40;
  const Tensor maps = ring_coil_maps(4, kRows, kColumns);
  const Tensor full = coil_kspace(ellipse_image(modified_shepp_logan(), kRows, kColumns), maps);
  for (const bool along_x : {true, false}) {
    std::vector<float> weights(kRows * kColumns);
    for (index_t i = 0; i < kRows * kColumns; ++i) {
      const index_t line = along_x ? i / kColumns : i % kColumns;
      weights[static_cast<std::size_t>(i)] = line % 2 == 0 || std::abs(line - 22) < 6 ? 1.0F : 0.0F;
    }
    const Tensor mask = Tensor::from(weights, Extents{kRows, kColumns});
    Tensor measured = full.clone();
    for (index_t i = 0; i < measured.numel(); ++i) {
      measured.mutable_data<std::complex<float>>()[i] *=
          weights[static_cast<std::size_t>(i % mask.numel())];
    }
    weights[22 * kColumns + 22] = 1 - 1e-7F;
    const Tensor changed = Tensor::from(weights, Extents{kRows, kColumns});
    for (const char* const reg : {"l2:0.01", "l1wav:0.01,shift=none", "tv:0.01", "ball:10"}) {
      ReconstructOptions options{.regularizers = {parse_regularizer(reg)}, .iterations = 15};
      if (std::string(reg) == "ball:10") {
        options.regularizers.push_back(parse_regularizer("tv:0.01"));
      }
      const Tensor image = reconstruct(measured, maps, {.mask = mask}, options).image;
      EXPECT_LT(difference(reconstruct(measured, maps, {.mask = changed}, options).image, image),
                1e-4)
          << reg;
    }
  }
}

}  // namespace
}  // namespace palimpsest
