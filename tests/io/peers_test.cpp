// SPDX-License-Identifier: Apache-2.0
// We read files of other programs, and they read ours; skipped if these programs are not installed.
#include <cstdlib>

#include "io/files.hpp"
#include "io/scans.hpp"
#include "palimpsest/io/cartesian.hpp"
#include "palimpsest/io/npy.hpp"
#include "palimpsest/io/png.hpp"
#include "support/python.hpp"

namespace palimpsest {
namespace {

using testing::counting;
using testing::TemporaryDirectory;

bool has_program(const std::string& name) {
  return std::system(("command -v " + name + " >/dev/null 2>&1").c_str()) == 0;
}

class NumPy : public ::testing::Test {
 protected:
  void SetUp() override {
    if (python_.empty()) GTEST_SKIP() << "NumPy is not installed";
  }
  /// Runs a program with `d`, the directory, and `np` defined.
  void run(const std::string& program) {
    testing::write_bytes(
        directory_ / "program.py",
        "import sys\nimport numpy as np\nd = " + ("'" + directory_.path() + "/'\n") + program);
    ASSERT_EQ(std::system((python_ + " " + directory_ / "program.py").c_str()), 0) << program;
  }
  std::string python_ = testing::python_with("numpy");
  TemporaryDirectory directory_;
};

TEST_F(NumPy, ReadsWhatIsWrittenHere) {
  std::string program =
      "same = lambda n, a: (np.load(d + n).dtype == a.dtype and "
      "np.array_equal(np.load(d + n), a)) or sys.exit(n)\n";
  for (const char* dtype : {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
                            "uint64", "float32", "float64", "complex64", "complex128"}) {
    const Tensor t =
        counting({2, 3, 4}, parse_dtype(dtype == std::string("bool") ? "bool" : dtype));
    const std::string name = dtype;
    write_npy(directory_ / (name + ".npy"), t);
    write_npy(directory_ / (name + "-f.npy"), t.permute({2, 1, 0}));
    program += "n = np.arange(24).reshape(2, 3, 4)\n";
    program += name == "bool"                ? "a = n % 2 == 1\n"
               : name.starts_with("complex") ? "a = (n + 1j * (0.5 - n)).astype('" + name + "')\n"
                                             : "a = n.astype('" + name + "')\n";
    program += "same('" + name + ".npy', a)\nsame('" + name + "-f.npy', a.T)\n";
  }
  write_npy(directory_ / "scalar.npy", Tensor::scalar(2.5));
  write_npy(directory_ / "empty.npy", Tensor::zeros({0, 3}));
  program += "same('scalar.npy', np.array(2.5))\nsame('empty.npy', np.zeros((0, 3)))\n";
  run(program);
}

TEST_F(NumPy, WritesWhatIsReadHere) {
  run("a = np.arange(24).reshape(2, 3, 4)\n"
      "for t in ['<i2', '>i2', '<u8', '>f4', '<f8', '>c8', '>c16', '|i1']:\n"
      "  np.save(d + t[1:] + ('b' if t[0] == '>' else 'l'), a.astype(t))\n"
      "  np.save(d + t[1:] + ('b' if t[0] == '>' else 'l') + 'f', np.asfortranarray(a.astype(t)))\n"
      "for v in [(1, 0), (2, 0), (3, 0)]:\n"
      "  with open(d + f'v{v[0]}.npy', 'wb') as f: np.lib.format.write_array(f, a, version=v)\n");
  const Tensor expected = Tensor::arange(24).reshape({2, 3, 4});
  for (const std::string name :
       {"i2l", "i2b", "u8l", "f4b", "f8l", "c8b", "c16b", "i1l", "i2lf", "i2bf", "u8lf", "f4bf",
        "f8lf", "c8bf", "c16bf", "i1lf", "v1", "v2", "v3"}) {
    const Tensor t = read_npy(directory_ / (name + ".npy"));
    EXPECT_TRUE(equal(t, expected.to(t.dtype()))) << name;
  }
}

class IsmrmrdTools : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_program("ismrmrd_generate_cartesian_shepp_logan")) {
      GTEST_SKIP() << "ismrmrd-tools is not installed";
    }
  }
  void generate(const std::string& options) {
    ASSERT_EQ(std::system(("ismrmrd_generate_cartesian_shepp_logan " + options + " -o " +
                           directory_ / "a.h5" + " >/dev/null 2>&1")
                              .c_str()),
              0);
  }
  TemporaryDirectory directory_;
};

TEST_F(IsmrmrdTools, TheirPhantomIsRead) {
  generate("-m 32 -c 3");
  const RawScan scan = read_ismrmrd(directory_ / "a.h5");
  EXPECT_EQ(scan.readouts.size(), 32u);
  EXPECT_EQ(scan.header.institution, "ISMRM Synthetic Imaging Lab");
  const CartesianKspace k = cartesian_kspace(scan);
  EXPECT_EQ(k.kspace.shape(), (Extents{3, 1, 32, 64}));
  EXPECT_EQ(k.recon_matrix, (std::array<index_t, 3>{32, 32, 1}));
  EXPECT_EQ(k.readout_oversampling, 2.0);
  EXPECT_TRUE(equal(k.mask, Tensor::ones({1, 32}, DType::bool_)));
  // The centre of k-space is the sum of the image, its largest sample.
  double largest = 0, centre = 0;
  const auto values = k.kspace.to_vector<std::complex<float>>();
  for (const auto& value : values) largest = std::max(largest, double(std::abs(value)));
  centre = std::abs(values[16 * 64 + 32]);
  EXPECT_GT(centre, 0.3 * largest);
}

TEST_F(IsmrmrdTools, NoiseCalibrationAndRepetitionsAreTakenApart) {
  generate("-m 32 -c 3 -a 2 -w 8 -C -n 0.1");
  const RawScan scan = read_ismrmrd(directory_ / "a.h5");
  const Tensor covariance = noise_covariance(scan);
  ASSERT_TRUE(covariance.defined());
  // Their noise has a standard deviation of 0.1 in each of the two parts.
  EXPECT_NEAR(covariance.at<std::complex<double>>({0, 0}).real(), 0.02, 0.015);
  const CartesianKspace first = cartesian_kspace(scan, {.repetition = 0});
  const auto sampled = first.mask.to_vector<bool>();
  EXPECT_EQ(std::count(sampled.begin(), sampled.end(), true), 20);
  EXPECT_TRUE(equal(cartesian_kspace(scan).mask, Tensor::ones({1, 32}, DType::bool_)));
  EXPECT_NO_THROW(cartesian_kspace(scan, {.prewhiten = true}));
}

TEST_F(IsmrmrdTools, TrajectoriesAreKept) {
  generate("-m 16 -c 2 -k");
  const RawScan scan = read_ismrmrd(directory_ / "a.h5");
  ASSERT_GT(scan.readouts.at(0).n_trajectory_axes, 0);
  EXPECT_EQ(scan.trajectory.numel(), 16 * 32 * scan.readouts[0].n_trajectory_axes);
}

TEST_F(IsmrmrdTools, TheirReconstructionReadsOurScans) {
  const Tensor kspace = testing::some_kspace({2, 1, 8, 16});
  RawScanHeader header = testing::some_header();
  header.recon.matrix = {8, 8, 1};
  write_ismrmrd(directory_ / "a.h5",
                cartesian_scan(kspace, Tensor::ones({1, 8}, DType::bool_), header));
  EXPECT_EQ(std::system(
                ("ismrmrd_recon_cartesian_2d " + directory_ / "a.h5" + " >/dev/null 2>&1").c_str()),
            0);
}

}  // namespace
}  // namespace palimpsest
