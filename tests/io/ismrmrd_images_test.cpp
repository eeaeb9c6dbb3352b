// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/io/ismrmrd_images.hpp"

#include <gmock/gmock.h>

#include "io/files.hpp"
#include "io/scans.hpp"
#include "palimpsest/base/error.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using ::testing::ElementsAre;
using testing::expect_error;
using ::testing::IsEmpty;
using testing::TemporaryDirectory;

IsmrmrdImages some_images(DType dtype) {
  IsmrmrdImages images;
  images.header = "<ismrmrdHeader/>";
  images.data = Tensor::arange(3 * 2 * 1 * 4 * 5, DType::int32).view({3, 2, 1, 4, 5}).to(dtype);
  for (index_t i = 0; i < 3; ++i) {
    IsmrmrdImageHead head;
    head.field_of_view_mm = {100, 200, 5};
    head.position_mm = {1.5F, -2.5F, 5.0F * float(i)};
    head.read_direction = {0, 1, 0};
    head.phase_direction = {1, 0, 0};
    head.slice = i;
    head.repetition = 7;
    head.acquisition_time_stamp = 1000;
    head.attributes = {{"name", "a < b & c"}, {"number", std::to_string(i)}};
    images.heads.push_back(head);
  }
  return images;
}

TEST(IsmrmrdImages, ReadBackWhatWasWritten) {
  const TemporaryDirectory directory;
  for (const DType dtype : {DType::uint16, DType::int16, DType::uint32, DType::int32,
                            DType::float32, DType::float64, DType::complex64, DType::complex128}) {
    const IsmrmrdImages images = some_images(dtype);
    write_ismrmrd_images(directory / "a.mrd", images);
    const IsmrmrdImages back = read_ismrmrd_images(directory / "a.mrd");
    EXPECT_TRUE(equal(back.data, images.data)) << name_of(dtype);
    EXPECT_EQ(back.header, images.header);
    EXPECT_EQ(back.series, "image_0");
    ASSERT_EQ(back.heads.size(), 3U);
    EXPECT_EQ(back.heads[2].position_mm, images.heads[2].position_mm);
    EXPECT_EQ(back.heads[1].read_direction, images.heads[1].read_direction);
    EXPECT_EQ(back.heads[1].slice, 1);
    EXPECT_EQ(back.heads[1].repetition, 7);
    EXPECT_EQ(back.heads[1].acquisition_time_stamp, 1000U);
    EXPECT_EQ(back.heads[1].attributes, images.heads[1].attributes);
  }
  write_ismrmrd_images(directory / "a.mrd", some_images(DType::uint8));
  EXPECT_EQ(read_ismrmrd_images(directory / "a.mrd").data.dtype(), DType::uint16);
}

TEST(IsmrmrdImages, FilesSayWhatTheyHold) {
  const TemporaryDirectory directory;
  IsmrmrdImages images = some_images(DType::float32);
  images.series = "maps_1";
  write_ismrmrd_images(directory / "a.h5", images);
  const IsmrmrdContents contents = ismrmrd_contents(directory / "a.h5");
  EXPECT_FALSE(contents.has_scan);
  EXPECT_THAT(contents.image_series, ElementsAre("maps_1"));
  EXPECT_EQ(read_ismrmrd_images(directory / "a.h5", "maps_1").series, "maps_1");
  expect_error<FormatError>([&] { read_ismrmrd_images(directory / "a.h5", "image_0"); },
                            "no images 'image_0'");
  write_ismrmrd(directory / "raw.h5", testing::some_scan());
  const IsmrmrdContents raw = ismrmrd_contents(directory / "raw.h5");
  EXPECT_TRUE(raw.has_scan);
  EXPECT_THAT(raw.image_series, IsEmpty());
  expect_error<FormatError>([&] { read_ismrmrd_images(directory / "raw.h5"); },
                            "a raw scan and no images");
}

TEST(IsmrmrdImages, RefuseWhatTheStandardCannotHold) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.h5";
  IsmrmrdImages images = some_images(DType::float32);
  images.heads.pop_back();
  expect_error<ValueError>([&] { write_ismrmrd_images(path, images); }, "2 heads for 3 images");
  images = some_images(DType::float32);
  images.series = "a/b";
  expect_error<ValueError>([&] { write_ismrmrd_images(path, images); }, "a/b");
  images = some_images(DType::float32);
  images.heads[1].slice = 70000;
  expect_error<OverflowError>([&] { write_ismrmrd_images(path, images); }, "slice is 70000");
  images.data = Tensor::ones({2, 2});
  expect_error<ValueError>([&] { write_ismrmrd_images(path, images); },
                           "(image, channel, z, y, x)");
  expect_error<IoError>(
      [&] { write_ismrmrd_images(directory / "none/a.h5", some_images(DType::int16)); }, "none");
  EXPECT_TRUE(directory.names().empty());
}

TEST(IsmrmrdImages, SurviveMutilation) {
  const TemporaryDirectory directory;
  write_ismrmrd_images(directory / "a.h5", some_images(DType::complex64));
  testing::expect_survives_damage(testing::read_bytes(directory / "a.h5"), directory / "b.h5", 4096,
                                  60, [](const std::string& path) {
                                    const IsmrmrdImages back = read_ismrmrd_images(path);
                                    EXPECT_EQ(static_cast<index_t>(back.heads.size()),
                                              back.data.shape(0));
                                  });
}

}  // namespace
}  // namespace palimpsest
