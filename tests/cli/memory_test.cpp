// SPDX-License-Identifier: Apache-2.0
// Reconstruction within a number of bytes, announced before and measured afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <nlohmann/json.hpp>

#include "cli/run_command.hpp"
#include "palimpsest/base/config.hpp"
#include "palimpsest/cli/byte_size.hpp"
#include "palimpsest/cli/failure.hpp"
#include "palimpsest/imaging/reconstruct.hpp"
#include "palimpsest/imaging/scan_reconstruction.hpp"
#include "palimpsest/io/cartesian.hpp"
#include "palimpsest/io/cfl.hpp"
#include "palimpsest/io/ismrmrd.hpp"
#include "palimpsest/io/npy.hpp"
#include "palimpsest/linop/transforms/fft.hpp"
#include "support/difference.hpp"

namespace palimpsest::cli {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

TEST(ParseBytes, TakesUnits) {
  EXPECT_EQ(parse_bytes("--memory", "4096"), 4096);
  EXPECT_EQ(parse_bytes("--memory", "300M"), 300000000);
  EXPECT_EQ(parse_bytes("--memory", "1.5G"), 1500000000);
  EXPECT_EQ(parse_bytes("--memory", "64Ki"), 65536);
  EXPECT_EQ(parse_bytes("--memory", "2kB"), 2000);
  EXPECT_EQ(parse_bytes("--memory", "1TiB"), index_t{1} << 40);
}

TEST(ParseBytes, RefusesWhatIsNoNumberOfBytes) {
  for (const char* text : {"", "M", "12X", "-1", "1e30G", "3i", "1MM", "nan"}) {
    EXPECT_THROW(parse_bytes("--memory", text), UsageError) << text;
  }
}

// Averages of iterates, and so a few bytes, depend on the number of iterations, and the test of
// progress needs some.
TEST(Plan, AnnouncesTheBytesOfTheRun) {
  const ScratchDirectory dir;
  ASSERT_EQ(run_command({"simulate", dir / "scan.h5", "--size", "48", "--coils", "4"}).code, 0);
  for (const char* term : {"l2:0.01", "l1wav:0.005", "tv:0.01"}) {
    for (const char* iterations : {"2", "30"}) {
      for (const char* tolerance : {"1e-4", "0"}) {
        const std::vector<std::string> how = {dir / "scan.h5", "--reg",    term,
                                              "--iterations",  iterations, "--tolerance",
                                              tolerance,       "--json"};
        std::vector<std::string> plan = how, recon = how;
        plan.insert(plan.begin(), "plan");
        recon.insert(recon.begin(), "recon");
        const Json planned = Json::parse(run_command(plan).out);
        const Json done = Json::parse(run_command(recon).out);
        EXPECT_EQ(planned.at("announced_peak_bytes"), done.at("announced_peak_bytes"))
            << term << " " << iterations << " " << tolerance;
      }
    }
  }
}

class Memory : public ::testing::Test {
 protected:
  static constexpr index_t kN = 24, kCoils = 6;

  Memory() {
    const Tensor maps = random({kCoils, kN, kN, kN}, 1), image = random({kN, kN, kN}, 2);
    const NamedLinop F = Fft(3, {.centered = true});
    Tensor kspace = Tensor::zeros(maps.shape(), DType::complex64);
    const auto x = image.to_vector<std::complex<float>>();
    for (index_t c = 0; c < kCoils; ++c) {
      auto values = maps.select(0, c).to_vector<std::complex<float>>();
      for (std::size_t i = 0; i < values.size(); ++i) values[i] *= x[i];
      Tensor spectrum = F(Tensor::from(values, image.shape()));
      auto* samples = spectrum.mutable_data<std::complex<float>>();
      for (index_t i = 0; i < spectrum.numel(); ++i) {
        if (i / kN % 3 == 1) samples[i] = 0;
      }
      kspace.select(0, c).copy_from(spectrum);
    }
    write_npy(dir / "kspace.npy", kspace);
    write_npy(dir / "maps.npy", maps);
    write_cfl(dir / "kspace", kspace);
    write_cfl(dir / "maps", maps);
  }
  static Tensor random(Extents shape, std::uint64_t stream) {
    return Tensor::random_normal(std::move(shape), DType::complex64, {9, stream});
  }
  CommandResult run(std::vector<std::string> arguments, const std::vector<std::string>& more) {
    arguments.insert(arguments.end(), {"--maps", dir / "maps.npy"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_command(arguments);
  }
  Json plan(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const CommandResult result = run({"plan", dir / "kspace.npy"}, arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    return Json::parse(result.out);
  }
  Json recon(const std::string& image, index_t budget, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"--memory", std::to_string(budget), "--save", dir / image,
                                       "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    if (std::find(more.begin(), more.end(), "adjoint") == more.end()) {
      arguments.insert(arguments.end(), {"--iterations", "5", "--tolerance", "0"});
    }
    const CommandResult result = run({"recon", dir / "kspace.npy"}, arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    return Json::parse(result.out);
  }
  // The smallest budget, as the refusal of an impossible one names it.
  index_t smallest() {
    const CommandResult refused =
        run({"recon", dir / "kspace.npy"}, {"--memory", "1k", "--save", dir / "refused.npy"});
    EXPECT_EQ(refused.code, 1);
    const std::string before = "Try --memory ";
    EXPECT_THAT(refused.err, HasSubstr(before));
    return std::stoll(refused.err.substr(refused.err.find(before) + before.size()));
  }
  // At least the measured peak, and at most 5 % more.
  static void expect_announced(const Json& report) {
    const auto announced = report.at("announced_peak_bytes").get<double>();
    const auto measured = report.at("measured_peak_bytes").get<double>();
    EXPECT_GE(announced, measured) << report;
    EXPECT_LE(announced, 1.05 * measured) << report;
  }
  double difference(const std::string& a, const std::string& b) {
    return palimpsest::testing::difference(read_npy(dir / a), read_npy(dir / b));
  }

  ScratchDirectory dir;
};

TEST_F(Memory, EveryBudgetIsAnnouncedKeptAndGivesTheSameImage) {
  const auto whole = plan().at("announced_peak_bytes").get<index_t>();
  const Json first = recon("whole.npy", whole);
  EXPECT_EQ(first.at("plan").at("large_arrays"), "memory");
  EXPECT_EQ(first.at("plan").at("tiles"), 1);
  for (const index_t budget : {whole * 8 / 10, whole * 4 / 10, smallest()}) {
    const Json report = recon("cut.npy", budget);
    EXPECT_EQ(report.at("plan").at("large_arrays"), "files");
    const auto announced = report.at("announced_peak_bytes").get<index_t>();
    EXPECT_LE(announced, budget);
    expect_announced(report);
    EXPECT_LE(difference("cut.npy", "whole.npy"), 1e-5);
  }
}

// Wavelets in three dimensions couple the planes: the volume is one solve, cut into tiles of coils.
// The smallest budget is 0.45 of the whole, 687 kB; for 48 x 64 x 64 points it is 0.39.
TEST_F(Memory, AVolumeWithWaveletsFitsIntoPartOfItsMemory) {
  const std::vector<std::string> reg = {"--reg", "l1wav:0.01,shift=none"};
  const std::vector<std::string> planned = {"--reg", reg[1], "--tolerance", "0"};
  const auto whole = plan(planned).at("announced_peak_bytes").get<index_t>();
  const Json first = recon("whole.npy", whole, reg);
  EXPECT_EQ(first.at("plan").at("solves"), 1);
  const CommandResult refused = run({"plan", dir / "kspace.npy", "--memory", "1k"}, planned);
  const std::string before = "Try --memory ";
  ASSERT_THAT(refused.err, HasSubstr(before));
  const index_t least = std::stoll(refused.err.substr(refused.err.find(before) + before.size()));
  EXPECT_LE(least, 690'000);
  EXPECT_LE(least, whole * 46 / 100);
  for (const index_t budget : {whole * 6 / 10, least}) {
    const Json report = recon("cut.npy", budget, reg);
    EXPECT_LE(report.at("announced_peak_bytes").get<index_t>(), budget);
    expect_announced(report);
    EXPECT_LE(difference("cut.npy", "whole.npy"), 1e-5);
  }
}

TEST_F(Memory, AnImpossibleBudgetNamesTheSmallestWhichThenWorks) {
  const index_t least = smallest();
  const Json report = recon("image.npy", least);
  EXPECT_LE(report.at("announced_peak_bytes").get<index_t>(), least);
  const CommandResult less =
      run({"plan", dir / "kspace.npy"}, {"--memory", std::to_string(least - 1)});
  EXPECT_THAT(less.err, HasSubstr("Try --memory " + std::to_string(least)));
}

TEST_F(Memory, APlaneIsCutIntoTilesOfCoils) {
  Tensor kspace = random({kCoils, 96, 80}, 8);
  auto* const samples = kspace.mutable_data<std::complex<float>>();
  // The mask changes along both axes, so that both are transformed.
  for (index_t i = 0; i < kspace.numel(); ++i) {
    if ((2 * (i / 80) + i) % 3 == 1) samples[i] = 0;
  }
  write_npy(dir / "kspace.npy", kspace);
  write_npy(dir / "maps.npy", random({kCoils, 96, 80}, 9));
  const Json whole = recon("whole.npy", plan().at("announced_peak_bytes").get<index_t>());
  const Json report = recon("cut.npy", smallest());
  EXPECT_EQ(report.at("plan").at("tile_sizes").at("C"), 1);
  EXPECT_LT(report.at("announced_peak_bytes"), whole.at("announced_peak_bytes"));
  expect_announced(whole);
  expect_announced(report);
  EXPECT_LE(difference("cut.npy", "whole.npy"), 1e-5);
}

TEST_F(Memory, ADryRunSaysWhereTheBytesGoAndWritesNothing) {
  const std::vector<std::string> names = dir.names();
  const CommandResult result =
      run({"recon", dir / "kspace.npy"}, {"--dry-run", "-o", dir / "x.png"});
  ASSERT_EQ(result.code, 0) << result.err;
  for (const char* line : {"peak", "opening", "along x", "maps", "adjoint", "solve", "state",
                           "workspace", "operator", "writing", "uncut"}) {
    EXPECT_THAT(result.out, HasSubstr(line));
  }
  EXPECT_EQ(dir.names(), names);
  const Json parts = plan();
  index_t most = 0;
  for (const auto& stage : parts.at("plan").at("stages")) {
    most = std::max(most, stage.get<index_t>());
  }
  EXPECT_EQ(parts.at("announced_peak_bytes").get<index_t>(), most);
}

TEST_F(Memory, EveryOutputIsWrittenWithABudgetAndWithout) {
  for (const char* const budget : {"1T", "400k"}) {
    const CommandResult result = run(
        {"recon", dir / "kspace.npy"},
        {"--memory", budget, "--iterations", "2", "-o", dir / "o.png", "--save", dir / "o.npy",
         "--save-maps", dir / "maps_out.npy", "--report", dir / "o.json", "--plan", dir / "o.svg"});
    ASSERT_EQ(result.code, 0) << result.err;
    for (const char* name : {"o.png", "o.npy", "maps_out.npy", "o.json", "o.svg"}) {
      EXPECT_GT(read_file(dir / name).size(), 0U) << name;
      std::remove((dir / name).c_str());
    }
  }
  EXPECT_EQ(run({"recon", dir / "kspace.npy"}, {"--memory", "1T", "--plan", dir / "p.xyz"}).code,
            2);
  // A dry run writes the files that describe the plan.
  const CommandResult dry =
      run({"recon", dir / "kspace.npy"}, {"--dry-run", "--plan", dir / "p.svg", "--report",
                                          dir / "p.json", "--save", dir / "none.npy"});
  ASSERT_EQ(dry.code, 0) << dry.err;
  EXPECT_THAT(read_file(dir / "p.svg"), HasSubstr("</svg>"));
  EXPECT_EQ(Json::parse(read_file(dir / "p.json")), plan());
  EXPECT_EQ(read_file(dir / "none.npy"), "");
}

// A schema for all: a run reports the members of a plan.
TEST_F(Memory, ReportsHaveTheSameMembersWithABudgetAndWithout) {
  const auto names_of = [](const Json& report) {
    std::vector<std::string> names;
    for (const auto& [name, value] : report.items()) names.push_back(name);
    return names;
  };
  const Json planned = plan();
  const auto whole = planned.at("announced_peak_bytes").get<index_t>();
  const Json large = recon("a.npy", 2 * whole), small = recon("b.npy", whole / 2);
  EXPECT_EQ(names_of(large), names_of(small));
  for (const std::string& name : names_of(planned)) {
    // Members that differ because the run gets other options.
    if (name == "plan" || name == "tolerance" || name == "command") continue;
    EXPECT_EQ(large.at(name), planned.at(name)) << name;
  }
}

// BART's layout of a slice: the readout has one sample.
TEST_F(Memory, MapsOfScansWithAReadoutOfOneSampleFitInEveryForm) {
  const Tensor k = random({kCoils, 20, 16, 1}, 8), m = random({kCoils, 20, 16, 1}, 9);
  write_cfl(dir / "ksp", k);
  write_cfl(dir / "sens", m);
  write_npy(dir / "flat.npy", m.select(3, 0).contiguous());
  const auto image = [&](const std::string& maps, const std::string& budget) {
    const CommandResult result =
        run_command({"recon", dir / "ksp.cfl", "--maps", dir / maps, "--memory", budget, "--save",
                     dir / "x.npy", "--save-maps", dir / "out.npy"});
    EXPECT_EQ(result.code, 0) << result.err;
    return read_npy(dir / "x.npy");
  };
  const Tensor first = image("sens.cfl", "1G");
  EXPECT_EQ(first.shape(), (Extents{20, 16}));
  EXPECT_EQ(read_npy(dir / "out.npy").shape(), (Extents{kCoils, 20, 16}));
  write_npy(dir / "again.npy", read_npy(dir / "out.npy"));
  for (const char* maps : {"sens.cfl", "flat.npy", "again.npy"}) {
    for (const char* budget : {"1G", "40k"}) {
      EXPECT_TRUE(allclose(image(maps, budget), first, 1e-4, 1e-5)) << maps << " " << budget;
    }
  }
}

TEST_F(Memory, BartFilesGiveTheSame) {
  const auto whole = plan().at("announced_peak_bytes").get<index_t>();
  recon("npy.npy", whole / 2);
  const CommandResult result = run_command({"recon", dir / "kspace.cfl", "--maps", dir / "maps.cfl",
                                            "--memory", std::to_string(whole / 2), "--iterations",
                                            "5", "--tolerance", "0", "--save", dir / "cfl.npy"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(difference("cfl.npy", "npy.npy"), 0);
}

TEST_F(Memory, RawScansAreSortedIntoAFileFirst) {
  // Oversampled along the readout, with lines that are not measured.
  const Tensor wide = random({kCoils, kN, kN, 2 * kN}, 4);
  Tensor mask = Tensor::zeros({kN, kN}, DType::bool_);
  for (index_t i = 0; i < kN * kN; ++i) mask.set<bool>({i / kN, i % kN}, i % 3 != 1);
  RawScanHeader header;
  header.recon.matrix = {kN, kN - 4, kN - 2};
  header.encoded.field_of_view_mm = {480, 240, 240};
  header.recon.field_of_view_mm = {240, 240, 240};
  write_ismrmrd(dir / "scan.h5", cartesian_scan(wide, mask, header));
  const CommandResult planned =
      run_command({"plan", dir / "scan.h5", "--maps", dir / "maps.npy", "--json"});
  ASSERT_EQ(planned.code, 0) << planned.err;
  const auto whole = Json::parse(planned.out).at("announced_peak_bytes").get<index_t>();
  const std::vector<std::string> names = dir.names();
  const auto image_of = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{
        "recon",       dir / "scan.h5", "--maps", dir / "maps.npy", "--iterations", "40",
        "--tolerance", "1e-7",          "--save", dir / name,       "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const CommandResult result = run_command(arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    return Json::parse(result.out);
  };
  const Json report = image_of("cut.npy", {"--memory", std::to_string(whole * 6 / 10)});
  EXPECT_LE(report.at("announced_peak_bytes").get<index_t>(), whole * 6 / 10);
  EXPECT_GT(report.at("plan").at("stages").at("sorting").get<index_t>(), 0);
  expect_announced(report);
  image_of("planes.npy", {});
  EXPECT_EQ(read_npy(dir / "cut.npy").shape(), (Extents{kN - 2, kN - 4, kN}));
  EXPECT_LE(difference("cut.npy", "planes.npy"), 1e-3);
  std::vector<std::string> expected = names;
  expected.insert(expected.end(), {"cut.npy", "planes.npy"});
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(dir.names(), expected);
}

TEST_F(Memory, RawScansOfOnePlaneToo) {
  const Tensor flat = random({kCoils, 1, kN, kN}, 5), encodings = random({kCoils, kN, kN, 1}, 6);
  const Tensor line = Tensor::ones({1, kN}, DType::bool_),
               grid = Tensor::ones({kN, kN}, DType::bool_);
  write_npy(dir / "plane_maps.npy", random({kCoils, kN, kN}, 7));
  RawScanHeader header;
  header.recon.matrix = {kN, kN, 1};
  write_ismrmrd(dir / "flat.h5", cartesian_scan(flat, line, header));
  header.recon.matrix = {1, kN, kN};
  write_ismrmrd(dir / "encodings.h5", cartesian_scan(encodings, grid, header));
  for (const std::string name : {"flat", "encodings"}) {
    const auto recon_of = [&](const std::string& to, const std::vector<std::string>& more) {
      std::vector<std::string> arguments{
          "recon",  dir / (name + ".h5"), "--maps", dir / "plane_maps.npy", "--save",
          dir / to, "--tolerance",        "1e-7",   "--iterations",         "60"};
      arguments.insert(arguments.end(), more.begin(), more.end());
      const CommandResult result = run_command(arguments);
      EXPECT_EQ(result.code, 0) << result.err;
    };
    recon_of("a.npy", {});
    recon_of("b.npy", {"--memory", "10M", "--scratch", dir.path()});
    EXPECT_LE(difference("b.npy", "a.npy"), 1e-3) << name;
  }
}

TEST_F(Memory, TheAdjointFitsTooAndIsThatOfThePlanes) {
  const auto whole = plan({"--method", "adjoint"}).at("announced_peak_bytes").get<index_t>();
  recon("adjoint.npy", whole, {"--method", "adjoint"});
  const Json report = recon("less.npy", whole / 2, {"--method", "adjoint"});
  EXPECT_LE(report.at("announced_peak_bytes").get<index_t>(), whole / 2);
  EXPECT_LE(difference("less.npy", "adjoint.npy"), 1e-5);
}

// 32 coils of 512 KB: more than the caches of a core.
TEST_F(Memory, WithoutALimitCoilsAreTransformedOneByOne) {
  const std::string kspace = dir / "k32.npy", maps = dir / "m32.npy";
  ASSERT_EQ(run_command({"simulate", dir / "k32.h5", "--size", "256", "--coils", "32",
                         "--save-kspace", kspace, "--save-maps", maps})
                .code,
            0);
  const auto image = [&](index_t& peak) {
    ScanReconstructionOptions options;
    options.kspace = kspace;
    options.maps = maps;
    options.iterations = 2;
    ScanReconstruction scan(options);
    peak = scan.plan().peak_bytes;
    return scan.run().image.contiguous().to_vector<std::complex<float>>();
  };
  index_t peak = 0, peak_of_all = 0;
  const auto one_by_one = image(peak);
  const ConfigScope scope({.rewrites_excluding = std::vector<std::string>{"cache_tiles"}});
  const auto together = image(peak_of_all);
  EXPECT_LT(peak + 10'000'000, peak_of_all);
  EXPECT_EQ(one_by_one, together);
}

// The solver of 8 coils holds one, so A^H y of all would be the peak.
TEST_F(Memory, WithoutALimitTheAdjointTakesSingleCoilsTooWithTheSameBits) {
  const std::string kspace = dir / "k8.npy", maps = dir / "m8.npy";
  ASSERT_EQ(run_command({"simulate", dir / "k8.h5", "--size", "64", "--coils", "8", "--save-kspace",
                         kspace, "--save-maps", maps})
                .code,
            0);
  ScanReconstructionOptions options;
  options.kspace = kspace;
  options.maps = maps;
  options.iterations = 3;
  options.regularizers = {parse_regularizer("l2:0")};
  ScanReconstruction scan(options);
  EXPECT_EQ(scan.adjoint().sizes.at("C"), 1);
  const ReconstructOptions whole{.regularizers = options.regularizers, .iterations = 3};
  EXPECT_EQ(scan.run().image.contiguous().to_vector<std::complex<float>>(),
            reconstruct(read_npy(kspace), read_npy(maps), {}, whole)
                .image.contiguous()
                .to_vector<std::complex<float>>());
}

TEST_F(Memory, APlanNeedsNoTemporaryFolder) {
  const std::string scan = dir / "scan.h5";
  ASSERT_EQ(run_command({"simulate", scan, "--size", "32", "--coils", "4"}).code, 0);
  for (const char* memory : {"1G", "1M"}) {
    const CommandResult result =
        run_command({"plan", scan, "--memory", memory}, {.temporary_folder = dir / "none"});
    EXPECT_EQ(result.code, 0) << result.err;
  }
}

TEST_F(Memory, WrongInputIsSaid) {
  const auto error_of = [&](const std::vector<std::string>& arguments) {
    const CommandResult result = run_command(arguments);
    EXPECT_EQ(result.code, 2);
    return result.err;
  };
  const std::string save = dir / "x.npy", scan = dir / "kspace.npy";
  EXPECT_THAT(error_of({"recon", scan, "--memory", "1M", "--save", save}), HasSubstr("--maps"));
  EXPECT_THAT(
      error_of({"recon", scan, "--maps", dir / "maps.npy", "--memory", "many", "--save", save}),
      HasSubstr("bytes"));
  write_npy(dir / "small.npy", random({kCoils, kN, kN}, 3));
  EXPECT_THAT(error_of({"plan", scan, "--maps", dir / "small.npy"}), HasSubstr("does not fit"));
  write_npy(dir / "real.npy", Tensor::zeros({2, 3, 4}, DType::float32));
  EXPECT_THAT(error_of({"plan", dir / "real.npy", "--maps", dir / "real.npy"}),
              HasSubstr("complex64"));
  write_npy(dir / "flat.npy", random({8, 8}, 3));
  EXPECT_THAT(error_of({"plan", dir / "flat.npy", "--maps", dir / "flat.npy"}),
              HasSubstr("wrong rank"));
  write_npy(dir / "none.npy", Tensor::zeros({kCoils, kN, kN, kN}, DType::complex64));
  EXPECT_THAT(error_of({"recon", dir / "none.npy", "--maps", dir / "maps.npy", "--memory", "1G",
                        "--save", save}),
              HasSubstr("nothing is measured"));
  EXPECT_THAT(error_of({"recon", scan, "--maps", dir / "maps.npy", "--memory", "1G", "--prewhiten",
                        "--save", save}),
              HasSubstr("no noise readouts"));
  write_file(dir / "bad.h5", "\x89HDF\r\n\x1a\n not really");
  EXPECT_THAT(error_of({"plan", dir / "bad.h5", "--maps", dir / "maps.npy"}), HasSubstr("bad.h5"));
  write_file(dir / "scan.png", "\x89PNG\r\n\x1a\n");
  EXPECT_THAT(error_of({"plan", dir / "scan.png", "--maps", dir / "maps.npy"}), HasSubstr("NPY"));
}

}  // namespace
}  // namespace palimpsest::cli
