// SPDX-License-Identifier: Apache-2.0
// The ISMRMRD library reads our files, and we read its files.
#include <hdf5.h>
#include <ismrmrd/dataset.h>
#include <ismrmrd/meta.h>
#include <ismrmrd/xml.h>

#include "io/files.hpp"
#include "io/scans.hpp"
#include "palimpsest/io/ismrmrd_images.hpp"
#include "support/expect_error.hpp"

namespace palimpsest {
namespace {

using testing::TemporaryDirectory;

TEST(Libismrmrd, ReadsOurScans) {
  const TemporaryDirectory directory;
  const RawScan scan = testing::some_scan();
  write_ismrmrd(directory / "a.h5", scan);
  ISMRMRD::Dataset dataset((directory / "a.h5").c_str(), "dataset", false);
  ASSERT_EQ(dataset.getNumberOfAcquisitions(), scan.readouts.size());
  for (std::size_t i = 0; i < scan.readouts.size(); ++i) {
    ISMRMRD::Acquisition acquisition;
    dataset.readAcquisition(static_cast<std::uint32_t>(i), acquisition);
    const Readout& readout = scan.readouts[i];
    EXPECT_EQ(acquisition.idx().kspace_encode_step_1, readout.step_1);
    EXPECT_EQ(acquisition.idx().kspace_encode_step_2, readout.step_2);
    EXPECT_EQ(acquisition.center_sample(), readout.center_sample);
    EXPECT_EQ(acquisition.isFlagSet(ISMRMRD::ISMRMRD_ACQ_IS_NOISE_MEASUREMENT),
              readout.has(ReadoutFlag::noise));
    EXPECT_TRUE(acquisition.isChannelActive(2));
    EXPECT_FALSE(acquisition.isChannelActive(3));
    ASSERT_EQ(static_cast<index_t>(acquisition.getNumberOfDataElements()),
              readout.n_coils * readout.n_samples);
    EXPECT_TRUE(std::equal(acquisition.data_begin(), acquisition.data_end(),
                           scan.samples.data<std::complex<float>>() + readout.first_sample));
  }
  std::string xml;
  dataset.readHeader(xml);
  ISMRMRD::IsmrmrdHeader header;
  ISMRMRD::deserialize(xml.c_str(), header);
  EXPECT_EQ(header.encoding.at(0).encodedSpace.matrixSize.x, 8);
  EXPECT_EQ(header.encoding.at(0).reconSpace.matrixSize.y, 6);
  EXPECT_EQ(header.encoding.at(0).encodingLimits.kspace_encoding_step_2->center, 2);
  EXPECT_EQ(header.acquisitionSystemInformation->receiverChannels.get(), 3);
}

TEST(Libismrmrd, ReadsOurImages) {
  const TemporaryDirectory directory;
  IsmrmrdImages images;
  images.header = "<ismrmrdHeader/>";
  images.data = Tensor::random_normal({2, 3, 1, 4, 5}, DType::complex64, {1, 5});
  images.heads.resize(2);
  images.heads[1].position_mm = {1, -2, 3.5F};
  images.heads[1].slice = 1;
  images.heads[1].attributes = {{"name", "value"}};
  write_ismrmrd_images(directory / "a.mrd", images);
  ISMRMRD::Dataset dataset((directory / "a.mrd").c_str(), "dataset", false);
  ASSERT_EQ(dataset.getNumberOfImages("image_0"), 2U);
  ISMRMRD::Image<std::complex<float>> image;
  dataset.readImage("image_0", 1, image);
  EXPECT_EQ(image.getMatrixSizeX(), 5);
  EXPECT_EQ(image.getNumberOfChannels(), 3);
  EXPECT_EQ(image.getPositionZ(), 3.5F);
  EXPECT_EQ(image.getSlice(), 1);
  ISMRMRD::MetaContainer meta;
  std::string attributes;
  image.getAttributeString(attributes);
  ISMRMRD::deserialize(attributes.c_str(), meta);
  EXPECT_STREQ(meta.as_str("name"), "value");
  ASSERT_EQ(image.getNumberOfDataElements(), 60U);
  EXPECT_TRUE(std::equal(image.begin(), image.end(), images.data.data<std::complex<float>>() + 60));
}

TEST(Libismrmrd, WritesImagesThatWeRead) {
  const TemporaryDirectory directory;
  {
    ISMRMRD::Dataset dataset((directory / "a.h5").c_str(), "dataset", true);
    for (int i = 0; i < 3; ++i) {
      ISMRMRD::Image<float> image(4, 3, 2, 1);
      image.setSlice(static_cast<std::uint16_t>(i));
      image.setFieldOfView(40, 30, 20);
      std::fill(image.begin(), image.end(), static_cast<float>(i));
      dataset.appendImage("image_1", image);
    }
  }
  const IsmrmrdImages images = read_ismrmrd_images(directory / "a.h5");
  EXPECT_EQ(images.series, "image_1");
  EXPECT_EQ(images.data.shape(), (Extents{3, 1, 2, 3, 4}));
  EXPECT_EQ(images.data.at<float>({2, 0, 1, 2, 3}), 2.0F);
  EXPECT_EQ(images.heads[2].slice, 2);
  EXPECT_EQ(images.heads[2].field_of_view_mm[0], 40.0F);
}

TEST(Libismrmrd, WritesScansInOtherGroupsThatAreNamed) {
  const TemporaryDirectory directory;
  {
    ISMRMRD::Dataset dataset((directory / "a.h5").c_str(), "second", true);
    dataset.writeHeader("<ismrmrdHeader/>");
    dataset.appendAcquisition(ISMRMRD::Acquisition(4, 1, 0));
  }
  for (const auto& read : {+[](const std::string& path) { read_ismrmrd(path); },
                           +[](const std::string& path) { read_ismrmrd_images(path); }}) {
    testing::expect_error<FormatError>(
        [&] { read(directory / "a.h5"); },
        "a.h5] is an HDF5 file without an ISMRMRD data set; it holds group second [data, xml]. Try "
        "h5copy -i FILE -o NEW.h5 -s 'second' -d dataset");
  }
}

// k-space and header as the files of fastMRI have them.
TEST(Libismrmrd, IsNotNeededToTellOtherFiles) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.h5";
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t complex = H5Tcreate(H5T_COMPOUND, 8);
  H5Tinsert(complex, "r", 0, H5T_NATIVE_FLOAT);
  H5Tinsert(complex, "i", 4, H5T_NATIVE_FLOAT);
  const hsize_t extents[4] = {2, 3, 4, 5};
  const hid_t space = H5Screate_simple(4, extents, nullptr), one = H5Screate(H5S_SCALAR);
  const hid_t text = H5Tcopy(H5T_C_S1);
  for (const auto& [name, type, extent] :
       {std::tuple("kspace", complex, space), std::tuple("ismrmrd_header", text, one),
        std::tuple("mask\n", H5T_NATIVE_UINT8, one)}) {
    H5Dclose(H5Dcreate2(file, name, type, extent, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  }
  H5Tclose(text);
  H5Sclose(one);
  H5Sclose(space);
  H5Tclose(complex);
  H5Fclose(file);
  testing::expect_error<FormatError>(
      [&] { read_ismrmrd(path); },
      "a.h5] is an HDF5 file without an ISMRMRD data set; it holds ismrmrd_header: text; kspace: "
      "complex64 (2, 3, 4, 5); mask?: uint8. Try to save its array as NPY.");
}

TEST(Libismrmrd, WritesScansThatWeRead) {
  const TemporaryDirectory directory;
  {
    ISMRMRD::Dataset dataset((directory / "a.h5").c_str(), "dataset", true);
    ISMRMRD::IsmrmrdHeader header;
    header.experimentalConditions.H1resonanceFrequency_Hz = 1;
    ISMRMRD::Encoding encoding;
    encoding.encodedSpace.matrixSize = {4, 2, 1};
    encoding.reconSpace.matrixSize = {4, 2, 1};
    encoding.encodedSpace.fieldOfView_mm = {200, 100, 5};
    encoding.reconSpace.fieldOfView_mm = {200, 100, 5};
    encoding.trajectory = ISMRMRD::TrajectoryType::CARTESIAN;
    header.encoding.push_back(encoding);
    std::ostringstream xml;
    ISMRMRD::serialize(header, xml);
    dataset.writeHeader(xml.str());
    for (std::uint16_t line = 0; line < 2; ++line) {
      ISMRMRD::Acquisition acquisition(4, 3, 2);
      acquisition.idx().kspace_encode_step_1 = line;
      acquisition.center_sample() = 2;
      for (std::uint16_t s = 0; s < 4; ++s) {
        for (std::uint16_t c = 0; c < 3; ++c) {
          acquisition.data(s, c) = {float(s), float(10 * c + line)};
        }
      }
      dataset.appendAcquisition(acquisition);
    }
  }
  const RawScan scan = read_ismrmrd(directory / "a.h5");
  EXPECT_EQ(scan.header.n_coils, 3);
  EXPECT_EQ(scan.readouts.at(1).n_trajectory_axes, 2);
  const Tensor kspace = cartesian_kspace(scan).kspace;
  EXPECT_EQ(kspace.shape(), (Extents{3, 1, 2, 4}));
  EXPECT_EQ(kspace.at<std::complex<float>>({2, 0, 1, 3}), std::complex<float>(3, 21));
}

}  // namespace
}  // namespace palimpsest
