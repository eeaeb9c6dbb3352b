// SPDX-License-Identifier: Apache-2.0
// palimpsest compare: images against a known one, as a table and side by side.

#include <cmath>

#include "palimpsest/cli/images/image_files.hpp"
#include "palimpsest/cli/prelude.hpp"
#include "palimpsest/cli/recon/recon_facts.hpp"
#include "palimpsest/imaging/inputs.hpp"
#include "palimpsest/imaging/quality/metrics.hpp"
#include "palimpsest/imaging/results/montage.hpp"
#include "palimpsest/io/png.hpp"

namespace palimpsest::cli {
namespace {

struct CompareOptions {
  std::string reference, output, mask;
  std::vector<std::string> images, labels, reports;
  double error_scale = 5;
  bool complex = false, json = false;
};

struct Compared {
  std::string label;
  Tensor image;
  Quality quality;
  ReconFacts facts;
};

// Without axes of one element, which formats keep or not: but two at least.
Tensor read_values(const std::string& path) {
  Tensor image = read_image(path).data;
  for (index_t axis = static_cast<index_t>(image.rank()) - 1; axis >= 0; --axis) {
    if (image.rank() > 2 && image.shape(axis) == 1) image = image.squeeze(axis);
  }
  Tensor values =
      image.to(is_complex(image.dtype()) ? DType::complex64 : DType::float32).contiguous();
  check_finite(path, values, image_values());
  return values;
}

std::optional<Tensor> read_mask(const CompareOptions& options, const Tensor& reference) {
  if (options.mask.empty()) return std::nullopt;
  if (options.mask == "none") return Tensor::full<bool>(reference.shape(), true);
  const Tensor values = magnitude(read_values(options.mask));
  if (values.shape() != reference.shape()) {
    throw UsageError(fmt::format("[{}] got the shape {}, expected {} like the reference",
                                 options.mask, to_string(values.shape()),
                                 to_string(reference.shape())));
  }
  Tensor mask = Tensor::empty(values.shape(), DType::bool_);
  std::transform(values.data<float>(), values.data<float>() + values.numel(),
                 mask.mutable_data<bool>(), [](float v) { return v != 0; });
  return mask;
}

std::vector<Compared> read_entries(const CompareOptions& options, const Tensor& reference) {
  if (options.labels.size() > options.images.size() ||
      options.reports.size() > options.images.size()) {
    throw UsageError(
        fmt::format("[--label, --report] got {} and {} for {} images, expected at most one each",
                    options.labels.size(), options.reports.size(), options.images.size()));
  }
  const QualityOptions how = {.mask = read_mask(options, reference), .complex = options.complex};
  std::vector<Compared> entries;
  for (std::size_t i = 0; i < options.images.size(); ++i) {
    Compared entry;
    entry.label = i < options.labels.size() ? options.labels[i] : options.images[i];
    entry.image = read_values(options.images[i]);
    entry.quality = image_quality(reference, entry.image, how);
    if (i < options.reports.size()) entry.facts = read_recon_facts(options.reports[i]);
    entries.push_back(std::move(entry));
  }
  return entries;
}

// |factor x|, and |factor x - reference| of values or of magnitudes.
Tensor scaled(const Compared& entry) {
  Tensor result = magnitude(entry.image);
  const auto factor = static_cast<float>(std::abs(entry.quality.factor));
  float* values = result.mutable_data<float>();
  std::for_each(values, values + result.numel(), [factor](float& v) { v *= factor; });
  return result;
}

Tensor error_of(const Compared& entry, const Tensor& reference, const CompareOptions& options) {
  const Tensor known = (options.complex ? reference : magnitude(reference)).to(DType::complex64);
  const Tensor found =
      (options.complex ? entry.image : magnitude(entry.image)).to(DType::complex64);
  const auto *r = known.data<std::complex<float>>(), *x = found.data<std::complex<float>>();
  const auto factor = std::complex<float>(entry.quality.factor);
  const auto by = static_cast<float>(options.error_scale);
  Tensor result = Tensor::empty(known.shape(), DType::float32);
  float* values = result.mutable_data<float>();
  for (index_t i = 0, end = result.numel(); i < end; ++i)
    values[i] = by * std::abs(factor * x[i] - r[i]);
  return result;
}

// The plane in the middle of a volume.
Tensor middle_plane(Tensor x) {
  while (x.rank() > 2) x = x.select(0, x.shape(0) / 2);
  return x;
}

Tensor picture(const CompareOptions& options, const Tensor& reference,
               const std::vector<Compared>& entries) {
  std::vector<Panel> panels = {{middle_plane(magnitude(reference)), "reference"}};
  for (const Compared& entry : entries) {
    panels.push_back({middle_plane(scaled(entry)), entry.label,
                      fmt::format("NRMSE {:.4f}", entry.quality.nrmse)});
  }
  panels.push_back({middle_plane(error_of(entries.back(), reference, options)),
                    fmt::format("{:g}x error", options.error_scale)});
  return montage(panels, {.columns = static_cast<index_t>(panels.size()),
                          .high = quantile(magnitude(reference), 1)});
}

std::string comparison_table(const std::vector<Compared>& entries) {
  std::vector<std::vector<std::string>> rows = {
      {"", "NRMSE", "PSNR (dB)", "SSIM", "factor", "seconds", "announced peak", "measured peak"}};
  const bool has_facts = std::any_of(entries.begin(), entries.end(),
                                     [](const Compared& e) { return e.facts.is_known; });
  if (!has_facts) rows.front().resize(5);
  for (const Compared& entry : entries) {
    const Quality& q = entry.quality;
    const std::string factor =
        q.factor.imag() == 0 ? fmt::format("{:.4g}", q.factor.real())
                             : fmt::format("{:.4g}{:+.4g}i", q.factor.real(), q.factor.imag());
    rows.push_back({entry.label, fmt::format("{:.4f}", q.nrmse), fmt::format("{:.2f}", q.psnr_db),
                    fmt::format("{:.4f}", q.ssim), factor});
    if (!entry.facts.is_known) continue;
    rows.back().push_back(fmt::format("{:.2f}", entry.facts.seconds));
    rows.back().push_back(with_commas(entry.facts.announced_peak_bytes) + " B");
    rows.back().push_back(with_commas(entry.facts.measured_peak_bytes) + " B");
  }
  return aligned_table(rows);
}

void print_json(const std::vector<Compared>& entries) {
  std::vector<JsonReport> list;
  for (const Compared& entry : entries) {
    const Quality& q = entry.quality;
    JsonReport one;
    one.set("label", entry.label).set("nrmse", q.nrmse).set("psnr_db", q.psnr_db);
    one.set("ssim", q.ssim).set("scale", q.factor.real()).set("points", q.points);
    if (q.factor.imag() != 0) one.set("scale_imag", q.factor.imag());
    if (entry.facts.is_known) {
      one.set("seconds", entry.facts.seconds);
      one.set("announced_peak_bytes", entry.facts.announced_peak_bytes);
      one.set("measured_peak_bytes", entry.facts.measured_peak_bytes);
    }
    list.push_back(one);
  }
  print(JsonReport().set("images", list).text());
}

void print_summary(const CompareOptions& options, const std::vector<Compared>& entries,
                   index_t n_all) {
  print(comparison_table(entries));
  print(
      fmt::format("NRMSE: |a x - r| / |r| of {}, a the factor that makes it least, over {} of {} "
                  "points\n",
                  options.complex ? "complex values" : "magnitudes",
                  with_commas(entries.front().quality.points), with_commas(n_all)));
  if (options.output.empty()) return;
  std::string text = "wrote " + options.output + ": reference";
  for (const Compared& entry : entries) text += " | " + entry.label;
  print(fmt::format("{} | {:g}x error of {}\n", text, options.error_scale, entries.back().label));
}

void compare(const CompareOptions& options) {
  if (!(options.error_scale > 0)) {
    throw UsageError(
        fmt::format("[--error-scale] got {}, expected a positive number", options.error_scale));
  }
  Outputs outputs;
  outputs.reads(options.reference);
  if (options.mask != "none") outputs.reads(options.mask);
  for (const auto* inputs : {&options.images, &options.reports}) {
    for (const std::string& path : *inputs) outputs.reads(path);
  }
  outputs.announce(options.output, ".png");
  const Tensor reference = read_values(options.reference);
  const std::vector<Compared> entries = read_entries(options, reference);
  outputs.write(options.output, [&](const std::string& path) {
    write_png(path, picture(options, reference, entries));
  });
  options.json ? print_json(entries) : print_summary(options, entries, reference.numel());
  outputs.commit();
}

}  // namespace

void add_compare(CommandLine& line) {
  const auto options = std::make_shared<CompareOptions>();
  line.add("compare", "Compare images with a known one: a table and a picture side by side")
      .argument("REFERENCE", options->reference,
                "The known image, (.., y, x): NPY, CFL, NIfTI, ISMRMRD images or PNG")
      .arguments("IMAGE", options->images, "One or more images of the same size")
      .option("-o,--output", "FILE.png", options->output,
              "Output: reference, images and the error of the last one, side by side; of volumes "
              "the middle plane")
      .option("--mask", "FILE", options->mask,
              "Points that count: where this image is not 0, or `none` for all; default: where the "
              "reference exceeds 5 % of its 99th percentile")
      .flag("--complex", options->complex,
            "Comparison of complex values with a complex factor, not of magnitudes")
      .option("--label", "TEXT", options->labels, "Name of an image, in their order; repeatable")
      .option("--report", "FILE.json", options->reports,
              "Report of recon for an image, in their order; repeatable")
      .option("--error-scale", "X", options->error_scale, "Factor of the error in the picture")
      .flag("--json", options->json, "Table as JSON on standard output")
      .needs("--error-scale", {"--output"})
      .action([options] { compare(*options); });
}

}  // namespace palimpsest::cli
