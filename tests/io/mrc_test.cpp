// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/io/mrc.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "io/files.hpp"
#include "palimpsest/io/format.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::counting;
using testing::expect_error;
using testing::read_bytes;
using testing::TemporaryDirectory;
using testing::write_bytes;

// A file of another program, written field by field.
class MrcBytes {
 public:
  MrcBytes(std::int32_t nx, std::int32_t ny, std::int32_t nz, std::int32_t mode)
      : bytes_(1024, '\0') {
    integer(0, nx).integer(4, ny).integer(8, nz).integer(12, mode);
    integer(28, nx).integer(32, ny).integer(36, nz);
    for (std::int32_t i = 0; i < 3; ++i) integer(64 + 4 * i, i + 1);
    integer(88, 1).text(208, "MAP ").text(212, "\x44\x44");
  }
  MrcBytes& integer(std::int32_t offset, std::int32_t value) { return put(offset, value); }
  MrcBytes& real(std::int32_t offset, float value) { return put(offset, value); }
  MrcBytes& text(std::int32_t offset, const std::string& value) {
    bytes_.replace(static_cast<std::size_t>(offset), value.size(), value);
    return *this;
  }
  template <class T>
  std::string file(const std::vector<T>& elements, const std::string& extended = "") {
    integer(92, static_cast<std::int32_t>(extended.size()));
    return bytes_ + extended +
           std::string(reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T));
  }

 private:
  template <class T>
  MrcBytes& put(std::int32_t offset, T value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof(T));
    return *this;
  }
  std::string bytes_;
};

// The file in the other byte order: swaps the 4-byte numbers of the header, except texts.
std::string swapped(std::string file, std::size_t element) {
  for (std::size_t i = 0; i < 224; i += 4) {
    if (i != 208)
      std::reverse(file.begin() + std::ptrdiff_t(i), file.begin() + std::ptrdiff_t(i + 4));
  }
  for (std::size_t i = 1024; i + element <= file.size(); i += element) {
    std::reverse(file.begin() + std::ptrdiff_t(i), file.begin() + std::ptrdiff_t(i + element));
  }
  file.replace(212, 4, std::string("\x11\x11\0\0", 4));
  return file;
}

// Expects that the file is refused with this text.
void expect_refused(const std::string& bytes, const std::string& text) {
  const TemporaryDirectory directory;
  write_bytes(directory / "a.mrc", bytes);
  expect_error<FormatError>([&] { read_mrc(directory / "a.mrc"); }, text);
  expect_error<FormatError>([&] { map_mrc(directory / "a.mrc"); }, text);
}

TEST(Mrc, WhatIsWrittenComesBack) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.mrc";
  for (const DType dtype :
       {DType::int8, DType::int16, DType::uint16, DType::float32, DType::complex64}) {
    for (const Extents& shape :
         {Extents{5, 7}, Extents{1, 5, 7}, Extents{3, 5, 7}, Extents{2, 3, 5, 7}}) {
      write_mrc(path, {.data = counting(shape, dtype),
                       .spacing_angstrom = {3, 1.5, 2},
                       .origin_angstrom = {-10, 0.5, 8},
                       .description = "one\ntwo"});
      for (const MrcImage& image : {read_mrc(path), map_mrc(path)}) {
        EXPECT_EQ(image.data.dtype(), dtype);
        EXPECT_TRUE(equal(image.data, counting(shape, dtype))) << image.data;
        EXPECT_EQ(image.spacing_angstrom, (std::array<double, 3>{3, 1.5, 2}));
        EXPECT_EQ(image.origin_angstrom, (std::array<double, 3>{-10, 0.5, 8}));
        EXPECT_EQ(image.description, "one\ntwo");
        EXPECT_EQ(image.is_stack, shape.size() == 2);
      }
    }
  }
  EXPECT_EQ(directory.names(), std::vector<std::string>{"a.mrc"});
}

TEST(Mrc, OtherTypesAreWrittenAsTheNearest) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.mrc";
  for (const auto& [given, stored] : {std::pair{DType::bool_, DType::int8},
                                      {DType::uint8, DType::uint16},
                                      {DType::float64, DType::float32},
                                      {DType::complex128, DType::complex64}}) {
    write_mrc(path, {.data = counting({3, 4}, given)});
    EXPECT_TRUE(equal(read_mrc(path).data, counting({3, 4}, given).to(stored)));
  }
}

TEST(Mrc, AViewIsWrittenAsItsElements) {
  const TemporaryDirectory directory;
  const Tensor data = counting({4, 6, 5}, DType::float32);
  for (const Tensor& view :
       {data.permute({2, 0, 1}), data.flip(Axes{0, 2}), data.narrow(1, 2, 3)}) {
    write_mrc(directory / "a.mrc", {.data = view, .is_stack = true});
    const MrcImage image = map_mrc(directory / "a.mrc");
    EXPECT_TRUE(equal(image.data, view.clone()));
    EXPECT_TRUE(image.is_stack);
  }
}

TEST(Mrc, HeadersHaveStatistics) {
  const TemporaryDirectory directory;
  write_mrc(directory / "a.mrc", {.data = Tensor::from<float>({1, 2, 3, 6}).reshape({2, 2})});
  const std::string bytes = read_bytes(directory / "a.mrc");
  float values[3], deviation;
  std::memcpy(values, bytes.data() + 76, 12);
  std::memcpy(&deviation, bytes.data() + 216, 4);
  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(values[1], 6);
  EXPECT_EQ(values[2], 3);
  EXPECT_NEAR(deviation, std::sqrt(3.5), 1e-6);
  EXPECT_EQ(bytes.size(), 1024U + 16U);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  write_mrc(directory / "b.mrc", {.data = Tensor::from<float>({1, nan}).reshape({1, 2})});
  std::memcpy(values, read_bytes(directory / "b.mrc").data() + 76, 12);
  EXPECT_LT(values[1], values[0]);  // unknown
}

TEST(Mrc, FilesOfEitherByteOrderAreRead) {
  const TemporaryDirectory directory;
  const std::vector<float> elements{1, -2, 3.5, 4, 5, 6};
  const std::string little = MrcBytes(3, 2, 1, 2).real(40, 4.5F).file(elements, "0123456789");
  write_bytes(directory / "a", little);
  write_bytes(directory / "b", swapped(little.substr(0, 1024) + little.substr(1034), 4));
  std::string b = read_bytes(directory / "b");
  b.replace(92, 4, std::string(4, '\0'));
  write_bytes(directory / "b", b);
  for (const char* name : {"a", "b"}) {
    for (const MrcImage& image : {read_mrc(directory / name), map_mrc(directory / name)}) {
      EXPECT_TRUE(equal(image.data, Tensor::from(elements, Extents{1, 2, 3})))
          << name << image.data;
      EXPECT_EQ(image.spacing_angstrom[2], 1.5);
    }
  }
  b.replace(212, 4, std::string(4, '\0'));  // no stamp
  write_bytes(directory / "c", b);
  EXPECT_TRUE(equal(read_mrc(directory / "c").data, read_mrc(directory / "a").data));
}

TEST(Mrc, HalvesAndBytesOfImodAreRead) {
  const TemporaryDirectory directory;
  const std::vector<std::uint16_t> halves{0x3c00, 0xc000, 0x0001, 0x7bff, 0x7c00, 0x8000};
  write_bytes(directory / "half", MrcBytes(6, 1, 1, 12).file(halves));
  const auto values = read_mrc(directory / "half").data.to_vector<float>();
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(values, (std::vector<float>{1, -2, 0x1p-24F, 65504, infinity, 0}));
  const std::vector<std::uint8_t> bytes{0, 200};
  write_bytes(directory / "imod", MrcBytes(2, 1, 1, 0).integer(152, 1146047817).file(bytes));
  EXPECT_EQ(read_mrc(directory / "imod").data.dtype(), DType::uint8);
  write_bytes(directory / "plain", MrcBytes(2, 1, 1, 0).file(bytes));
  EXPECT_EQ(read_mrc(directory / "plain").data.to_vector<std::int8_t>()[1], -56);
}

TEST(Mrc, SpacingFollowsTheOrderOfTheAxes) {
  const TemporaryDirectory directory;
  const std::vector<float> elements(24);
  // Columns along z, rows along x, sections along y.
  auto bytes = MrcBytes(4, 3, 2, 2).real(40, 30).real(44, 40).real(48, 80);
  bytes.integer(28, 3).integer(32, 2).integer(36, 4);
  bytes.integer(64, 3).integer(68, 1).integer(72, 2);
  write_bytes(directory / "a", bytes.file(elements));
  EXPECT_EQ(read_mrc(directory / "a").spacing_angstrom, (std::array<double, 3>{20, 10, 20}));
}

TEST(Mrc, IsKnownByItsContent) {
  const TemporaryDirectory directory;
  write_mrc(directory / "a.npy", {.data = counting({3, 4}, DType::float32), .description = "x"});
  EXPECT_EQ(detect_format(directory / "a.npy"), FileFormat::image);
  EXPECT_EQ(format_name(directory / "a.npy"), "MRC");
  const ImageFormat* format = detect_image_format(directory / "a.npy");
  ASSERT_NE(format, nullptr);
  NiftiImage image = format->read(directory / "a.npy");
  EXPECT_EQ(image.description, "x");
  image.spacing_mm = {1e-7, 2e-7, 3e-7};
  format->write(directory / "b", image);
  EXPECT_NEAR(read_mrc(directory / "b").spacing_angstrom[1], 2, 1e-6);
}

TEST(Mrc, WrongFilesAreRefused) {
  const std::vector<float> elements(6);
  expect_refused("short", "got 5 bytes, expected at least 1024");
  expect_refused(MrcBytes(3, 2, 1, 3).file(elements), "MRC mode 3");
  expect_refused(MrcBytes(3, -2, 1, 2).file(elements), "3 x -2 x 1");
  expect_refused(MrcBytes(3, 2, 0, 2).file(elements), "expected positive");
  expect_refused(MrcBytes(3, 2, 2, 2).file(elements), "got 24 bytes of elements, expected 48");
  std::string negative = MrcBytes(3, 2, 1, 2).file(elements);
  negative.replace(92, 4, std::string(4, '\xff'));
  expect_refused(negative, "extended header of -1 bytes");
  std::string far = MrcBytes(3, 2, 1, 2).file(elements);
  far.replace(92, 4, std::string("\xff\xff\xff\x7f", 4));
  expect_refused(far, "got 0 bytes of elements");
  const std::int32_t most = std::numeric_limits<std::int32_t>::max();
  expect_refused(MrcBytes(most, most, most, 4).file(elements), "impossible shape");
  expect_refused(MrcBytes(most, most, 1, 0).file(elements), "is truncated");
}

TEST(Mrc, WrongImagesAreRefused) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.mrc";
  const auto write = [&](MrcImage image) { return [=] { write_mrc(path, image); }; };
  const Tensor good = counting({2, 3}, DType::float32);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  expect_error<ShapeError>(write({.data = counting({3}, DType::int8)}), "got the shape (3,)");
  expect_error<ShapeError>(write({.data = counting({2, 0}, DType::int8)}), "expected 2 to 4 axes");
  expect_error<DTypeError>(write({.data = counting({2, 2}, DType::int32)}), "got int32");
  expect_error<ValueError>(write({.data = good, .spacing_angstrom = {1, nan, 1}}), "got nan");
  expect_error<ValueError>(write({.data = good, .origin_angstrom = {1e300, 0, 0}}), "finite");
  EXPECT_TRUE(directory.names().empty());
}

TEST(Mrc, DamagedFilesAreReadOrRefused) {
  const TemporaryDirectory directory;
  write_mrc(directory / "a", {.data = counting({4, 5, 7}, DType::int16), .description = "text"});
  const std::string good = read_bytes(directory / "a");
  for (const auto read : {read_mrc, map_mrc}) {
    testing::expect_survives_damage(good, directory / "b", 224, 2000, [&](const std::string& path) {
      const MrcImage image = read(path);
      EXPECT_GE(image.data.to(DType::complex64).numel(), 1);
    });
  }
}

}  // namespace
}  // namespace palimpsest
