// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "io/files.hpp"
#include "io/scans.hpp"
#include "palimpsest/io/ismrmrd.hpp"
#include "palimpsest/io/ismrmrd_hdf5.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::expect_error;
using testing::read_bytes;
using testing::some_scan;
using testing::TemporaryDirectory;
using testing::write_bytes;

void expect_same(const Readout& a, const Readout& b) {
  EXPECT_EQ(a.flags, b.flags);
  EXPECT_EQ(a.n_samples, b.n_samples);
  EXPECT_EQ(a.n_coils, b.n_coils);
  EXPECT_EQ(a.center_sample, b.center_sample);
  EXPECT_EQ(a.discard_pre, b.discard_pre);
  EXPECT_EQ(a.discard_post, b.discard_post);
  EXPECT_EQ(a.step_1, b.step_1);
  EXPECT_EQ(a.step_2, b.step_2);
  EXPECT_EQ(a.average, b.average);
  EXPECT_EQ(a.slice, b.slice);
  EXPECT_EQ(a.contrast, b.contrast);
  EXPECT_EQ(a.phase, b.phase);
  EXPECT_EQ(a.repetition, b.repetition);
  EXPECT_EQ(a.set, b.set);
  EXPECT_EQ(a.segment, b.segment);
  EXPECT_EQ(a.encoding_space, b.encoding_space);
  EXPECT_EQ(a.sample_time_us, b.sample_time_us);
  EXPECT_EQ(a.n_trajectory_axes, b.n_trajectory_axes);
}

TEST(Ismrmrd, AScanComesBack) {
  const TemporaryDirectory directory;
  const RawScan scan = some_scan();
  write_ismrmrd(directory / "a.h5", scan);
  EXPECT_EQ(directory.names(), std::vector<std::string>{"a.h5"});
  const RawScan back = read_ismrmrd(directory / "a.h5");
  EXPECT_TRUE(equal(back.samples, scan.samples));
  EXPECT_FALSE(back.trajectory.defined());
  ASSERT_EQ(back.readouts.size(), scan.readouts.size());
  for (std::size_t i = 0; i < scan.readouts.size(); ++i) {
    expect_same(back.readouts[i], scan.readouts[i]);
    EXPECT_TRUE(equal(back.samples_of(i), scan.samples_of(i)));
  }
  EXPECT_EQ(back.header.n_coils, 3);
  EXPECT_EQ(back.header.encoded.matrix, (std::array<index_t, 3>{8, 6, 5}));
  EXPECT_EQ(back.header.institution, "Nowhere");
}

TEST(Ismrmrd, EveryFactOfAReadoutComesBack) {
  const TemporaryDirectory directory;
  RawScan scan;
  scan.samples = testing::some_kspace({2 * 3 + 1 * 2});
  scan.trajectory = Tensor::arange(3 * 2, DType::float32);
  Readout first;
  first.flags = (std::uint64_t{1} << 63) | 5;
  first.n_samples = 3;
  first.n_coils = 2;
  first.center_sample = 1;
  first.discard_pre = 1;
  first.discard_post = 2;
  first.step_1 = 65535;
  first.step_2 = 11;
  first.average = 12;
  first.slice = 13;
  first.contrast = 14;
  first.phase = 15;
  first.repetition = 16;
  first.set = 17;
  first.segment = 18;
  first.encoding_space = 1;
  first.sample_time_us = 2.5;
  first.n_trajectory_axes = 2;
  Readout second;
  second.n_samples = 2;
  second.n_coils = 1;
  second.first_sample = 6;
  scan.readouts = {first, second};
  scan.header.trajectory = "radial";
  write_ismrmrd(directory / "a.h5", scan);
  const RawScan back = read_ismrmrd(directory / "a.h5");
  ASSERT_EQ(back.readouts.size(), 2u);
  expect_same(back.readouts[0], first);
  expect_same(back.readouts[1], second);
  EXPECT_TRUE(equal(back.samples, scan.samples));
  EXPECT_TRUE(equal(back.trajectory, scan.trajectory));
  EXPECT_EQ(back.header.trajectory, "radial");
}

TEST(Ismrmrd, ManyReadoutsAreReadInSeveralBatches) {
  const TemporaryDirectory directory;
  const Tensor kspace = testing::some_kspace({2, 100, 100, 1});
  const RawScan scan =
      cartesian_scan(kspace, Tensor::ones({100, 100}, DType::bool_), testing::some_header());
  write_ismrmrd(directory / "a.h5", scan);
  EXPECT_TRUE(equal(cartesian_kspace(read_ismrmrd(directory / "a.h5")).kspace, kspace));
}

TEST(Ismrmrd, TheParserItselfReadsAGoodFile) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.h5";
  write_ismrmrd(path, some_scan());
  std::vector<unsigned char> memory(1 << 20);
  io_detail::Arena arena(memory.data(), memory.size());
  io_detail::RawFileResult result;
  io_detail::parse_raw_file(path, read_bytes(path).size(), {}, arena, result);
  EXPECT_TRUE(result.complete) << result.error;
  EXPECT_EQ(result.n_records, 16u);
}

TEST(Ismrmrd, TheParserKeepsToItsMemory) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.h5";
  write_ismrmrd(path, some_scan());
  for (const std::size_t size : {0u, 64u, 512u, 2000u, 6000u, 8000u}) {
    std::vector<unsigned char> memory(size);
    io_detail::Arena arena(memory.data(), memory.size());
    io_detail::RawFileResult result;
    io_detail::parse_raw_file(path, read_bytes(path).size(), {}, arena, result);
    EXPECT_FALSE(result.complete) << size;
    EXPECT_NE(std::string(result.error), "");
  }
}

TEST(Ismrmrd, RefusesWhatIsNoScan) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.h5";
  expect_error<IoError>([&] { read_ismrmrd(path); }, "a.h5] cannot be read: no such file");
  write_bytes(path, "");
  expect_error<FormatError>([&] { read_ismrmrd(path); },
                            "is not an HDF5 file: it lacks the signature");
  write_bytes(path, "\x89HDF\r\n\x1a\n" + std::string(1000, 'x'));
  expect_error<FormatError>([&] { read_ismrmrd(path); }, "it cannot be opened as HDF5");
  write_ismrmrd(path, some_scan());
  const std::string good = read_bytes(path);
  write_bytes(path, good.substr(0, good.size() - 1000));
  expect_error<FormatError>([&] { read_ismrmrd(path); }, "is damaged or no ISMRMRD file");
  std::string other_group = good;
  other_group.replace(other_group.find("dataset"), 7, "Dataset");
  write_bytes(path, other_group);
  expect_error<FormatError>([&] { read_ismrmrd(path); },
                            "a.h5] is an HDF5 file without an ISMRMRD data set; it holds group "
                            "Dataset [data, xml]. Try h5copy -i FILE -o NEW.h5 -s 'Dataset' -d "
                            "dataset, for its scan in the group 'Dataset'");
  std::string without_readouts = good;
  ASSERT_NE(good.find("xml\0", 0, 4), std::string::npos);
  without_readouts.replace(good.find("xml\0", 0, 4), 3, "XML");
  write_bytes(path, without_readouts);
  expect_error<FormatError>([&] { read_ismrmrd(path); },
                            "without an ISMRMRD data set; it holds group dataset [");
}

TEST(Ismrmrd, RefusesReadoutsOfAnotherLengthThanAnnounced) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.h5";
  const io_detail::HeadRecord head = [] {
    io_detail::HeadRecord result;
    result.number_of_samples = 4;
    result.active_channels = 2;
    return result;
  }();
  const std::vector<float> numbers(16);
  io_detail::AcquisitionRecord record = {head, {}, {15, numbers.data()}};
  RawScanHeader header;
  const auto write = [&](const std::string& xml) {
    std::string bytes;
    io_detail::build_raw_file("f", xml, {&record, 1}, [&](const void* image, std::size_t n) {
      bytes.assign(static_cast<const char*>(image), n);
    });
    write_bytes(path, bytes);
  };
  write(some_scan().header.xml + "<ismrmrdHeader/>");
  expect_error<FormatError>([&] { read_ismrmrd(path); }, "has no <encoding/encodedSpace");
  write("no xml");
  expect_error<FormatError>([&] { read_ismrmrd(path); }, "has a malformed XML header");
  const std::string xml = [&] {
    write_ismrmrd(path, some_scan());
    return read_ismrmrd(path).header.xml;
  }();
  write(xml);
  expect_error<FormatError>([&] { read_ismrmrd(path); },
                            "holds 15 numbers for readout 0, its header says 16");
  record.samples.length = 16;
  write(xml);
  EXPECT_EQ(read_ismrmrd(path).samples.numel(), 8);
  record.head.number_of_samples = 65535;
  write(xml);
  expect_error<FormatError>([&] { read_ismrmrd(path); }, "announces 131070 samples");
}

TEST(Ismrmrd, RefusesToWriteWhatTheFormatCannotHold) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.h5";
  expect_error<ValueError>([&] { write_ismrmrd(path, RawScan()); }, "has no readouts");
  RawScan scan = some_scan();
  scan.readouts[3].step_1 = 65536;
  expect_error<OverflowError>([&] { write_ismrmrd(path, scan); },
                              "readout 3 has step_1 65536, expected 0 to 65535");
  scan = some_scan();
  scan.readouts[2].first_sample = scan.samples.numel() - 1;
  expect_error<ValueError>([&] { write_ismrmrd(path, scan); }, "the array 'samples' does not hold");
  scan = some_scan();
  scan.readouts[2].n_trajectory_axes = 2;
  expect_error<ValueError>([&] { write_ismrmrd(path, scan); }, "the array 'trajectory' does not");
  scan = some_scan();
  scan.header.encoded.matrix[1] = 0;
  expect_error<ValueError>([&] { write_ismrmrd(path, scan); }, "header.encoded has 0 points over");
  scan = some_scan();
  scan.header.recon.field_of_view_mm[2] = NAN;
  expect_error<ValueError>([&] { write_ismrmrd(path, scan); },
                           "header.recon has 5 points over nan mm");
  expect_error<IoError>([&] { write_ismrmrd("/dev/full", some_scan()); },
                        "No space left on device");
  expect_error<IoError>([&] { write_ismrmrd(directory / "no/a.h5", some_scan()); },
                        "cannot be written: no such file or directory");
  EXPECT_TRUE(directory.names().empty());
}

}  // namespace
}  // namespace palimpsest
