// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/io/cartesian.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "io/files.hpp"
#include "io/scans.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::checkerboard;
using testing::expect_error;
using testing::some_header;
using testing::some_kspace;
using testing::some_scan;
using testing::TemporaryDirectory;
using testing::write_bytes;
using cfloat = std::complex<float>;

/// A readout of one coil per row of numbers, along encoding step 1.
RawScan lines(const std::vector<std::vector<cfloat>>& rows, std::array<index_t, 3> matrix) {
  RawScan scan;
  scan.header.encoded.matrix = scan.header.recon.matrix = matrix;
  std::vector<cfloat> samples;
  for (const auto& row : rows) {
    Readout readout;
    readout.n_coils = 1;
    readout.n_samples = std::ssize(row);
    readout.center_sample = readout.n_samples / 2;
    readout.step_1 = std::ssize(scan.readouts);
    readout.first_sample = std::ssize(samples);
    samples.insert(samples.end(), row.begin(), row.end());
    scan.readouts.push_back(readout);
  }
  scan.samples = Tensor::from(samples);
  return scan;
}

std::vector<cfloat> sorted(const RawScan& scan, const CartesianOptions& options = {}) {
  return cartesian_kspace(scan, options).kspace.to_vector<cfloat>();
}

TEST(Cartesian, SortingUndoesTheMakingOfAScan) {
  for (const Extents& shape : {Extents{3, 5, 6, 8}, Extents{2, 7, 4, 1}, Extents{1, 1, 3, 5}}) {
    const Tensor kspace = some_kspace(shape);
    const Tensor mask = checkerboard(shape[1], shape[2]);
    const CartesianKspace back = cartesian_kspace(cartesian_scan(kspace, mask, some_header()));
    EXPECT_TRUE(equal(back.mask, mask));
    EXPECT_EQ(back.kspace.shape(), shape);
    for (index_t z = 0; z < shape[1]; ++z) {
      for (index_t y = 0; y < shape[2]; ++y) {
        const Tensor expected = mask.at<bool>({z, y})
                                    ? kspace(all, z, y, all).clone()
                                    : Tensor::zeros({shape[0], shape[3]}, DType::complex64);
        EXPECT_TRUE(equal(back.kspace(all, z, y, all).clone(), expected)) << z << "," << y;
      }
    }
  }
}

TEST(SortedKspace, IsThatOfMemoryWhateverIsReadAtATime) {
  const TemporaryDirectory directory;
  RawScan scan = cartesian_scan(some_kspace({3, 5, 6, 8}), checkerboard(5, 6), some_header());
  add_noise_readout(scan, Tensor::random_normal({3, 64}, DType::complex64, {1, 0}));
  // Some rows are measured several times, out of order.
  for (std::size_t i = 1; i < scan.readouts.size(); i += 3) {
    scan.readouts.push_back(scan.readouts[scan.readouts.size() - 1 - i]);
  }
  write_ismrmrd(directory / "a.h5", scan);
  const RawScan read = read_ismrmrd(directory / "a.h5");
  const RawScanFile file(directory / "a.h5");
  ASSERT_EQ(file.contents().readouts.size(), read.readouts.size());
  EXPECT_EQ(file.contents().header.n_coils, read.header.n_coils);
  for (const bool prewhiten : {false, true}) {
    const CartesianOptions options{.prewhiten = prewhiten};
    const CartesianKspace expected = cartesian_kspace(read, options);
    for (const index_t batch : {index_t{1}, index_t{1} << 21, index_t{1} << 26}) {
      for (const bool in_memory : {false, true}) {
        const MemoryScope memory;
        const Tensor kspace =
            sorted_kspace(
                file, options,
                {.in_memory = in_memory, .folder = directory.path(), .batch_bytes = batch})
                .map();
        const index_t result = in_memory ? kspace.nbytes() : 0;
        EXPECT_LE(static_cast<index_t>(memory.peak_bytes()),
                  result + sorting_bytes(file, options, batch).tensors);
        EXPECT_LE(file.reading_bytes(cartesian_layout(file).readouts, batch),
                  std::max<index_t>(batch, 4096));
        if (!prewhiten) {
          EXPECT_TRUE(equal(kspace, expected.kspace));
        } else {
          EXPECT_TRUE(allclose(kspace, expected.kspace, 1e-4, 1e-3));
        }
      }
    }
  }
  // Files of results have no names.
  EXPECT_EQ(directory.names(), std::vector<std::string>{"a.h5"});
}

TEST(CartesianLayout, ComesFromHeadersAlone) {
  const TemporaryDirectory directory;
  RawScan scan = some_scan();
  scan.samples.fill(std::complex<float>(NAN));
  write_ismrmrd(directory / "a.h5", scan);
  const RawScanFile file(directory / "a.h5");
  const CartesianLayout layout = cartesian_layout(file);
  const CartesianKspace expected = cartesian_kspace(scan);
  EXPECT_EQ(layout.grid, expected.kspace.shape());
  EXPECT_EQ(layout.readout_oversampling, expected.readout_oversampling);
  EXPECT_EQ(layout.recon_matrix, expected.recon_matrix);
  EXPECT_TRUE(layout.has_full_readouts);
  EXPECT_TRUE(equal(layout.measured, expected.mask.unsqueeze(2).contiguous()));
  expect_error<FormatError>([&] { sorted_kspace(file, {}, {.folder = directory.path()}); },
                            "NaN or infinite");
  expect_error<IoError>([&] { sorted_kspace(file, {}, {.folder = directory / "none"}); },
                        "cannot be made");
}

TEST(SortedKspace, WhatIsWrongWithAScanIsSaid) {
  const TemporaryDirectory directory;
  RawScan scan = some_scan();
  scan.header.trajectory = "spiral";
  write_ismrmrd(directory / "spiral.h5", scan);
  expect_error<NotSupported>([&] { sorted_kspace(RawScanFile(directory / "spiral.h5")); },
                             "cartesian");
  scan = some_scan();
  std::erase_if(scan.readouts, [](const Readout& r) { return r.has(ReadoutFlag::noise); });
  write_ismrmrd(directory / "quiet.h5", scan);
  const RawScanFile file(directory / "quiet.h5");
  expect_error<ValueError>(
      [&] { sorted_kspace(file, {.prewhiten = true}, {.folder = directory.path()}); },
      "noise readouts");
  expect_error<ValueError>([&] { cartesian_layout(file, {.prewhiten = true}); }, "noise readouts");
  expect_error<ValueError>([&] { sorted_kspace(file, {.slice = 9}); }, "slice 9");
  write_bytes(directory / "text.h5", "no HDF5");
  expect_error<FormatError>([&] { RawScanFile(directory / "text.h5"); }, "HDF5");
}

TEST(ScratchArray, HoldsWhatIsWritten) {
  const TemporaryDirectory directory;
  ScratchArray scratch(directory.path(), {3, 4}, DType::float32);
  const float values[] = {1, 2, 3};
  scratch.write(5, values, 3);
  float back[4] = {};
  scratch.read(4, back, 4);
  EXPECT_EQ(std::vector<float>(back, back + 4), (std::vector<float>{0, 1, 2, 3}));
  const ScratchArray moved = std::move(scratch);
  EXPECT_EQ(moved.map().to_vector<float>(),
            (std::vector<float>{0, 0, 0, 0, 0, 1, 2, 3, 0, 0, 0, 0}));
  EXPECT_TRUE(directory.names().empty());
  EXPECT_EQ(ScratchArray(directory.path(), {0, 4}, DType::float32).map().numel(), 0);
}

TEST(ScratchArray, NothingIsWrittenOrReadBehindItsEnd) {
  const TemporaryDirectory directory;
  ScratchArray file(directory.path(), {3, 4}, DType::float32);
  ScratchArray memory = ScratchArray::in_memory({3, 4}, DType::float32);
  float values[13] = {};
  for (ScratchArray* array : {&file, &memory}) {
    array->write(0, values, 12);
    array->write(12, values, 0);
    for (const auto& [first, count] :
         std::vector<std::pair<index_t, index_t>>{{0, 13}, {12, 1}, {-1, 1}, {3, -1}, {13, 0}}) {
      expect_error<InternalError>([&] { array->write(first, values, count); }, "some of 12");
      expect_error<InternalError>([&] { array->read(first, values, count); }, "some of 12");
    }
  }
}

TEST(Cartesian, TheFactsComeFromTheHeader) {
  const CartesianKspace k = cartesian_kspace(some_scan());
  EXPECT_EQ(k.readout_oversampling, 2.0);
  EXPECT_EQ(k.recon_matrix, (std::array<index_t, 3>{4, 6, 5}));
}

TEST(Cartesian, RepeatedReadoutsAreAveraged) {
  RawScan scan = lines({{1, 2}, {3, 6}, {5, 5}}, {2, 2, 1});
  scan.readouts[1].step_1 = 0;
  scan.readouts[1].average = 1;
  scan.readouts[2].step_1 = 1;
  EXPECT_EQ(sorted(scan), (std::vector<cfloat>{2, 4, 5, 5}));
}

TEST(Cartesian, RepetitionsAreAveragedOrChosen) {
  RawScan scan = lines({{1, 2}, {3, 6}}, {2, 1, 1});
  scan.readouts[1].step_1 = 0;
  scan.readouts[1].repetition = 1;
  EXPECT_EQ(sorted(scan), (std::vector<cfloat>{2, 4}));
  EXPECT_EQ(sorted(scan, {.repetition = 1}), (std::vector<cfloat>{3, 6}));
}

TEST(Cartesian, SlicesContrastsPhasesAndSetsAreChosen) {
  RawScan scan = lines({{1}, {2}, {3}, {4}, {5}}, {1, 1, 1});
  for (Readout& readout : scan.readouts) readout.step_1 = 0;
  scan.readouts[1].slice = 1;
  scan.readouts[2].contrast = 1;
  scan.readouts[3].phase = 1;
  scan.readouts[4].set = 1;
  const CartesianOptions first{.slice = 0, .contrast = 0, .phase = 0, .set = 0};
  EXPECT_EQ(sorted(scan, first), (std::vector<cfloat>{1}));
  // A name that leaves a single image is enough.
  EXPECT_EQ(sorted(scan, {.slice = 1}), (std::vector<cfloat>{2}));
  EXPECT_EQ(sorted(scan, {.contrast = 1}), (std::vector<cfloat>{3}));
  EXPECT_EQ(sorted(scan, {.phase = 1}), (std::vector<cfloat>{4}));
  EXPECT_EQ(sorted(scan, {.set = 1}), (std::vector<cfloat>{5}));
  expect_error<ValueError>([&] { sorted(scan, {.slice = 2}); },
                           "no readouts of slice 2: the scan has slices 0 to 1");
}

// Previously the first slice was taken without a message.
TEST(Cartesian, OfSeveralImagesNoneIsChosenSilently) {
  using Counter = index_t Readout::*;
  const std::vector<std::pair<Counter, std::string>> counters = {{&Readout::slice, "slice"},
                                                                 {&Readout::contrast, "contrast"},
                                                                 {&Readout::phase, "phase"},
                                                                 {&Readout::set, "set"}};
  const TemporaryDirectory directory;
  for (const auto& [counter, name] : counters) {
    RawScan scan = lines({{1}, {2}}, {1, 1, 1});
    scan.readouts[1].step_1 = 0;
    scan.readouts[0].*counter = 3;
    scan.readouts[1].*counter = 5;
    const std::string text = "[scan] which " + name + "? It has 2, from 3 to 5";
    expect_error<ValueError>([&] { cartesian_kspace(scan); }, text);
    write_ismrmrd(directory / "a.h5", scan);
    const RawScanFile file(directory / "a.h5");
    expect_error<ValueError>([&] { sorted_kspace(file, {}, {.folder = directory.path()}); }, text);
    // A single image need not be named, whatever its number.
    scan.readouts[1].*counter = 3;
    EXPECT_EQ(sorted(scan), (std::vector<cfloat>{1.5}));
  }
}

TEST(Cartesian, ContentsAreTheCountersOfImagingReadouts) {
  RawScan scan = lines({{1}, {2}, {3}, {4}, {5}}, {1, 8, 1});
  scan.header.calibration_mode = "separate";
  scan.readouts[0].slice = 4;
  scan.readouts[1].repetition = 2;
  scan.readouts[1].average = 1;
  scan.readouts[2].segment = 7;
  scan.readouts[3].set_flag(ReadoutFlag::calibration);
  scan.readouts[3].slice = 9;
  scan.readouts[4].set_flag(ReadoutFlag::noise);
  const ScanContents contents = contents_of(scan);
  EXPECT_EQ(contents.slices, (std::vector<index_t>{0, 4}));
  EXPECT_EQ(contents.repetitions, (std::vector<index_t>{0, 2}));
  EXPECT_EQ(contents.averages, (std::vector<index_t>{0, 1}));
  EXPECT_EQ(contents.segments, (std::vector<index_t>{0, 7}));
  EXPECT_EQ(contents.contrasts, (std::vector<index_t>{0}));
  EXPECT_EQ(contents.imaging_readouts, 3);
  EXPECT_EQ(contents.calibration_readouts, 1);
  EXPECT_EQ(contents.separate_calibration_readouts, 1);
  EXPECT_EQ(contents.noise_readouts, 1);
}

TEST(Cartesian, SeparateCalibrationLinesAreSortedWhenAskedFor) {
  RawScan scan = lines({{1}, {2}, {3}, {4}}, {1, 4, 1});
  scan.header.calibration_mode = "external";
  for (const std::size_t i : {1U, 2U}) {
    scan.readouts[i].set_flag(ReadoutFlag::calibration);
    scan.readouts[i].contrast = 1;  // ignored
  }
  EXPECT_EQ(sorted(scan), (std::vector<cfloat>{1, 0, 0, 4}));
  EXPECT_EQ(sorted(scan, {.calibration = true}), (std::vector<cfloat>{0, 2, 3, 0}));
  scan.readouts[2].slice = 1;
  EXPECT_EQ(sorted(scan, {.slice = 1, .calibration = true}), (std::vector<cfloat>{0, 0, 3, 0}));
  expect_error<ValueError>([&] { sorted(scan, {.slice = 2, .calibration = true}); },
                           "no separate calibration lines");
}

TEST(Cartesian, TheLimitsCentreIsTheCentreOfTheMatrix) {
  RawScan scan = lines({{1}, {2}}, {1, 6, 1});
  scan.header.step_1_limit = EncodingLimit{0, 1, 1};
  EXPECT_EQ(sorted(scan), (std::vector<cfloat>{0, 0, 1, 2, 0, 0}));
  scan.header.step_1_limit = EncodingLimit{0, 1, 5};
  expect_error<FormatError>([&] { sorted(scan); },
                            "kspace_encode_step_1 0, which lies at -2 of the encoded matrix, "
                            "expected 0 to 5");
}

TEST(Cartesian, PartialEchoesArePlacedByTheirCentre) {
  RawScan scan = lines({{1, 2, 3}}, {6, 1, 1});
  scan.readouts[0].center_sample = 0;
  EXPECT_EQ(sorted(scan), (std::vector<cfloat>{0, 0, 0, 1, 2, 3}));
  scan.readouts[0].center_sample = 2;
  EXPECT_EQ(sorted(scan), (std::vector<cfloat>{0, 1, 2, 3, 0, 0}));
  scan.readouts[0].discard_pre = 1;
  EXPECT_EQ(sorted(scan), (std::vector<cfloat>{0, 0, 2, 3, 0, 0}));
  scan.header.encoded.matrix[0] = 1;
  expect_error<FormatError>([&] { sorted(scan); },
                            "a readout of 2 samples with its centre at 1 does not fit");
}

TEST(Cartesian, ReversedReadoutsAreTurned) {
  RawScan scan = lines({{1, 2, 3, 4}}, {4, 1, 1});
  scan.readouts[0].set_flag(ReadoutFlag::reverse);
  EXPECT_EQ(sorted(scan), (std::vector<cfloat>{4, 3, 2, 1}));
  // The echo is at the sample with value 2; sample 1 is dropped.
  scan.header.encoded.matrix[0] = 8;
  scan.readouts[0].center_sample = 1;
  scan.readouts[0].discard_pre = 1;
  EXPECT_EQ(sorted(scan), (std::vector<cfloat>{0, 0, 4, 3, 2, 0, 0, 0}));
}

TEST(Cartesian, OnlyImagingReadoutsCount) {
  RawScan scan = lines({{1}, {2}}, {1, 2, 1});
  for (const ReadoutFlag flag :
       {ReadoutFlag::noise, ReadoutFlag::navigation, ReadoutFlag::phase_correction,
        ReadoutFlag::dummy, ReadoutFlag::phase_stabilization}) {
    scan.readouts[1].flags = 0;
    scan.readouts[1].set_flag(flag);
    EXPECT_EQ(sorted(scan), (std::vector<cfloat>{1, 0})) << static_cast<int>(flag);
  }
  scan.readouts[1].flags = 0;
  scan.readouts[1].encoding_space = 1;
  EXPECT_EQ(sorted(scan), (std::vector<cfloat>{1, 0}));
  scan.readouts[0].set_flag(ReadoutFlag::noise);
  expect_error<FormatError>([&] { sorted(scan); }, "it has no imaging readouts");
}

TEST(Cartesian, CalibrationLinesCountWhereTheyAreOnTheGrid) {
  RawScan scan = lines({{1}, {2}}, {1, 2, 1});
  scan.readouts[1].set_flag(ReadoutFlag::calibration);
  for (const char* mode : {"", "embedded", "interleaved"}) {
    scan.header.calibration_mode = mode;
    EXPECT_EQ(sorted(scan), (std::vector<cfloat>{1, 2})) << mode;
  }
  scan.header.calibration_mode = "separate";
  EXPECT_EQ(sorted(scan), (std::vector<cfloat>{1, 0}));
  scan.readouts[1].set_flag(ReadoutFlag::calibration_and_imaging);
  EXPECT_EQ(sorted(scan), (std::vector<cfloat>{1, 2}));
}

TEST(Cartesian, RefusesScansThatItCannotSort) {
  RawScan scan = some_scan();
  scan.header.trajectory = "spiral";
  expect_error<NotSupported>([&] { sorted(scan); }, "its trajectory is 'spiral'");
  scan = some_scan();
  scan.readouts[1].n_coils = 2;
  expect_error<FormatError>([&] { sorted(scan); }, "readout 1 has 2 coils, expected 3");
  scan = some_scan();
  scan.header.encoded.matrix = {65535, 65535, 65535};
  expect_error<FormatError>([&] { sorted(scan); }, "samples were measured");
}

TEST(Cartesian, RefusesToMakeScansOfWrongArrays) {
  const Tensor kspace = some_kspace({1, 2, 3, 4});
  expect_error<DTypeError>(
      [&] { cartesian_scan(kspace.to(DType::complex128), checkerboard(2, 3), {}); },
      "got k-space complex128 and mask bool");
  expect_error<ShapeError>([&] { cartesian_scan(kspace, checkerboard(3, 2), {}); },
                           "expected (coil, kz, ky, kx) and (kz, ky)");
  const Tensor long_axis = Tensor::zeros({1, 1, 1, 65536}, DType::complex64);
  expect_error<OverflowError>([&] { cartesian_scan(long_axis, checkerboard(1, 1), {}); },
                              "expected axes of 1 to 65535");
}

/// Noise of 3 correlated coils.
Tensor leaking_noise(index_t n_samples, std::uint64_t seed) {
  const Tensor white = Tensor::random_normal({3, n_samples}, DType::complex64, RandomKey{seed});
  Tensor mixed = white.clone();
  const cfloat* w = white.data<cfloat>();
  auto* m = mixed.mutable_data<cfloat>();
  for (index_t s = 0; s < n_samples; ++s) {
    m[n_samples + s] = 3.0f * w[n_samples + s] + cfloat(0, 2) * w[s];
    m[2 * n_samples + s] = 0.5f * w[2 * n_samples + s] - w[n_samples + s];
  }
  return mixed;
}

TEST(Prewhitening, MakesTheCovarianceTheIdentity) {
  RawScan scan = cartesian_scan(some_kspace({3, 1, 2, 4}), checkerboard(1, 2), some_header());
  EXPECT_FALSE(noise_covariance(scan).defined());
  const Tensor noise = leaking_noise(500, 1);
  add_noise_readout(scan, noise.narrow(1, 0, 200));
  add_noise_readout(scan, noise.narrow(1, 200, 300));
  RawScan whitened;
  add_noise_readout(whitened, prewhitened(noise, noise_covariance(scan)));
  EXPECT_TRUE(allclose(noise_covariance(whitened), Tensor::eye(3, DType::complex128), 1e-5, 1e-5));
  const CartesianKspace plain = cartesian_kspace(scan);
  const CartesianKspace white = cartesian_kspace(scan, {.prewhiten = true});
  EXPECT_TRUE(equal(white.kspace, prewhitened(plain.kspace, noise_covariance(scan))));
  EXPECT_TRUE(equal(white.mask, plain.mask));
}

TEST(Prewhitening, RefusesNoiseThatSaysNothing) {
  RawScan scan = cartesian_scan(some_kspace({2, 1, 1, 4}), checkerboard(1, 1), some_header());
  expect_error<ValueError>([&] { sorted(scan, {.prewhiten = true}); }, "Try without prewhitening");
  add_noise_readout(scan, Tensor::ones({2, 8}, DType::complex64));
  expect_error<ValueError>([&] { sorted(scan, {.prewhiten = true}); },
                           "is not positive definite at coil 1");
  add_noise_readout(scan, Tensor::ones({3, 8}, DType::complex64));
  expect_error<FormatError>([&] { noise_covariance(scan); },
                            "noise readout 2 has 3 coils, expected 2");
  expect_error<ShapeError>(
      [&] {
        add_noise_readout(scan, Tensor::ones({3, 8}));
      },
      "expected complex64 (coil, sample)");
  expect_error<ShapeError>(
      [&] {
        prewhitened(Tensor::ones({2, 3}, DType::complex64), Tensor::eye(3, DType::complex128));
      },
      "complex128 (coil, coil)");
}

}  // namespace
}  // namespace palimpsest
