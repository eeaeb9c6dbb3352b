// SPDX-License-Identifier: Apache-2.0
#include "cli/option_samples.hpp"

#include <complex>
#include <span>

#include "cli/command_samples.hpp"
#include "palimpsest/imaging/phantom.hpp"
#include "palimpsest/imaging/trajectories.hpp"
#include "palimpsest/io/npy.hpp"

namespace palimpsest::cli {
using Options = std::map<std::string, Sample>;

CommandSamples computing(const ScratchDirectory& dir, std::string name,
                         std::vector<std::string> arguments, Options options) {
  const Options common = {{"--memory", {{"--memory", "200M"}}},
                          {"--threads", {{"--threads", "1"}}},
                          {"--report", {{"--report", dir / "report_of_step.json"}}},
                          {"--log", {{"--log", dir / "log.txt"}}},
                          {"--config", {{"--config", dir / "step_config.json"}}},
                          {"--json", {{"--json"}}},
                          {"--quiet", {{"--quiet"}}},
                          {"--dry-run", {{"--dry-run"}}}};
  CommandSamples command{.name = std::move(name),
                         .arguments = std::move(arguments),
                         .options = std::move(options),
                         .invisible = {"--memory", "--threads", "--config"}};
  for (const auto& [option, sample] : common) command.common.insert(option);
  // A dry run computes nothing and prints one line.
  for (const auto& [option, sample] : command.options) {
    command.subsumed.insert({"--dry-run", option});
  }
  for (const char* option : {"--report", "--json", "--quiet", "--log"}) {
    command.subsumed.insert({"--dry-run", option});
  }
  command.options.insert(common.begin(), common.end());
  return command;
}

namespace {

CommandSamples of_maps(const ScratchDirectory& dir) {
  return computing(dir, "maps", {dir / "k.npy", dir / "o.npy"},
                   {{"--method", {{"--method", "walsh"}}},
                    {"--calibration", {{"--calibration", "16"}}},
                    {"--kernel", {{"--kernel", "5"}}},
                    {"--threshold", {{"--threshold", "0.01"}}},
                    {"--rank", {{"--rank", "12"}}},
                    {"--percent", {{"--percent", "5"}}},
                    {"--crop", {{"--crop", "0.9"}}},
                    {"--sets", {{"--sets", "2"}}},
                    {"--soft", {{"--soft"}}},
                    {"--intensity", {{"--intensity"}}},
                    {"--keep-phase", {{"--keep-phase"}}},
                    {"--noise-variance", {{"--noise-variance", "1e-4"}, {"--threshold", "auto"}}},
                    {"--eigenvalues", {{"--eigenvalues", dir / "e.npy"}}},
                    {"--block", {{"--block", "5"}, {"--method", "walsh"}}}});
}

CommandSamples of_pattern(const ScratchDirectory& dir) {
  CommandSamples command =
      computing(dir, "pattern", {dir / "o.npy"},
                {{"--kind", {{"--kind", "random"}}},
                 {"--size", {{"--size", "80,84"}}},
                 {"--acceleration", {{"--acceleration", "3"}}},
                 {"--center", {{"--center", "12"}}},
                 {"--spread", {{"--spread", "2"}}},
                 {"--ellipse", {{"--ellipse"}}},
                 {"--step", {{"--step", "3,2"}, {"--kind", "caipi"}}},
                 {"--shift", {{"--shift", "1"}, {"--kind", "caipi"}}},
                 {"--fraction", {{"--fraction", "0.6"}, {"--kind", "partial"}}},
                 {"--axis", {{"--axis", "z"}, {"--kind", "partial"}}},
                 {"--lines", {{"--lines", "5"}, {"--kind", "lines"}}},
                 {"--frames", {{"--frames", "2"}}},
                 {"--evenly", {{"--evenly", "--frames", "2"}, {"--kind", "lines"}}},
                 {"--seed", {{"--seed", "7"}}}});
  command.usual = {{{"--size", "64,64"}, {"--size"}}};
  return command;
}

CommandSamples of_traj(const ScratchDirectory& dir) {
  const std::vector<std::string> weights = {"--weights", dir / "weights.npy"};
  const std::vector<std::string> stack = {"--kind", "stack"}, spiral = {"--kind", "spiral"},
                                 epi = {"--kind", "epi"};
  return computing(dir, "traj", {dir / "o.npy"},
                   {{"--kind", {{"--kind", "golden"}}},
                    {"--input", {{"--input", dir / "t.npy"}, weights}},
                    {"--samples", {{"--samples", "32"}}},
                    {"--spokes", {{"--spokes", "21"}}},
                    {"--oversampling", {{"--oversampling", "4"}}},
                    {"--full", {{"--full"}}},
                    {"--half-shift", {{"--half-shift"}}},
                    {"--convention", {{"--convention", "bart"}}},
                    {"--tiny", {{"--tiny", "5"}, {"--kind", "tiny"}}},
                    {"--planes", {{"--planes", "4"}, stack}},
                    {"--acceleration", {{"--acceleration", "2"}, stack}},
                    {"--rotated", {{"--rotated"}, stack}},
                    {"--interleaves", {{"--interleaves", "8"}, spiral}},
                    {"--matrix", {{"--matrix", "32"}, spiral}},
                    {"--fov", {{"--fov", "200"}, spiral}},
                    {"--g-max", {{"--g-max", "5"}, spiral}},
                    {"--s-max", {{"--s-max", "20"}, spiral}},
                    {"--undersampling", {{"--undersampling", "2"}, spiral}},
                    {"--time-step", {{"--time-step", "8"}, spiral}},
                    {"--lines", {{"--lines", "32"}, epi}},
                    {"--echo-train", {{"--echo-train", "16"}, epi}},
                    {"--ramp", {{"--ramp", "0.1"}, epi}},
                    {"--weights", {weights}},
                    {"--density", {{"--density", "analytic"}, weights}}});
}

CommandSamples of_nufft(const ScratchDirectory& dir) {
  CommandSamples command = computing(dir, "nufft", {dir / "samples.npy", dir / "o.npy"},
                                     {{"--trajectory", {{"--trajectory", dir / "t.npy"}}},
                                      {"--adjoint", {{"--adjoint"}}},
                                      {"--inverse", {{"--inverse"}}},
                                      {"--size", {{"--size", "30,32"}}},
                                      {"--weights", {{"--weights", dir / "w.npy"}}},
                                      {"--iterations", {{"--iterations", "3"}, {"--inverse"}}},
                                      {"--lambda", {{"--lambda", "0.1"}, {"--inverse"}}},
                                      {"--reg", {{"--reg", "tv:0.01"}, {"--inverse"}}}});
  command.usual = {{{"--trajectory", dir / "t.npy"}, {"--trajectory"}},
                   {{"--size", "32,32"}, {"--size"}},
                   {{"--adjoint"}, {"--adjoint", "--inverse"}}};
  // The run without them gives them as usual words.
  command.invisible.insert({"--trajectory", "--adjoint"});
  return command;
}

std::vector<CommandSamples> of_images(const ScratchDirectory& dir) {
  return {{.name = "convert",
           .arguments = {dir / "volume.npy", dir / "o.npy"},
           .options = {{"--axes", {{"--axes", "T,Ny,Nx"}, {}, {dir / "volume.npy", dir / "o.nii"}}},
                       {"--slice", {{"--slice", "Nx=2:9"}}},
                       {"--part", {{"--part", "phase"}}},
                       {"--columns", {{"--columns", "2"}, {}, {dir / "volume.npy", dir / "o.png"}}},
                       {"--bits", {{"--bits", "16"}, {}, {dir / "image.npy", dir / "o.png"}}}}},
          {.name = "show",
           .arguments = {dir / "volume.npy"},
           .options = {
               {"--output", {{"--output", dir / "o.png"}}},
               {"--part", {{"--part", "phase"}}},
               {"--columns", {{"--columns", "2"}}},
               {"--window", {{"--window", "0:0.5"}, {"--output", dir / "o.png"}}},
               {"--bits", {{"--bits", "16"}, {"--output", dir / "o.png"}, {dir / "image.npy"}}}}}};
}

}  // namespace

std::vector<CommandSamples> step_samples(const ScratchDirectory& dir) {
  std::vector<CommandSamples> all = {of_maps(dir), of_pattern(dir), of_traj(dir), of_nufft(dir)};
  all.push_back(
      computing(dir, "whiten", {dir / "k.npy", dir / "o.npy"},
                {{"--noise", {{"--noise", dir / "noise.npy"}}},
                 {"--covariance", {{"--covariance", dir / "covariance.npy"}}},
                 {"--from-border", {{"--from-border"}}},
                 {"--save-covariance",
                  {{"--save-covariance", dir / "c.npy"}, {"--noise", dir / "noise.npy"}}}}));
  all.back().usual = {
      {{"--noise", dir / "noise.npy"}, {"--noise", "--covariance", "--from-border"}}};
  all.back().invisible.insert("--noise");  // the run without it gives it as a usual word
  const std::vector<std::string> maps = {"--maps", dir / "maps.npy"};
  const std::vector<std::string> save_maps = {"--save-maps", dir / "m.npy"};
  all.push_back(computing(dir, "compress", {dir / "k.npy", dir / "o.npy"},
                          {{"--to", {{"--to", "2"}}},
                           {"--energy", {{"--energy", "0.9"}}},
                           {"--method", {{"--method", "geometric"}, {"--to", "3"}}},
                           {"--save-matrix", {{"--save-matrix", dir / "matrix.npy"}}},
                           {"--maps", {maps, save_maps}},
                           {"--save-maps", {save_maps, maps}}}));
  all.push_back(computing(dir, "fft", {dir / "volume.npy", dir / "o.npy"},
                          {{"--dims", {{"--dims", "Ny"}}},
                           {"--axes", {{"--axes", "T,Nx,Ny"}, {"--dims", "Ny"}}},
                           {"--inverse", {{"--inverse"}}},
                           {"--norm", {{"--norm", "backward"}}},
                           {"--uncentered", {{"--uncentered"}}}}));
  all.push_back(computing(dir, "phantom", {dir / "o.npy"},
                          {{"--size", {{"--size", "40,44"}}},
                           {"--coils", {{"--coils", "3"}}},
                           {"--kspace", {{"--kspace"}}},
                           {"--trajectory", {{"--trajectory", dir / "t.npy"}, {"--kspace"}}},
                           {"--save-maps", {{"--save-maps", dir / "m.npy"}, {"--coils", "3"}}}}));
  all.back().usual = {{{"--size", "32,32"}, {"--size"}}};
  for (CommandSamples& command : of_images(dir)) all.push_back(std::move(command));
  for (const auto samples_of : command_sample_list()) all.push_back(samples_of(dir));
  const Tensor noise = Tensor::random_normal({4, 400}, DType::complex64, {31});
  write_npy(dir / "noise.npy", noise);
  Tensor covariance = Tensor::zeros({4, 4}, DType::complex64);
  for (index_t i = 0; i < 4; ++i) {
    covariance.set<std::complex<float>>({i, i}, static_cast<float>(1 + i));
  }
  write_npy(dir / "covariance.npy", covariance);
  const std::span<const Ellipse> head = modified_shepp_logan();
  write_npy(dir / "samples.npy", ellipse_kspace(head, read_npy(dir / "t.npy"), 32, 32));
  write_file(dir / "step_config.json", "{\"threads\": 1}");
  return all;
}

}  // namespace palimpsest::cli
