// SPDX-License-Identifier: Apache-2.0
// palimpsest compare: images against a known one, as a table and side by side.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "palimpsest/cli/commands.hpp"
#include "palimpsest/cli/failure.hpp"
#include "palimpsest/cli/outputs.hpp"
#include "palimpsest/cli/recon/image.hpp"
#include "palimpsest/cli/recon/recon_facts.hpp"
#include "palimpsest/cli/standard_output.hpp"
#include "palimpsest/cli/text.hpp"
#include "palimpsest/imaging/inputs.hpp"
#include "palimpsest/io/npy.hpp"
#include "palimpsest/io/png.hpp"
#include "palimpsest/io/report.hpp"

namespace palimpsest::cli {
namespace {

struct CompareOptions {
  std::string reference, output;
  std::vector<std::string> images, labels, reports;
  double error_scale = 5;
  bool json = false;
};

constexpr index_t kGap = 8;

struct Entry {
  std::string label;
  Tensor magnitude;
  Comparison comparison;
  ReconFacts facts;
};

Tensor read_magnitude(const std::string& path) {
  const Tensor image = read_input(path, [&] { return read_npy(path); });
  if (image.rank() != 2) {
    throw UsageError(fmt::format("[{}] wrong rank: got the shape {}, expected an image (y, x)",
                                 path, to_string(image.shape())));
  }
  Tensor result = magnitude(image);
  check_finite(path, result, image_values());
  return result;
}

std::vector<Entry> read_entries(const CompareOptions& options, const Tensor& reference) {
  if (options.labels.size() > options.images.size() ||
      options.reports.size() > options.images.size()) {
    throw UsageError(
        fmt::format("[--label, --report] got {} and {} for {} images, expected at most one each",
                    options.labels.size(), options.reports.size(), options.images.size()));
  }
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < options.images.size(); ++i) {
    Entry entry;
    entry.label = i < options.labels.size() ? options.labels[i] : options.images[i];
    entry.magnitude = read_magnitude(options.images[i]);
    entry.comparison = compare_magnitudes(reference, entry.magnitude);
    if (i < options.reports.size()) entry.facts = read_recon_facts(options.reports[i]);
    entries.push_back(std::move(entry));
  }
  return entries;
}

// factor * x, or factor * |scale * x - other|.
Tensor scaled(const Tensor& x, double factor) {
  Tensor result = x.clone();
  float* values = result.mutable_data<float>();
  for (index_t i = 0; i < result.numel(); ++i) values[i] *= static_cast<float>(factor);
  return result;
}

Tensor scaled_error(const Entry& entry, const Tensor& reference, double factor) {
  Tensor result = scaled(entry.magnitude, entry.comparison.scale);
  float* values = result.mutable_data<float>();
  const float* known = reference.data<float>();
  for (index_t i = 0; i < result.numel(); ++i) {
    values[i] = static_cast<float>(factor) * std::abs(values[i] - known[i]);
  }
  return result;
}

Tensor picture(const CompareOptions& options, const Tensor& reference,
               const std::vector<Entry>& entries) {
  const double white = 1 / quantile(reference, 1);
  std::vector<Tensor> panels = {scaled(reference, white)};
  for (const Entry& entry : entries) {
    panels.push_back(scaled(entry.magnitude, entry.comparison.scale * white));
  }
  panels.push_back(scaled_error(entries.back(), reference, options.error_scale * white));
  return panels_in_a_row(panels, kGap);
}

std::string table(const std::vector<Entry>& entries) {
  std::vector<std::vector<std::string>> rows = {
      {"", "NRMSE", "seconds", "announced peak", "measured peak"}};
  const bool has_facts =
      std::any_of(entries.begin(), entries.end(), [](const Entry& e) { return e.facts.is_known; });
  if (!has_facts) rows.front().resize(2);
  for (const Entry& entry : entries) {
    rows.push_back({entry.label, fmt::format("{:.4f}", entry.comparison.nrmse)});
    if (!entry.facts.is_known) continue;
    rows.back().push_back(fmt::format("{:.2f}", entry.facts.seconds));
    rows.back().push_back(with_commas(entry.facts.announced_peak_bytes) + " B");
    rows.back().push_back(with_commas(entry.facts.measured_peak_bytes) + " B");
  }
  return aligned_table(rows);
}

void print_json(const std::vector<Entry>& entries) {
  std::vector<JsonReport> list;
  for (const Entry& entry : entries) {
    JsonReport one;
    one.set("label", entry.label).set("nrmse", entry.comparison.nrmse);
    one.set("scale", entry.comparison.scale);
    if (entry.facts.is_known) {
      one.set("seconds", entry.facts.seconds);
      one.set("announced_peak_bytes", entry.facts.announced_peak_bytes);
      one.set("measured_peak_bytes", entry.facts.measured_peak_bytes);
    }
    list.push_back(one);
  }
  print(JsonReport().set("images", list).text());
}

void print_summary(const CompareOptions& options, const std::vector<Entry>& entries) {
  print(table(entries));
  print("NRMSE: |s |x| - |reference|| / |reference|, s the factor that makes it least\n");
  if (options.output.empty()) return;
  std::string text = "wrote " + options.output + ": reference";
  for (const Entry& entry : entries) text += " | " + entry.label;
  print(fmt::format("{} | {:g}x error of {}\n", text, options.error_scale, entries.back().label));
}

void compare(const CompareOptions& options) {
  if (!(options.error_scale > 0)) {
    throw UsageError(
        fmt::format("[--error-scale] got {}, expected a positive number", options.error_scale));
  }
  Outputs outputs;
  outputs.reads(options.reference);
  for (const auto* inputs : {&options.images, &options.reports}) {
    for (const std::string& path : *inputs) outputs.reads(path);
  }
  outputs.announce(options.output, ".png");
  const Tensor reference = read_magnitude(options.reference);
  const std::vector<Entry> entries = read_entries(options, reference);
  outputs.write(options.output, [&](const std::string& path) {
    write_png(path, picture(options, reference, entries));
  });
  options.json ? print_json(entries) : print_summary(options, entries);
  outputs.commit();
}

}  // namespace

void add_compare(CommandLine& line) {
  const auto options = std::make_shared<CompareOptions>();
  line.add("compare", "Compare images with a known one: a table and a picture side by side")
      .argument("REFERENCE.npy", options->reference, "The known image, (y, x)")
      .arguments("IMAGE.npy", options->images, "One or more images of the same size")
      .option("-o,--output", "FILE.png", options->output,
              "Output: reference, images and the error of the last one, side by side")
      .option("--label", "TEXT", options->labels, "Name of an image, in their order; repeatable")
      .option("--report", "FILE.json", options->reports,
              "Report of recon for an image, in their order; repeatable")
      .option("--error-scale", "X", options->error_scale, "Factor of the error in the picture")
      .flag("--json", options->json, "Table as JSON on standard output")
      .needs("--error-scale", {"--output"})
      .action([options] { compare(*options); });
}

}  // namespace palimpsest::cli
