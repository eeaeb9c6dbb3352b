// SPDX-License-Identifier: Apache-2.0
// Damaged files of every format: each is read, or refused with an IoError.
#include "io/files.hpp"
#include "io/nifti_files.hpp"
#include "io/scans.hpp"
#include "palimpsest/io/cfl.hpp"
#include "palimpsest/io/format.hpp"
#include "palimpsest/io/ismrmrd_header.hpp"
#include "palimpsest/io/nifti.hpp"
#include "palimpsest/io/npy.hpp"
#include "palimpsest/io/png.hpp"

namespace palimpsest {
namespace {

using testing::counting;
using testing::expect_survives_damage;
using testing::read_bytes;
using testing::TemporaryDirectory;
using testing::write_bytes;

constexpr int kTries = 2000;
// Each try takes a process.
constexpr int kScanTries = 400;

TEST(Damage, Npy) {
  const TemporaryDirectory directory;
  write_npy(directory / "a", counting({5, 7}, DType::complex64));
  expect_survives_damage(read_bytes(directory / "a"), directory / "b", 128, kTries, read_npy);
}

TEST(Damage, CflHeaders) {
  const TemporaryDirectory directory;
  write_cfl(directory / "a", counting({5, 7}, DType::complex64));
  write_bytes(directory / "b.cfl", read_bytes(directory / "a.cfl"));
  expect_survives_damage(read_bytes(directory / "a.hdr"), directory / "b.hdr", 30, kTries,
                         read_cfl);
}

TEST(Damage, CflElements) {
  const TemporaryDirectory directory;
  write_cfl(directory / "a", counting({5, 7}, DType::complex64));
  write_bytes(directory / "b.hdr", read_bytes(directory / "a.hdr"));
  expect_survives_damage(read_bytes(directory / "a.cfl"), directory / "b.cfl", 64, kTries,
                         read_cfl);
}

TEST(Damage, Nifti) {
  const TemporaryDirectory directory;
  for (const int version : {1, 2}) {
    const std::string good =
        testing::NiftiBytes(version).dims({4, 5, 6}).type(4).scaling(2, 1).file(
            std::vector<std::int16_t>(120, 3));
    expect_survives_damage(good, directory / "a.nii", 348, kTries, read_nifti);
  }
}

TEST(Damage, CompressedNifti) {
  const TemporaryDirectory directory;
  std::vector<float> voxels(1000);
  for (std::size_t i = 0; i < voxels.size(); ++i) voxels[i] = float(i * i % 977);
  const std::string good =
      testing::gzipped(testing::NiftiBytes(1).dims({10, 10, 10}).type(16).file(voxels));
  expect_survives_damage(good, directory / "a.nii.gz", 100, kTries, read_nifti);
}

TEST(Damage, Png) {
  const TemporaryDirectory directory;
  write_png(directory / "a", counting({20, 30}, DType::uint16), {.bits = 16});
  expect_survives_damage(read_bytes(directory / "a"), directory / "b", 40, kTries, read_png);
}

TEST(Damage, DetectionOfTheFormat) {
  const TemporaryDirectory directory;
  write_npy(directory / "a", counting({5, 7}, DType::complex64));
  expect_survives_damage(read_bytes(directory / "a"), directory / "b", 6, kTries, detect_format);
}

TEST(Damage, XmlHeaders) {
  const TemporaryDirectory directory;
  const std::string good = io_detail::make_ismrmrd_header(testing::some_header());
  expect_survives_damage(good, directory / "b", 400, kTries, [](const std::string& path) {
    io_detail::parse_ismrmrd_header(path, read_bytes(path));
  });
}

void read_and_sort(const std::string& path) {
  const RawScan scan = read_ismrmrd(path);
  try {
    cartesian_kspace(scan);
  } catch (const NotSupported&) {
    // The damage changed the trajectory's name.
  } catch (const ValueError&) {
    // The damage changed the slice's number.
  }
}

TEST(Damage, IsmrmrdAnywhere) {
  const TemporaryDirectory directory;
  write_ismrmrd(directory / "a", testing::some_scan());
  const std::string good = read_bytes(directory / "a");
  // Superblock, groups and dataset types lie in the first 4 KiB and behind the header.
  expect_survives_damage(good, directory / "b", 4096, kScanTries, read_and_sort);
}

TEST(Damage, IsmrmrdCutAtManyPlaces) {
  const TemporaryDirectory directory;
  write_ismrmrd(directory / "a", testing::some_scan());
  const std::string good = read_bytes(directory / "a");
  for (std::size_t i = 0; i < 40; ++i) {
    write_bytes(directory / "b", good.substr(0, i * good.size() / 40));
    EXPECT_THROW(read_and_sort(directory / "b"), FormatError) << i;
  }
}

TEST(Damage, IsmrmrdWithRangesOfZerosAndOnes) {
  const TemporaryDirectory directory;
  write_ismrmrd(directory / "a", testing::some_scan());
  const std::string good = read_bytes(directory / "a");
  for (const char filling : {'\0', '\xff'}) {
    for (std::size_t at = 0; at + 64 <= good.size(); at += good.size() / 25) {
      std::string bad = good;
      bad.replace(at, 64, 64, filling);
      write_bytes(directory / "b", bad);
      try {
        read_and_sort(directory / "b");
      } catch (const IoError&) {
      }
    }
  }
}

}  // namespace
}  // namespace palimpsest
