// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/recon/recon_results.hpp"

#include <filesystem>
#include <fstream>

#include "palimpsest/cli/images/image_files.hpp"
#include "palimpsest/cli/prelude.hpp"
#include "palimpsest/imaging/results/report.hpp"

namespace palimpsest::cli {
namespace {

// The endings of --plan, and the function that writes each format.
struct PlanFormat {
  const char* ending;
  std::string (Plan::*text)() const;
};
constexpr PlanFormat kPlanFormats[] = {
    {".svg", &Plan::to_svg}, {".json", &Plan::to_json}, {".txt", &Plan::to_string}};

const PlanFormat& format_of(const std::string& path) {
  const auto* const it =
      std::find_if(std::begin(kPlanFormats), std::end(kPlanFormats),
                   [&](const PlanFormat& format) { return path.ends_with(format.ending); });
  if (it != std::end(kPlanFormats)) return *it;
  throw UsageError("[--plan] got '" + path + "', expected a name that ends in .svg, .json or .txt");
}

const std::vector<std::string> kMapEndings = {".npy", ".cfl", ".hdr"};

WriteImageOptions image_options(const ReconOptions& options) {
  WriteImageOptions how{.bits = options.bits, .columns = options.columns};
  if (!options.part.empty()) how.part = parse_image_part(options.part);
  return how;
}

// Bytes of the page's planes, their pictures and its text.
SortingBytes page_bytes(const ReconOptions& options, const Extents& image) {
  if (options.html.empty()) return {};
  const index_t points = image.back() * image[image.size() - 2];
  return {2 * 4 * points, 10 * points + (index_t{6} << 20)};
}

std::string image_description(const ScanReconstructionResult& result) {
  return fmt::format("palimpsest {}, scale {:g}", PALIMPSEST_VERSION, result.scale);
}

// A run may go on in the checkpoint that it resumes.
bool goes_on_in_place(const ReconOptions& options) {
  std::error_code ignored;
  return !options.checkpoint.empty() &&
         std::filesystem::equivalent(options.checkpoint, options.how.resume, ignored);
}

}  // namespace

void announce_files(Outputs& outputs, const ReconOptions& options, bool plan_only) {
  const ScanReconstructionOptions& how = options.how;
  for (const std::string& path : {how.kspace, how.maps, how.start, how.scan.trajectory, how.weights,
                                  how.basis, how.phase, options.config}) {
    outputs.reads(path);
  }
  if (!how.resume.empty()) {
    if (!std::ifstream(how.resume) || !std::filesystem::is_regular_file(how.resume)) {
      throw UsageError(
          fmt::format("[--resume] {} cannot be read, expected a checkpoint", how.resume));
    }
    if (!goes_on_in_place(options)) outputs.reads(how.resume);
  }
  if (!plan_only) {
    announce_image(outputs, options.output);
    announce_image(outputs, options.save, array_endings());
    outputs.announce(options.save_maps, kMapEndings);
    outputs.announce(options.html, ".html");
    outputs.announce(options.checkpoint, std::vector<std::string>());
  }
  outputs.announce(options.log, ".txt");
  outputs.announce(options.report, ".json");
  if (!options.plan.empty()) outputs.announce(options.plan, format_of(options.plan).ending);
}

void check_picture(const ReconOptions& options, const ScanLayout& scan) {
  const bool is_picture = is_png(options.output);
  const bool is_single = is_single_plane(scan.result_shape());
  if (options.bits != 8 && !is_picture) {
    throw UsageError(
        fmt::format("[--bits] has no effect: {} is not a PNG. Try without --bits", options.output));
  }
  if (options.bits != 8 && !is_single) {
    throw UsageError(
        fmt::format("[--bits] got {}, but a picture of several planes has 8 bits: the image is {}. "
                    "Try --slice, or -o image.nii",
                    options.bits, to_string(scan.result_shape())));
  }
  if (options.columns != 0 && (!is_picture || is_single)) {
    throw UsageError(
        fmt::format("[--columns] has no effect: {}. Try without --columns",
                    is_picture ? "the image is one plane" : options.output + " is not a PNG"));
  }
  for (const std::string& path : {options.output, options.save}) {
    if (scan.coefficients == 0 || !(path.ends_with(".h5") || path.ends_with(".mrd"))) continue;
    throw UsageError(
        fmt::format("[--basis] {}: ISMRMRD images have no counter for coefficients B. Try an image "
                    "as .nii, .npy or .cfl",
                    path));
  }
}

void announce_volumes(Outputs& outputs, const ReconOptions& options, const ScanLayout& scan) {
  for (const std::string& path : {options.output, options.save}) {
    const auto files = files_of_image(path, scan.images, scan.n_slices());
    for (const std::string& file : files) {
      if (files.size() > 1) announce_image(outputs, file);
    }
  }
}

std::string output_text(const ReconOptions& options, const ScanLayout& scan) {
  std::string text;
  for (const std::string& path : {options.output, options.save}) {
    for (const std::string& note : notes_of_image(path, scan.images, scan.n_slices())) {
      text += note + "\n";
    }
  }
  return text;
}

SortingBytes writing_bytes(const ReconOptions& options, const ScanLayout& scan) {
  const Extents shape = scan.result_shape();
  const Dims names = scan.result_dims();
  SortingBytes most = page_bytes(options, shape);
  for (const SortingBytes& bytes :
       {image_writing_bytes(options.output, names, shape, image_options(options),
                            scan.geometry.voxel_mm, are_one_volume(scan.images, scan.n_slices())),
        image_writing_bytes(options.save, names, shape)}) {
    most.tensors = std::max(most.tensors, bytes.tensors);
    most.others = std::max(most.others, bytes.others);
  }
  return most;
}

void write_results(Outputs& outputs, const ReconOptions& options, const ScanLayout& scan,
                   const ScanReconstructionResult& result) {
  Image image = image_of(scan, result.image);
  image.description = image_description(result);
  write_image(outputs, options.output, image, image_options(options));
  write_image(outputs, options.save, image);
  if (options.save_maps.empty()) return;
  Image maps{.data = result.maps, .names = Dims("C") + scan.image_dims()};
  // Given maps are those of one slice.
  const std::size_t slices = scan.n_slices() > 1 && options.how.maps.empty() ? 1 : 0;
  if (maps.names.size() + slices < maps.data.rank()) maps.names = Dims("M") + maps.names;
  if (slices > 0) maps.names = Dims("S") + maps.names;
  write_image(outputs, options.save_maps, maps);
}

void write_plan(Outputs& outputs, const ReconOptions& options, const Plan& plan) {
  outputs.write(options.plan, [&](const std::string& path) {
    write_text_atomically(path, (plan.*format_of(options.plan).text)());
  });
}

void write_page(Outputs& outputs, const ReconOptions& options, const ScanReconstruction& r,
                const ScanReconstructionOptions& how, const ScanReconstructionResult& result,
                const RunFacts& facts, const std::string& memory_svg) {
  if (options.html.empty()) return;
  ReportContents page;
  page.title = "Reconstruction of " + how.kspace;
  page.command_line = options.words;
  if (!page.command_line.empty()) page.command_line.front() = "palimpsest";
  page.facts = page_facts(r, how, regularizer_texts(options), result, facts);
  page.images.emplace_back(
      "image " + r.layout().result_dims().str() + " " + to_string(result.image.shape()),
      result.image);
  ChartLine residual{"residual", {}}, objective{"objective", {}};
  for (const Record& record : result.history) {
    residual.values.push_back(record.residual);
    objective.values.push_back(record.objective);
  }
  page.convergence = {residual, objective};
  for (const Stage& stage : r.plan().stages) {
    ReportStage shown{stage.name, stage.bytes};
    if (stage.name == "sorting") shown.seconds = result.read_s;
    if (stage.name == "sensitivities") shown.seconds = result.sensitivities_s;
    if (stage.name == "solve") shown.seconds = result.solve_s;
    if (stage.name == "writing") shown.seconds = facts.write_s;
    page.stages.push_back(shown);
  }
  page.memory_svg = memory_svg;
  page.operator_tree = r.operator_text();
  outputs.write(options.html,
                [&](const std::string& path) { write_text_atomically(path, html_report(page)); });
}

}  // namespace palimpsest::cli
