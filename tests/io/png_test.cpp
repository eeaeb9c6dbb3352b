// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/io/png.hpp"

#include <cmath>

#include "io/files.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::counting;
using testing::expect_error;
using testing::TemporaryDirectory;

class Png : public ::testing::Test {
 protected:
  Tensor through(const Tensor& image, const PngOptions& options = {}) {
    write_png(directory_ / "a.png", image, options);
    return read_png(directory_ / "a.png");
  }
  std::vector<std::uint8_t> grays(const std::vector<double>& values,
                                  const PngOptions& options = {}) {
    return through(Tensor::from(values, Extents{1, std::ssize(values)}), options)
        .to_vector<std::uint8_t>();
  }
  TemporaryDirectory directory_;
};

TEST_F(Png, SamplesThatFitComeBackExactly) {
  const Tensor gray8 = counting({7, 33}, DType::uint8);
  EXPECT_TRUE(equal(through(gray8), gray8));
  const Tensor gray16 = counting({300, 200}, DType::uint16);
  EXPECT_TRUE(equal(through(gray16, {.bits = 16}), gray16));
  const Tensor colour = counting({5, 6, 3}, DType::uint8);
  EXPECT_TRUE(equal(through(colour), colour));
  EXPECT_TRUE(equal(through(gray8.transpose()), gray8.transpose()));
}

TEST_F(Png, TheWindowIsThatOfTheFiniteValues) {
  EXPECT_EQ(grays({-1, 0, 1, NAN, INFINITY, -INFINITY}),
            (std::vector<std::uint8_t>{0, 128, 255, 0, 255, 0}));
  EXPECT_EQ(grays({3, 3}), (std::vector<std::uint8_t>{0, 0}));
  EXPECT_EQ(grays({NAN, NAN}), (std::vector<std::uint8_t>{0, 0}));
  EXPECT_EQ(grays({-1.7e308, 0, 1.7e308}), (std::vector<std::uint8_t>{0, 128, 255}));
}

TEST_F(Png, AGivenWindowClamps) {
  EXPECT_EQ(grays({-1, 0, 5, 10, 11}, {.window_low = 0, .window_high = 10}),
            (std::vector<std::uint8_t>{0, 0, 128, 255, 255}));
  EXPECT_EQ(grays({1, 2}, {.window_low = 0}), (std::vector<std::uint8_t>{128, 255}));
  EXPECT_EQ(through(Tensor::from(std::vector<float>{0, 0.5, 1}, Extents{1, 3}), {.bits = 16})
                .to_vector<std::uint16_t>(),
            (std::vector<std::uint16_t>{0, 32768, 65535}));
}

TEST_F(Png, RefusesWhatIsNoImage) {
  const std::string path = directory_ / "b.png";
  const Tensor image = Tensor::zeros({2, 2});
  expect_error<DTypeError>(
      [&] {
        write_png(path, Tensor::zeros({2, 2}, DType::complex64));
      },
      "Try the magnitude");
  for (const Extents& shape : {Extents{4}, Extents{2, 2, 3}, Extents{2, 2, 2}, Extents{0, 2}}) {
    expect_error<ShapeError>([&] { write_png(path, Tensor::zeros(shape)); },
                             "expected (height, width)");
  }
  expect_error<ValueError>([&] { write_png(path, image, {.bits = 12}); }, "got 12 bits");
  expect_error<ValueError>([&] { write_png(path, image, {.window_low = 1, .window_high = 1}); },
                           "wrong window: got 1 to 1");
  expect_error<ValueError>([&] { write_png(path, image, {.window_high = NAN}); }, "wrong window");
  expect_error<IoError>([&] { write_png(directory_ / "no/b.png", image); }, "cannot be written");
  EXPECT_TRUE(directory_.names().empty());
}

TEST_F(Png, RefusesFilesThatAreNone) {
  const std::string path = directory_ / "a.png";
  expect_error<IoError>([&] { read_png(path); }, "no such file");
  testing::write_bytes(path, "no image");
  expect_error<FormatError>([&] { read_png(path); }, "lacks the signature");
  write_png(path, counting({50, 50}, DType::uint8));
  const std::string good = testing::read_bytes(path);
  testing::write_bytes(path, good.substr(0, good.size() / 2));
  expect_error<FormatError>([&] { read_png(path); },
                            "is a damaged PNG file: the file is truncated");
}

TEST_F(Png, RefusesPixelsThatCannotBeInTheFile) {
  // A valid header for a million by a million pixels, with checksum, and no data.
  const std::string path = directory_ / "a.png";
  const std::string header("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\x0f\x42\x40\0\x0f\x42\x40\x08\0\0\0\0",
                           29);
  testing::write_bytes(
      path, header + "\x79\x06\x67\xa1" + std::string("\0\0\0\0IDAT\x35\xaf\x06\x1e", 12));
  expect_error<FormatError>([&] { read_png(path); },
                            "is truncated: 1000000 x 1000000 pixels do not fit in 45 bytes");
}

}  // namespace
}  // namespace palimpsest
