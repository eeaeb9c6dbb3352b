// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/io/cfl.hpp"

#include "io/files.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::counting;
using testing::expect_error;
using testing::read_bytes;
using testing::TemporaryDirectory;
using testing::write_bytes;

TEST(Cfl, ComesBackUnderAnyOfItsNames) {
  const TemporaryDirectory directory;
  const Tensor t = counting({8, 1, 5, 7}, DType::complex64);
  write_cfl(directory / "scan", t);
  for (const char* name : {"scan", "scan.hdr", "scan.cfl"}) {
    EXPECT_TRUE(equal(read_cfl(directory / name), t)) << name;
    EXPECT_TRUE(equal(map_cfl(directory / name), t)) << name;
  }
  EXPECT_EQ(directory.names(), (std::vector<std::string>{"scan.cfl", "scan.hdr"}));
}

TEST(Cfl, TheFastestDimensionIsTheLastAxis) {
  const TemporaryDirectory directory;
  write_bytes(directory / "a.hdr", "# Dimensions\n3 2 1 1 1 \n");
  std::vector<std::complex<float>> values = {1, 2, 3, 4, 5, 6};
  write_bytes(directory / "a.cfl",
              std::string(reinterpret_cast<const char*>(values.data()), 6 * sizeof(values[0])));
  const Tensor t = read_cfl(directory / "a");
  EXPECT_EQ(t.shape(), (Extents{2, 3}));
  EXPECT_EQ(t.at<std::complex<float>>({1, 0}), std::complex<float>(4));
}

TEST(Cfl, WritesTheHeaderThatBartExpects) {
  const TemporaryDirectory directory;
  write_cfl(directory / "a", counting({2, 3}, DType::float64).transpose());
  EXPECT_EQ(read_bytes(directory / "a.hdr"),
            "# Dimensions\n2 3 1 1 1 1 1 1 1 1 1 1 1 1 1 1 \n# Creator\nPalimpsest\n");
  EXPECT_EQ(read_cfl(directory / "a").at<std::complex<float>>({2, 1}), std::complex<float>(5));
}

TEST(Cfl, AScalarHasNoAxes) {
  const TemporaryDirectory directory;
  write_cfl(directory / "a", Tensor::scalar(2.0f));
  EXPECT_EQ(read_cfl(directory / "a").item<std::complex<float>>(), std::complex<float>(2));
}

TEST(Cfl, RefusesHeadersThatAreWrong) {
  const TemporaryDirectory directory;
  write_bytes(directory / "a.cfl", "12345678");
  const auto expect_refused = [&](const std::string& header, const std::string& text) {
    write_bytes(directory / "a.hdr", header);
    expect_error<FormatError>([&] { read_cfl(directory / "a"); }, text);
  };
  expect_refused("", "has no line '# Dimensions'");
  expect_refused("1 1 1", "has no line '# Dimensions'");
  expect_refused("# Dimensions\n", "has no numbers below");
  expect_refused("# Dimensions\n1 x", "got '1 x', expected 1 to 16 positive numbers");
  expect_refused("# Dimensions\n0 1", "positive numbers");
  expect_refused("# Dimensions\n1.5 1", "positive numbers");
  expect_refused("# Dimensions\n-1 1", "positive numbers");
  expect_refused("# Dimensions\n1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "positive numbers");
  expect_refused("# Dimensions\n9223372036854775807 2", "announces an impossible shape");
  expect_refused("# Dimensions\n1000000000 1000",
                 "has the wrong size for its header: got 8 bytes, expected 8000000000000");
  expect_refused(std::string((1 << 20) + 1, ' '), "is too long for a header");
}

TEST(Cfl, NamesTheFileOfThePairThatIsMissing) {
  const TemporaryDirectory directory;
  expect_error<IoError>([&] { read_cfl(directory / "a.cfl"); },
                        "a.hdr] cannot be read: no such file");
  write_bytes(directory / "a.hdr", "# Dimensions\n1\n");
  expect_error<IoError>([&] { read_cfl(directory / "a.hdr"); },
                        "a.cfl] cannot be read: no such file");
}

TEST(Cfl, LeavesNothingBehindWhenItFails) {
  const TemporaryDirectory directory;
  const Tensor t = Tensor::ones({3}, DType::complex64);
  expect_error<ShapeError>(
      [&] {
        write_cfl(directory / "a", Tensor::zeros({0, 2}));
      },
      "expected at least one element");
  std::filesystem::create_directory(directory / "a.hdr");
  expect_error<IoError>([&] { write_cfl(directory / "a", t); }, "a.hdr] cannot be written");
  EXPECT_EQ(directory.names(), std::vector<std::string>{"a.hdr"});
}

}  // namespace
}  // namespace palimpsest
