// SPDX-License-Identifier: Apache-2.0
// Output of recon: images in all formats with their position, the page, the report and its schema.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>

#include "cli/run_command.hpp"
#include "palimpsest/cli/images/image_files.hpp"
#include "palimpsest/imaging/results/image_formats.hpp"
#include "palimpsest/io/cartesian.hpp"
#include "palimpsest/io/cfl.hpp"
#include "palimpsest/io/ismrmrd.hpp"
#include "palimpsest/io/npy.hpp"
#include "palimpsest/io/png.hpp"

namespace palimpsest::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;

// The first violation of the schema by the value; covers the part of JSON Schema that docs/ uses.
std::string violation(const Json& value, const Json& schema, const std::string& where = "$") {
  const auto is_type = [&](const std::string& type) {
    return (type == "integer" && value.is_number_integer()) ||
           (type == "number" && value.is_number()) || (type == "string" && value.is_string()) ||
           (type == "object" && value.is_object()) || (type == "array" && value.is_array()) ||
           (type == "null" && value.is_null()) || (type == "boolean" && value.is_boolean());
  };
  if (schema.contains("const") && schema["const"] != value) return where + " is another value";
  if (schema.contains("enum")) {
    const auto& known = schema["enum"];
    if (std::find(known.begin(), known.end(), value) == known.end()) return where + " is no choice";
  }
  if (schema.contains("type")) {
    const Json& type = schema["type"];
    const std::vector<std::string> types = type.is_array()
                                               ? type.get<std::vector<std::string>>()
                                               : std::vector<std::string>{type.get<std::string>()};
    if (std::none_of(types.begin(), types.end(), is_type)) return where + " has another type";
  }
  if (schema.contains("minimum") && value.is_number() && value < schema["minimum"]) {
    return where + " is too small";
  }
  if (schema.contains("pattern") && value.is_string() &&
      !testing::internal::RE::FullMatch(value.get<std::string>(),
                                        schema["pattern"].get<std::string>().c_str())) {
    return where + " has another form";
  }
  if (value.is_array() && schema.contains("items")) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      const std::string found =
          violation(value[i], schema["items"], where + "[" + std::to_string(i) + "]");
      if (!found.empty()) return found;
    }
  }
  if (!value.is_object()) return {};
  for (const Json& key : schema.value("required", Json::array())) {
    if (!value.contains(key.get<std::string>())) return where + " lacks " + key.dump();
  }
  const Json known = schema.value("properties", Json::object());
  for (const auto& [key, member] : value.items()) {
    const std::string path = where + "." + key;
    if (known.contains(key)) {
      const std::string found = violation(member, known[key], path);
      if (!found.empty()) return found;
    } else if (schema.contains("additionalProperties")) {
      if (schema["additionalProperties"] == false) return path + " is not known";
      const std::string found = violation(member, schema["additionalProperties"], path);
      if (!found.empty()) return found;
    }
  }
  return {};
}

Json schema() { return Json::parse(read_file(PALIMPSEST_SOURCE_DIR "/docs/report.schema.json")); }

class Results : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new ScratchDirectory;
    const CommandResult made =
        run_command({"simulate", *folder_ / "scan.h5", "--size", "48", "--coils", "4", "--pattern",
                     "full", "--save-kspace", *folder_ / "k.npy"});
    ASSERT_EQ(made.code, 0) << made.err;
    write_ismrmrd(*folder_ / "oblique.h5", oblique());
  }
  static void TearDownTestSuite() { delete folder_; }

  // Two slices and two repetitions with directions oblique to all axes of the patient.
  static RawScan oblique() {
    const RawScan one = read_ismrmrd(*folder_ / "scan.h5");
    RawScan scan;
    scan.header = one.header;
    scan.header.encoded.field_of_view_mm = scan.header.recon.field_of_view_mm = {96, 72, 4};
    const auto samples = one.samples.to_vector<std::complex<float>>();
    std::vector<std::complex<float>> all;
    for (int number = 0; number < 4; ++number) {
      for (Readout readout : one.readouts) {
        readout.slice = number % 2;
        readout.repetition = number / 2;
        readout.time_stamp = 40 * readout.repetition;
        readout.read_direction = {0.6F, 0, 0.8F};
        readout.phase_direction = {0, 1, 0};
        readout.slice_direction = {-0.8F, 0, 0.6F};
        const float along = readout.slice == 0 ? 0.0F : 5.0F;
        readout.position = {10 - 0.8F * along, 20, 30 + 0.6F * along};
        readout.first_sample += static_cast<index_t>(all.size());
        scan.readouts.push_back(readout);
      }
      for (const auto v : samples) all.push_back(static_cast<float>(1 + number) * v);
    }
    scan.samples = Tensor::from(all);
    return scan;
  }

  std::string input(const std::string& name) const { return *folder_ / name; }
  static CommandResult recon(std::vector<std::string> words) {
    words.insert(words.begin(), "recon");
    words.insert(words.end(), {"--iterations", "3"});
    return run_command(words);
  }
  static CommandResult done(const std::vector<std::string>& words) {
    CommandResult result = recon(words);
    EXPECT_EQ(result.code, 0) << ::testing::PrintToString(words) << "\n" << result.err;
    return result;
  }

  static ScratchDirectory* folder_;
  ScratchDirectory dir;
};

ScratchDirectory* Results::folder_ = nullptr;

TEST_F(Results, AreTheSameNumbersInEveryFormat) {
  done({input("oblique.h5"), "--as", "T=repetition", "--save", dir / "image.npy"});
  const Tensor image = read_npy(dir / "image.npy");
  ASSERT_EQ(image.shape(), (Extents{2, 2, 48, 48}));
  for (const char* name : {"a.nii", "a.nii.gz", "a.h5", "a.mrd", "a.cfl", "b.hdr", "a.npy"}) {
    done({input("oblique.h5"), "--as", "T=repetition", "-o", dir / name});
    Image found = read_image(dir / name);
    if (found.names.index_of(ND("T")) == 0U && !std::string(name).ends_with(".npy")) {
      found.data = found.data.permute({1, 0, 2, 3});
    }
    EXPECT_TRUE(equal(found.data.contiguous(), image)) << name << " " << found.names.str();
  }
}

TEST_F(Results, VoxelsLieWhereTheScannerSaysSo) {
  done({input("oblique.h5"), "--as", "T=repetition", "-o", dir / "a.nii.gz"});
  done({input("oblique.h5"), "--as", "T=repetition", "-o", dir / "a.mrd"});
  const NiftiImage nifti = read_nifti(dir / "a.nii.gz");
  EXPECT_EQ(nifti.data.shape(), (Extents{2, 2, 48, 48}));  // (T, z, y, x)
  EXPECT_FLOAT_EQ(static_cast<float>(nifti.time_step_s), 0.1F);
  EXPECT_NEAR(nifti.spacing_mm[0], 5, 1e-6);
  EXPECT_NEAR(nifti.spacing_mm[1], 1.5, 1e-6);
  EXPECT_NEAR(nifti.spacing_mm[2], 2, 1e-6);
  ASSERT_TRUE(nifti.affine_ras.has_value());
  for (const auto& [i, j, k] :
       {std::tuple(24, 24, 0), std::tuple(24, 24, 1), std::tuple(0, 0, 0), std::tuple(47, 3, 1)}) {
    // In LPS, from the centre of the slice.
    const double x = 2.0 * (i - 24), y = 1.5 * (j - 24), z = 5.0 * k;
    const double lps[3] = {10 + 0.6 * x - 0.8 * z, 20 + y, 30 + 0.8 * x + 0.6 * z};
    for (std::size_t row = 0; row < 3; ++row) {
      const auto& a = (*nifti.affine_ras)[row];
      const double found = a[0] * i + a[1] * j + a[2] * k + a[3];
      EXPECT_NEAR(found, row < 2 ? -lps[row] : lps[row], 1e-3) << i << " " << j << " " << k;
    }
  }
  const Image images = read_image(dir / "a.mrd");
  EXPECT_NEAR((*images.affine_lps)[0][3], lps_to_ras(*nifti.affine_ras)[0][3], 1e-4);
  EXPECT_THAT(images.header, HasSubstr("ismrmrdHeader"));
  const CommandResult facts = run_command({"info", dir / "a.mrd"});
  ASSERT_EQ(facts.code, 0) << facts.err;
  EXPECT_THAT(facts.out, AllOf(HasSubstr("(T, S, Ny, Nx)"), HasSubstr("-0.8, 0, 0.6")));
  EXPECT_THAT(run_command({"info", dir / "a.nii.gz"}).out, HasSubstr("position in mm, LPS"));
}

TEST_F(Results, PicturesShowAllPlanesAndParts) {
  done({input("scan.h5"), "-o", dir / "one.png"});
  EXPECT_EQ(read_png(dir / "one.png").shape(), (Extents{48, 48}));
  done({input("oblique.h5"), "-o", dir / "row.png"});
  done({input("oblique.h5"), "-o", dir / "column.png", "--columns", "1"});
  const Extents row = read_png(dir / "row.png").shape();
  const Extents column = read_png(dir / "column.png").shape();
  EXPECT_GT(row[1], row[0]);
  EXPECT_GT(column[0], column[1]);
  done({input("scan.h5"), "-o", dir / "phase.nii", "--part", "phase", "--save", dir / "x.npy"});
  const NiftiImage phase = read_nifti(dir / "phase.nii");
  EXPECT_TRUE(equal(phase.data.view({48, 48}), part_of(read_npy(dir / "x.npy"), ImagePart::phase)));
}

TEST_F(Results, WhatAPictureHasNoUseForIsRefusedBeforeTheSolve) {
  const auto refused = [&](const std::vector<std::string>& words) {
    const CommandResult result = recon(words);
    EXPECT_EQ(result.code, 2) << result.err;
    EXPECT_THAT(dir.names(), IsEmpty());
    return result.err;
  };
  EXPECT_THAT(refused({input("oblique.h5"), "-o", dir / "a.png", "--bits", "16"}),
              AllOf(HasSubstr("--bits"), HasSubstr("(2, 48, 48)")));
  EXPECT_THAT(refused({input("scan.h5"), "-o", dir / "a.nii", "--bits", "16"}),
              HasSubstr("is not a PNG"));
  EXPECT_THAT(refused({input("scan.h5"), "-o", dir / "a.png", "--columns", "2"}),
              HasSubstr("one plane"));
  EXPECT_THAT(refused({input("scan.h5"), "-o", dir / "a.nii", "--columns", "2"}),
              HasSubstr("--columns"));
  EXPECT_THAT(refused({input("scan.h5"), "-o", dir / "a.png", "--columns", "-1"}),
              HasSubstr("at least 0"));
  EXPECT_THAT(refused({input("scan.h5"), "-o", dir / "a.tif"}), HasSubstr("'.png', '.nii'"));
  EXPECT_THAT(refused({input("scan.h5"), "--save", dir / "a.png"}), HasSubstr("'.nii'"));
  EXPECT_THAT(refused({input("scan.h5"), "--save-maps", dir / "a.nii"}), HasSubstr("'.npy'"));
  EXPECT_THAT(refused({input("scan.h5"), "-o", dir / "a.png", "--threads", "0"}),
              HasSubstr("--threads"));
}

TEST_F(Results, MapsKeepTheirNames) {
  done({input("scan.h5"), "--save-maps", dir / "m.cfl", "--sets", "2"});
  EXPECT_EQ(from_bart(read_cfl(dir / "m")).names.str(), "(M, C, Ny, Nx)");
}

TEST_F(Results, ThePageIsXmlWithTheCommandThatRepeatsIt) {
  done({input("scan.h5"), "--html", dir / "page.html", "--reg", "tv:0.01"});
  const std::string page = read_file(dir / "page.html");
  pugi::xml_document document;
  const auto parsed = document.load_string(page.c_str());
  ASSERT_TRUE(parsed) << parsed.description();
  EXPECT_LE(page.size(), 2000000U);
  EXPECT_EQ(document.select_nodes("//img").size(), 1U);
  // Convergence, stages, the memory of one iteration.
  EXPECT_EQ(document.select_nodes("//*[name()='svg']").size(), 3U);
  EXPECT_THAT(page, AllOf(Not(HasSubstr("<script")), Not(HasSubstr("href"))));
  EXPECT_THAT(page, AllOf(HasSubstr("palimpsest recon "), HasSubstr("tv:0.01"),
                          HasSubstr("primal-dual: functions of differences"),
                          HasSubstr("not converged after 3 iterations"), HasSubstr("Dense")));
  EXPECT_THAT(dir.names(), ElementsAre("page.html"));
}

TEST_F(Results, TheReportIsAsTheSchemaSaysAndNamesItsInputs) {
  done({input("k.npy"), "--reg", "tv:0.01", "--save", dir / "x.npy", "--report",
        dir / "array.json"});
  done({input("scan.h5"), "--save", dir / "y.npy", "--reg", "l1wav:0.01", "--start", dir / "x.npy",
        "--report", dir / "raw.json"});
  for (const char* name : {"array.json", "raw.json"}) {
    const Json report = Json::parse(read_file(dir / name));
    EXPECT_EQ(violation(report, schema()), "") << name;
    EXPECT_EQ(report["version"], 2);
    EXPECT_EQ(report["command"], "recon");
    EXPECT_EQ(report["history"].size(), 3U);
    EXPECT_EQ(report["residuals"].size(), 3U);
  }
  const Json report = Json::parse(read_file(dir / "raw.json"));
  ASSERT_EQ(report["inputs"].size(), 2U);
  EXPECT_EQ(report["inputs"][1]["role"], "start");
  EXPECT_EQ(report["inputs"][1]["bytes"], std::ssize(read_file(dir / "x.npy")));
  EXPECT_EQ(report["applications"]["N"], 3);
  EXPECT_EQ(report["header"]["encoded_matrix"], Json({48, 48, 1}));
  EXPECT_EQ(report["method_reason"], "one function of the image besides the data");
  const Json plan = Json::parse(run_command({"plan", input("scan.h5"), "--json"}).out);
  EXPECT_EQ(violation(plan, schema()), "");
  EXPECT_EQ(plan["command"], "plan");
}

TEST_F(Results, TheSchemaNoticesWhatIsWrong) {
  Json report = Json::parse(run_command({"plan", input("scan.h5"), "--json"}).out);
  report["announced_peak_bytes"] = -1;
  EXPECT_EQ(violation(report, schema()), "$.announced_peak_bytes is too small");
  report["announced_peak_bytes"] = "many";
  EXPECT_EQ(violation(report, schema()), "$.announced_peak_bytes has another type");
  report.erase("announced_peak_bytes");
  EXPECT_THAT(violation(report, schema()), HasSubstr("lacks"));
}

TEST_F(Results, QuietRunsSayNothingAndLogsKeepWhatWasSaid) {
  const CommandResult quiet =
      done({input("scan.h5"), "--save", dir / "a.npy", "--quiet", "--log", dir / "l.txt"});
  EXPECT_THAT(quiet.err, IsEmpty());
  EXPECT_THAT(read_file(dir / "l.txt"), ::testing::MatchesRegex("announced peak: [0-9,]+ bytes\n"));
  write_file(dir / "c.json", R"({"quiet": true, "threads": 1, "reg": ["l2:0.1"]})");
  const CommandResult configured =
      done({input("scan.h5"), "--save", dir / "b.npy", "--config", dir / "c.json"});
  EXPECT_THAT(configured.err, IsEmpty());
}

// The summary, the report and the page name the test or the limit that ended the iteration.
TEST_F(Results, TheEndHasAReason) {
  struct End {
    std::vector<std::string> words;
    int code;
    std::string status, reason;
  };
  const std::string progress =
      "the objective changed by less than 0.0001 of itself in 10 iterations";
  for (const End& end :
       {End{{"--reg", "tv:0.01"}, 0, "converged", progress},
        End{{"--reg", "tv:0.01", "--strict"}, 0, "converged", progress},
        End{{}, 0, "converged", "the residual is at most 0.0001"},
        End{{"--reg", "tv:0.01", "--iterations", "3"},
            0,
            "max_iterations",
            "not converged after 3 iterations"},
        End{{"--reg", "tv:0.01", "--iterations", "3", "--strict"},
            4,
            "max_iterations",
            "not converged after 3 iterations"},
        // The scan is complete: one iteration solves it.
        End{{"--iterations", "2", "--strict"}, 0, "converged", "the residual is at most 0.0001"}}) {
    std::vector<std::string> words = {"recon",    input("scan.h5"), "--save", dir / "a.npy",
                                      "--report", dir / "r.json",   "--html", dir / "p.html"};
    words.insert(words.end(), end.words.begin(), end.words.end());
    const CommandResult result = run_command(words);
    EXPECT_EQ(result.code, end.code) << result.err;
    const Json report = Json::parse(read_file(dir / "r.json"));
    EXPECT_EQ(report["status"], end.status);
    EXPECT_EQ(report["reason"], end.reason);
    EXPECT_THAT(result.out, HasSubstr(end.status + ": " + end.reason));
    EXPECT_THAT(read_file(dir / "p.html"), HasSubstr(end.reason));
    EXPECT_EQ(read_npy(dir / "a.npy").numel(), 48 * 48);
  }
}

TEST_F(Results, ATimeLimitWritesTheImageSoFarAndEndsWithCode3) {
  const CommandResult result = run_command(
      {"recon", input("scan.h5"), "--reg", "tv:0.01", "--iterations", "1000000", "--tolerance", "0",
       "--time-limit", "0.1s", "-o", dir / "a.nii", "--report", dir / "r.json"});
  EXPECT_EQ(result.code, 3) << result.err;
  EXPECT_EQ(read_nifti(dir / "a.nii").data.numel(), 48 * 48);
  const Json report = Json::parse(read_file(dir / "r.json"));
  EXPECT_EQ(report["status"], "time_limit");
  EXPECT_LT(report["iterations"], 1000000);
}

// Runs until the checkpoint exists, then interrupts. Returns the exit code.
int interrupted(const std::vector<std::string>& words, const std::string& checkpoint) {
  std::vector<std::string> all = words;
  all.insert(all.begin(), PALIMPSEST_COMMAND);
  std::vector<char*> arguments;
  for (std::string& word : all) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  EXPECT_EQ(::posix_spawn(&child, PALIMPSEST_COMMAND, nullptr, nullptr, arguments.data(), environ),
            0);
  for (int i = 0; i < 600 && ::access(checkpoint.c_str(), F_OK) != 0; ++i) ::usleep(100000);
  ::kill(child, SIGINT);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(Results, AnInterruptLeavesACheckpointNoImageAndCode130) {
  const std::vector<std::string> words = {
      "recon",        input("scan.h5"), "--reg",       "tv:0.01", "--quiet",
      "--iterations", "1000000",        "--tolerance", "0",       "-o",
      dir / "a.nii",  "--checkpoint",   dir / "state", "--every", "0.01s"};
  EXPECT_EQ(interrupted(words, dir / "state"), 130);
  EXPECT_THAT(dir.names(), ElementsAre("state"));
  const CommandResult on = run_command(
      {"recon", input("scan.h5"), "--reg", "tv:0.01", "--iterations", "1000000", "--tolerance", "0",
       "--resume", dir / "state", "--time-limit", "0.1s", "-o", dir / "a.nii"});
  EXPECT_EQ(on.code, 3) << on.err;
}

TEST_F(Results, AnInterruptMayWriteTheImageSoFar) {
  const std::vector<std::string> words = {"recon",        input("scan.h5"),
                                          "--reg",        "tv:0.01",
                                          "--iterations", "1000000",
                                          "--tolerance",  "0",
                                          "--quiet",      "--save-maps",
                                          dir / "m.npy",  "--report",
                                          dir / "r.json", "-o",
                                          dir / "a.nii",  "--partial-on-interrupt",
                                          "--checkpoint", dir / "state",
                                          "--every",      "0.01s",
                                          "--keep-scale"};
  EXPECT_EQ(interrupted(words, dir / "state"), 130);
  EXPECT_THAT(dir.names(), ElementsAre("a.nii", "m.npy", "r.json", "state"));
  const Json report = Json::parse(read_file(dir / "r.json"));
  EXPECT_EQ(report["status"], "cancelled");
  EXPECT_GT(report["iterations"], 0);
  const Tensor image = read_nifti(dir / "a.nii").data;
  const double largest = quantile(magnitude(image), 1);
  EXPECT_GT(largest, 0);
  // Divided by the scale.
  run_command(
      {"recon", input("scan.h5"), "--reg", "tv:0.01", "--keep-scale", "--save", dir / "b.npy"});
  EXPECT_NEAR(largest / quantile(magnitude(read_npy(dir / "b.npy")), 1), 1, 0.3);
}

// At any time: before there is an image, or a map, or a scale.
TEST_F(Results, AnEarlyInterruptIsCode130) {
  for (const std::vector<std::string>& more : {std::vector<std::string>{},
                                               {"--keep-scale"},
                                               {"--as", "T=repetition"},
                                               {"--save-maps", dir / "m.npy"},
                                               {"--partial-on-interrupt"}}) {
    for (const int delay_us : {5000, 15000, 30000, 60000}) {
      std::vector<std::string> words = {
          "recon",   input("oblique.h5"), "-o",      dir / "a.nii", "--reg",
          "tv:0.01", "--iterations",      "1000000", "--tolerance", "0"};
      words.insert(words.end(), more.begin(), more.end());
      const CommandResult result = run_command(words, {.meanwhile = [&](int process) {
                                                 ::usleep(static_cast<useconds_t>(delay_us));
                                                 ::kill(process, SIGINT);
                                               }});
      // A signal before the command takes it ends the process.
      EXPECT_THAT(result.code, ::testing::AnyOf(130, -1)) << result.err;
      // The image so far, if there is one and it was asked for.
      if (dir.names() == std::vector<std::string>{"a.nii"} && !more.empty() &&
          more[0] == "--partial-on-interrupt") {
        EXPECT_EQ(read_nifti(dir / "a.nii").data.numel() % (48 * 48), 0);
        ::remove((dir / "a.nii").c_str());
      }
      EXPECT_THAT(dir.names(), ::testing::IsEmpty());
    }
  }
}

TEST_F(Results, ASolveThatIsEndedMayHaveAnImageOfZeros) {
  const CommandResult result =
      run_command({"recon", input("scan.h5"), "--reg", "ball:0.1", "--iterations", "1000000",
                   "--tolerance", "0", "--time-limit", "0.00001s", "-o", dir / "a.nii"});
  EXPECT_EQ(result.code, 3) << result.err;
}

TEST_F(Results, WithoutDirectionsThePlaceIsUnknown) {
  RawScan scan = read_ismrmrd(input("oblique.h5"));
  for (Readout& readout : scan.readouts) readout.read_direction = {0, 0, 0};
  write_ismrmrd(dir / "scan.h5", scan);
  done({dir / "scan.h5", "--slice", "0", "--repetition", "0", "-o", dir / "a.nii", "--save",
        dir / "a.h5"});
  EXPECT_FALSE(read_nifti(dir / "a.nii").affine_ras);
  run_command({"convert", dir / "a.h5", dir / "b.nii"});
  EXPECT_FALSE(read_nifti(dir / "b.nii").affine_ras);
}

TEST_F(Results, WhatWritingHoldsIsAnnounced) {
  for (const char* name : {"a.png", "a.nii", "a.nii.gz", "a.h5", "a.npy", "a.cfl"}) {
    for (const char* scan : {"scan.h5", "oblique.h5"}) {
      const CommandResult run = done({input(scan), "-o", dir / name, "--json", "--html",
                                      dir / "page.html", "--save-maps", dir / "m.npy"});
      const Json report = Json::parse(run.out);
      EXPECT_LE(report["measured_peak_bytes"], report["announced_peak_bytes"]) << name;
      EXPECT_GE(1.05 * report["measured_peak_bytes"].get<double>(),
                report["announced_peak_bytes"].get<double>())
          << name;
    }
  }
}

}  // namespace
}  // namespace palimpsest::cli
