// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/io/format.hpp"

#include "io/files.hpp"
#include "io/nifti_files.hpp"
#include "palimpsest/io/cfl.hpp"
#include "palimpsest/io/npy.hpp"
#include "palimpsest/io/png.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using testing::write_bytes;

TEST(Format, ContentDecides) {
  const testing::TemporaryDirectory directory;
  write_npy(directory / "a.png", Tensor::zeros({2, 2}));
  EXPECT_EQ(detect_format(directory / "a.png"), FileFormat::npy);
  write_png(directory / "b.npy", Tensor::zeros({2, 2}));
  EXPECT_EQ(detect_format(directory / "b.npy"), FileFormat::png);
  write_bytes(directory / "c.mrd", "\x89HDF\r\n\x1a\n....");
  EXPECT_EQ(detect_format(directory / "c.mrd"), FileFormat::ismrmrd);
  for (const int version : {1, 2}) {
    const auto bytes =
        testing::NiftiBytes(version).dims({1}).type(2).file(std::vector<std::uint8_t>{1});
    write_bytes(directory / "d", bytes);
    write_bytes(directory / "d.nii.gz", testing::gzipped(bytes));
    EXPECT_EQ(detect_format(directory / "d"), FileFormat::nifti);
    EXPECT_EQ(detect_format(directory / "d.nii.gz"), FileFormat::nifti);
  }
}

TEST(Format, APairOfBartIsKnownByAnyOfItsNames) {
  const testing::TemporaryDirectory directory;
  write_cfl(directory / "scan", Tensor::zeros({2, 2}));
  for (const char* name : {"scan", "scan.hdr", "scan.cfl"}) {
    EXPECT_EQ(detect_format(directory / name), FileFormat::cfl) << name;
  }
}

TEST(Format, NamesWhatItDoesNotKnow) {
  const testing::TemporaryDirectory directory;
  expect_error<IoError>([&] { detect_format(directory / "none.h5"); },
                        "none.h5] cannot be read: no such file");
  write_bytes(directory / "empty", "");
  expect_error<FormatError>([&] { detect_format(directory / "empty"); }, "is empty");
  write_bytes(directory / "text.txt", "hello");
  expect_error<FormatError>([&] { detect_format(directory / "text.txt"); },
                            "is in none of the formats known here");
  EXPECT_EQ(name_of(FileFormat::nifti), "NIfTI");
}

}  // namespace
}  // namespace palimpsest
