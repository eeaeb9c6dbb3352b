// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/io/nifti.hpp"

#include "io/files.hpp"
#include "io/nifti_files.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using testing::gzipped;
using testing::NiftiBytes;
using testing::TemporaryDirectory;
using testing::write_bytes;

class Nifti : public ::testing::Test {
 protected:
  NiftiImage read(const std::string& bytes) {
    write_bytes(directory_ / "a.nii", bytes);
    return read_nifti(directory_ / "a.nii");
  }
  void expect_refused(const std::string& bytes, const std::string& text) {
    expect_error<FormatError>([&] { read(bytes); }, text);
  }
  TemporaryDirectory directory_;
};

TEST_F(Nifti, BothVersionsBothByteOrdersPlainAndCompressed) {
  const std::vector<std::int16_t> voxels = {1, 2, 3, 4, 5, -6};
  for (const int version : {1, 2}) {
    for (const bool swapped : {false, true}) {
      const std::string bytes = NiftiBytes(version, swapped)
                                    .dims({3, 2, 1, 1})
                                    .type(4)
                                    .spacing(0.5, 2, 3)
                                    .description("a head")
                                    .file(voxels);
      for (const std::string& file : {bytes, gzipped(bytes)}) {
        const NiftiImage image = read(file);
        EXPECT_EQ(image.data.shape(), (Extents{1, 2, 3})) << version << swapped;
        EXPECT_EQ(image.data.to_vector<std::int16_t>(), voxels);
        EXPECT_EQ(image.spacing_mm, (std::array<double, 3>{3, 2, 0.5}));
        EXPECT_EQ(image.description, "a head");
      }
    }
  }
}

TEST_F(Nifti, EveryNumberType) {
  const auto check = [&]<class T>(int code, const std::vector<T>& voxels) {
    const auto bytes = NiftiBytes(1).dims({2, 1, 1}).type(code).file(voxels);
    EXPECT_EQ(read(bytes).data.template to_vector<T>(), voxels) << code;
  };
  check(2, std::vector<std::uint8_t>{0, 255});
  check(256, std::vector<std::int8_t>{-128, 127});
  check(512, std::vector<std::uint16_t>{0, 65535});
  check(8, std::vector<std::int32_t>{-5, 1 << 30});
  check(768, std::vector<std::uint32_t>{0, 1u << 31});
  check(1024, std::vector<std::int64_t>{-1, 1ll << 60});
  check(1280, std::vector<std::uint64_t>{0, 1ull << 63});
  check(16, std::vector<float>{0.5f, -1});
  check(64, std::vector<double>{0.1, -1e300});
  check(32, std::vector<std::complex<float>>{{1, 2}, {3, -4}});
  check(1792, std::vector<std::complex<double>>{{1, 2}, {3, -4}});
}

TEST_F(Nifti, ScalingIsApplied) {
  const auto small = read(NiftiBytes(1).dims({2, 1, 1}).type(4).scaling(0.5, 10).file(
      std::vector<std::int16_t>{-2, 4}));
  EXPECT_EQ(small.data.dtype(), DType::float32);
  EXPECT_EQ(small.data.to_vector<float>(), (std::vector<float>{9, 12}));
  const auto large = read(NiftiBytes(2).dims({2, 1, 1}).type(8).scaling(1, -1).file(
      std::vector<std::int32_t>{1 << 30, 0}));
  EXPECT_EQ(large.data.to_vector<double>(), (std::vector<double>{(1 << 30) - 1, -1}));
  const auto complex = read(NiftiBytes(1).dims({1, 1, 1}).type(32).scaling(2, 1).file(
      std::vector<std::complex<float>>{{1, 2}}));
  EXPECT_EQ(complex.data.to_vector<std::complex<float>>()[0], std::complex<float>(3, 5));
  const auto plain =
      read(NiftiBytes(1).dims({1, 1, 1}).type(4).scaling(0, 7).file(std::vector<std::int16_t>{3}));
  EXPECT_EQ(plain.data.dtype(), DType::int16);
}

TEST_F(Nifti, AxesBeyondTheThirdComeFirst) {
  const std::vector<std::uint8_t> voxels(24, 1);
  EXPECT_EQ(read(NiftiBytes(1).dims({4, 3, 1, 2, 1}).type(2).file(voxels)).data.shape(),
            (Extents{2, 1, 3, 4}));
  EXPECT_EQ(read(NiftiBytes(1).dims({8, 3}).type(2).file(voxels)).data.shape(), (Extents{3, 8}));
}

TEST_F(Nifti, UnitsBecomeMillimetres) {
  const std::vector<std::uint8_t> voxel = {1};
  const auto spacing = [&](int units) {
    return read(NiftiBytes(2).dims({1, 1, 1}).type(2).spacing(-2, 2, 0).units(units).file(voxel))
        .spacing_mm;
  };
  EXPECT_EQ(spacing(2), (std::array<double, 3>{1, 2, 2}));
  EXPECT_EQ(spacing(1)[2], 2000.0);
  EXPECT_DOUBLE_EQ(spacing(3)[2], 0.002);
}

TEST_F(Nifti, RefusesHeadersThatAreWrong) {
  const std::vector<float> voxels = {1};
  const auto good = [] { return NiftiBytes(1).dims({1, 1, 1}).type(16); };
  expect_refused("", "is truncated: it lacks 348 bytes");
  expect_refused(std::string(400, 'x'), "is not a NIfTI file");
  expect_refused(good().text(344, "ni1").file(voxels), "keeps its voxels in a second file");
  expect_refused(good().text(344, "xyz").file(voxels), "is not a NIfTI file");
  expect_refused(good().dims({}).file(voxels), "has 0 dimensions, expected 1 to 7");
  expect_refused(good().put<std::int16_t>(40, 8).file(voxels), "has 8 dimensions");
  expect_refused(good().dims({1, -1, 1}).file(voxels), "has extent -1 along its dimension 2");
  expect_refused(good().type(128).file(voxels), "holds voxels of NIfTI type 128");
  expect_refused(good().put<float>(108, 100).file(voxels), "puts its voxels at byte 100");
  expect_refused(good().put<float>(108, NAN).file(voxels), "puts its voxels at byte nan");
  expect_refused(good().scaling(NAN, 0).file(voxels), "scales its voxels by nan");
}

TEST_F(Nifti, RefusesSizesThatTheFileDoesNotHave) {
  const std::vector<float> voxels = {1, 2};
  const auto big = NiftiBytes(1).dims({30000, 30000, 30000}).type(16).file(voxels);
  expect_refused(big, "is truncated: its header announces 108000000000000 bytes");
  expect_refused(gzipped(big), "is truncated: its header announces 108000000000000 bytes");
  const auto huge = NiftiBytes(2).dims({1, 1, 1}).type(16).put<std::int64_t>(24, 1ll << 62);
  expect_refused(huge.file(voxels), "announces an impossible shape");
  expect_refused(NiftiBytes(1).dims({3, 1, 1}).type(16).file(voxels), "is truncated");
  expect_refused(gzipped(NiftiBytes(1).dims({3, 1, 1}).type(16).file(voxels)),
                 "is truncated: it lacks 4 bytes");
  expect_refused(NiftiBytes(1).dims({1, 1, 1}).type(16).file(std::vector<float>(1 << 20)),
                 "is much longer than its header says");
}

TEST_F(Nifti, RefusesDamagedCompression) {
  std::string bytes =
      gzipped(NiftiBytes(1).dims({100, 1, 1}).type(2).file(std::vector<std::uint8_t>(100, 7)));
  expect_refused(bytes.substr(0, bytes.size() - 9), "cannot be decompressed: it is truncated");
  bytes[bytes.size() - 6] ^= 1;  // the checksum
  expect_refused(bytes, "cannot be decompressed");
}

TEST_F(Nifti, NamesAFileThatIsNotThere) {
  expect_error<IoError>([&] { read_nifti(directory_ / "none.nii"); }, "no such file");
}

TEST_F(Nifti, ReadsAMeasuredHead) {
  const std::string path = "/usr/share/mricron/templates/ch2.nii.gz";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "mricron-data is not installed";
  const NiftiImage head = read_nifti(path);
  EXPECT_EQ(head.data.shape(), (Extents{181, 217, 181}));
  EXPECT_EQ(head.spacing_mm, (std::array<double, 3>{1, 1, 1}));
}

}  // namespace
}  // namespace palimpsest
