// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/fft/fft_wisdom.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "kernels/arrays.hpp"
#include "palimpsest/kernels/fft/fft.hpp"
#include "palimpsest/kernels/fft/fftw.hpp"

namespace palimpsest::testing {
namespace {

namespace fs = std::filesystem;

class Wisdom : public ::testing::Test {
 protected:
  Wisdom() : folder_(fs::path(::testing::TempDir()) / ("wisdom" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~Wisdom() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  static std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  static void write(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }

  fs::path folder_;
};

TEST_F(Wisdom, TheEnvironmentSaysWhereItIsKept) {
  const std::string file = "/palimpsest/fft-" + machine_name();
  EXPECT_EQ(wisdom_place("off", "/c", "/h"), (WisdomPlace{false, ""}));
  EXPECT_EQ(wisdom_place("memory", "/c", "/h"), (WisdomPlace{true, ""}));
  EXPECT_EQ(wisdom_place("/some/file", "/c", "/h"), (WisdomPlace{true, "/some/file"}));
  EXPECT_EQ(wisdom_place(nullptr, "/c", "/h"), (WisdomPlace{true, "/c" + file}));
  EXPECT_EQ(wisdom_place("", nullptr, "/h"), (WisdomPlace{true, "/h/.cache" + file}));
  // A relative cache folder is ignored.
  EXPECT_EQ(wisdom_place(nullptr, "c", "/h"), (WisdomPlace{true, "/h/.cache" + file}));
  EXPECT_EQ(wisdom_place(nullptr, nullptr, nullptr), (WisdomPlace{true, ""}));
}

TEST_F(Wisdom, FilesAppearWholeInFoldersThatAreMade) {
  const std::string file = path("deep/er/wisdom");
  EXPECT_TRUE(save_wisdom<float>(file));
  EXPECT_TRUE(load_wisdom<float>(file));
  EXPECT_TRUE(save_wisdom<float>(file));  // over the old one
  EXPECT_EQ(std::distance(fs::directory_iterator(fs::path(file).parent_path()), {}), 1);
  EXPECT_TRUE(load_wisdom<float>(file));
}

TEST_F(Wisdom, DamagedAndForeignFilesAreIgnored) {
  EXPECT_FALSE(load_wisdom<float>(path("nothing")));
  ASSERT_TRUE(save_wisdom<float>(path("file")));
  EXPECT_FALSE(load_wisdom<double>(path("file")));
  const std::string good = read(path("file"));
  write(path("cut"), good.substr(0, good.size() / 2));
  EXPECT_FALSE(load_wisdom<float>(path("cut")));
  write(path("nonsense"), "(nonsense");
  EXPECT_FALSE(load_wisdom<float>(path("nonsense")));
}

TEST_F(Wisdom, PlacesThatCannotBeWrittenAreNoError) {
  write(path("file"), "in the way");
  EXPECT_FALSE(save_wisdom<float>(path("file") + "/wisdom"));
}

TEST(FftPlan, PlansMadeAgainGiveTheSameBits) {
  Random random(51);
  for (const index_t n : {100, 256, 360}) {
    FftSpec spec;
    spec.extents = {5, n};
    spec.in_strides = spec.out_strides = {n, 1};
    spec.axes = {1};
    Array x(DType::complex64, spec.extents), y(DType::complex64, spec.extents),
        z(DType::complex64, spec.extents);
    x.fill_normal(random);
    execute(fft_plan(spec), x.address(0), y.address(0));
    clear_fft_cache();
    execute(fft_plan(spec), x.address(0), z.address(0));
    EXPECT_EQ(elements(y), elements(z));
  }
}

TEST(FftPlan, LinesThatAreWrittenWhereTheyBelongHaveTheSameBits) {
  // The transform itself writes aligned lines; shifted ones are copied.
  Random random(52);
  FftSpec spec;
  spec.extents = {7, 128};
  spec.in_strides = {128, 1};
  spec.axes = {1};
  Array x(DType::complex64, spec.extents);
  x.fill_normal(random);
  std::vector<std::vector<unsigned char>> results;
  for (const index_t pitch : {128, 129, 131}) {
    for (const index_t shift : {0, 1}) {
      spec.out_strides = {pitch, 1};
      Array y(DType::complex64, spec.extents, spec.out_strides, shift);
      execute(fft_plan(spec), x.address(0), y.address(0));
      EXPECT_TRUE(y.gaps_are_intact());
      results.push_back(elements(y));
    }
  }
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
}

TEST(LinePlan, OnePlanServesAllOfASize) {
  const auto a = LinePlan<float>::find_or_make(96, 1, 104, true, FftEffort::estimate);
  const auto b = LinePlan<float>::find_or_make(96, 1, 104, true, FftEffort::estimate);
  const auto c = LinePlan<float>::find_or_make(96, 1, 104, false, FftEffort::estimate);
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
}

}  // namespace
}  // namespace palimpsest::testing
