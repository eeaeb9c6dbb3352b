// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/recon/recon_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>
#include <complex>
#include <filesystem>
#include <fstream>

#include "palimpsest/cli/text.hpp"
#include "palimpsest/distributed/team_plan.hpp"
#include "palimpsest/imaging/sensitivities.hpp"

namespace palimpsest::cli {
namespace {

const char* method_name(const ScanReconstruction& r) {
  const ReconstructMethod method = r.plan().method;
  return method == ReconstructMethod::cg ? "cg-sense" : name_of(method);
}

bool is_iterative(const ScanReconstruction& r) {
  return r.plan().method != ReconstructMethod::adjoint;
}

// The sizes and the number of tiles of an item's operator; those of the adjoint if nothing is
// solved.
struct Cut {
  const DimMap& sizes;
  index_t tiles;
};
Cut cut_of(const ScanReconstruction& r, bool is_solve) {
  if (!is_solve) return {r.adjoint().sizes, r.adjoint().tiles};
  return {r.solve().sizes, r.solve().tiles};
}

std::string cut_text(const Cut& cut) {
  if (cut.sizes.empty()) return "uncut";
  std::string text;
  for (const auto& [d, n] : cut.sizes) {
    text += fmt::format("{}{} by {}", text.empty() ? "" : ", ", d.str(), n);
  }
  return fmt::format("{} tiles: {}", cut.tiles, text);
}

// The extents that are used of the centre.
std::pair<index_t, index_t> used_center(const CalibrationArea& center) {
  const index_t most = EspiritOptions{}.calibration;
  return {std::min(center.extent[1], most), std::min(center.extent[2], most)};
}

JsonReport sizes_of(const ScanReconstruction& r) {
  const ScanLayout& layout = r.layout();
  const Extents item = layout.item_shape(), wanted = layout.wanted_of_item();
  const std::size_t rows = item.size() - 2;
  JsonReport sizes;
  sizes.set("coils", layout.n_coils()).set("planes", layout.n_items());
  sizes.set("rows", item[rows]).set("columns", item[rows + 1]);
  sizes.set("image_rows", wanted[rows]).set("image_columns", wanted[rows + 1]);
  sizes.set("image", to_string(layout.result_shape()));
  if (layout.format == FileFormat::ismrmrd) {
    const auto& voxel = layout.geometry.voxel_mm;
    sizes.set("voxel_mm", std::vector<double>(voxel.begin(), voxel.end()));
  }
  sizes.set("slices", layout.n_slices()).set("frames", layout.n_frames());
  if (layout.coefficients > 0) sizes.set("coefficients", layout.coefficients);
  sizes.set("repetitions", layout.n_repetitions).set("averages", layout.n_averages);
  sizes.set("samples_per_coil", layout.samples_per_coil());
  sizes.set("acceleration", layout.acceleration());
  const auto& [planes, rows_of_center, columns_of_center] = r.center().extent;
  sizes.set("center_rows", rows_of_center).set("center_columns", columns_of_center);
  return sizes;
}

// The weight of |x|^2 / 2.
double lambda_of(const ScanReconstructionOptions& options) {
  double lambda = 0;
  for (const Regularizer& r : options.regularizers) {
    if (r.term == "l2") lambda += r.lambda;
  }
  return lambda;
}

JsonReport plan_report(const ScanReconstruction& r) {
  const ScanReconstructionPlan& plan = r.plan();
  JsonReport report, stages, tiles;
  const Cut cut = cut_of(r, is_iterative(r));
  for (const auto& [d, n] : cut.sizes) tiles.set(d.str(), n);
  for (const Stage& stage : plan.stages) stages.set(stage.name, stage.bytes);
  if (plan.budget) report.set("budget_bytes", *plan.budget);
  report.set("peak_bytes", plan.peak_bytes)
      .set("large_arrays", plan.in_memory ? "memory" : "files");
  report.set("solves", plan.solves).set("frames_of_solve", plan.frames);
  report.set("tiles", cut.tiles).set("tile_sizes", tiles).set("stages", stages);
  if (!is_iterative(r)) return report;
  const SolvePlan& solve = r.solve();
  JsonReport parts;
  parts.set("state", solve.state_bytes).set("workspace", solve.peak_bytes - solve.state_bytes);
  parts.set("operator", solve.operator_bytes).set("streamed", solve.streamed_bytes);
  report.set("solve", parts);
  return report;
}

// The reason for the method.
const char* method_reason(const ScanReconstruction& r, const ScanReconstructionOptions& options) {
  if (options.method != ReconstructMethod::automatic) return "asked for";
  switch (r.plan().method) {
    case ReconstructMethod::cg:
      return "all terms are quadratic";
    case ReconstructMethod::fista:
      return "one function of the image besides the data";
    default:
      return ball_of(options.regularizers) != nullptr
                 ? "the data are a constraint"
                 : "functions of differences, or several functions";
  }
}

JsonReport header_report(const RawScanHeader& header) {
  const auto numbers = [](const auto& v) { return std::vector<double>(v.begin(), v.end()); };
  JsonReport report;
  report.set("trajectory", header.trajectory).set("coils", header.n_coils);
  report.set("encoded_matrix", numbers(header.encoded.matrix));
  report.set("encoded_field_of_view_mm", numbers(header.encoded.field_of_view_mm));
  report.set("recon_matrix", numbers(header.recon.matrix));
  report.set("recon_field_of_view_mm", numbers(header.recon.field_of_view_mm));
  report.set("acceleration", numbers(header.acceleration));
  report.set("calibration_mode", header.calibration_mode);
  report.set("h1_frequency_hz", header.h1_frequency_hz).set("institution", header.institution);
  return report;
}

std::vector<JsonReport> history_report(const std::vector<Record>& history) {
  std::vector<JsonReport> result;
  for (const Record& record : history) {
    result.emplace_back();
    result.back().set("iteration", record.iteration).set("residual", record.residual);
    result.back().set("objective", record.objective).set("seconds", record.seconds);
  }
  return result;
}

// A CFL, named by either of its files or by their stem, is two.
std::vector<std::string> files_of(const std::string& path) {
  for (const char* ending : {".cfl", ".hdr"}) {
    if (!path.ends_with(ending)) continue;
    const std::string stem = path.substr(0, path.size() - 4);
    return {stem + ".hdr", stem + ".cfl"};
  }
  std::error_code none;
  if (std::filesystem::exists(path, none)) return {path};
  return {path + ".hdr", path + ".cfl"};
}

}  // namespace

void add_inputs(JsonReport& report, const ScanReconstructionOptions& options) {
  const std::pair<const char*, std::string> inputs[] = {
      {"k-space", options.kspace},  {"maps", options.maps},
      {"start", options.start},     {"trajectory", options.scan.trajectory},
      {"weights", options.weights}, {"basis", options.basis},
      {"phase", options.phase},     {"resume", options.resume}};
  std::vector<JsonReport> found;
  for (const auto& [role, path] : inputs) {
    if (path.empty()) continue;
    for (const std::string& file : files_of(path)) {
      std::error_code none;
      const auto bytes = std::filesystem::file_size(file, none);
      found.emplace_back();
      found.back().set("role", role).set("path", file);
      found.back().set("bytes", none ? index_t{0} : static_cast<index_t>(bytes));
      found.back().set("xxh3", file_digest(file));
    }
  }
  report.set("inputs", found);
}

JsonReport report_of_plan(const std::string& command, const ScanReconstruction& r,
                          const ScanReconstructionOptions& options,
                          const std::vector<std::string>& regularizers) {
  JsonReport report;
  report.set("version", 2).set("command", command);
  report.set("input", options.kspace).set("format", name_of(r.layout().format));
  if (!r.layout().notes.empty()) report.set("notes", r.layout().notes);
  if (r.layout().format == FileFormat::ismrmrd) {
    report.set("header", header_report(r.layout().header));
  }
  report.set("method", method_name(r)).set("method_reason", method_reason(r, options));
  report.set("maps", options.maps.empty() ? "estimated" : options.maps);
  if (r.uses_calibration()) report.set("calibration", "separate lines");
  report.set("sizes", sizes_of(r)).set("lambda", lambda_of(options));
  report.set("regularizers", regularizers);
  report.set("tolerance", tolerance_of(options.tolerance));
  report.set("plan", plan_report(r));
  report.set("streamed_bytes", is_iterative(r) ? r.solve().streamed_bytes : 0);
  report.set("announced_peak_bytes", r.plan().peak_bytes);
  return report;
}

void add_run(JsonReport& report, const ScanReconstruction& r,
             const ScanReconstructionResult& result, const RunFacts& facts) {
  JsonReport seconds;
  seconds.set("read", result.read_s).set("sensitivities", result.sensitivities_s);
  seconds.set("solve", result.solve_s).set("write", facts.write_s);
  report.set("status", std::string(is_iterative(r) ? name_of(result.status) : "done"));
  if (is_iterative(r)) report.set("reason", result.reason);
  report.set("scale", result.scale).set("iterations", result.iterations);
  std::vector<double> residuals;
  for (const Record& record : result.history) residuals.push_back(record.residual);
  report.set("residuals", residuals).set("history", history_report(result.history));
  JsonReport applications;
  for (const auto& [name, count] : result.applications) applications.set(name, count);
  report.set("applications", applications);
  report.set("measured_peak_bytes", facts.measured_peak_bytes);
  report.set("process_peak_bytes", process_peak_bytes()).set("seconds", seconds);
}

std::vector<std::pair<std::string, std::string>> page_facts(
    const ScanReconstruction& r, const ScanReconstructionOptions& options,
    const std::vector<std::string>& regularizers, const ScanReconstructionResult& result,
    const RunFacts& facts) {
  const ScanLayout& layout = r.layout();
  const Geometry& g = layout.geometry;
  std::vector<std::pair<std::string, std::string>> rows;
  rows.emplace_back("input", fmt::format("{} ({})", options.kspace, name_of(layout.format)));
  rows.emplace_back(
      "image", fmt::format("{} {}", layout.result_dims().str(), to_string(layout.result_shape())));
  rows.emplace_back("coils", with_commas(layout.n_coils()));
  rows.emplace_back("samples of a coil", with_commas(layout.samples_per_coil()));
  rows.emplace_back("undersampling", fmt::format("{:.2f}", layout.acceleration()));
  if (layout.format == FileFormat::ismrmrd) {
    rows.emplace_back("trajectory", layout.header.trajectory);
    rows.emplace_back("voxel", fmt::format("{:g} mm", fmt::join(g.voxel_mm, " x ")));
    rows.emplace_back("position, LPS", fmt::format("{:g} mm", fmt::join(g.position_mm, ", ")));
    if (!layout.header.institution.empty()) {
      rows.emplace_back("institution", layout.header.institution);
    }
  }
  for (const std::string& note : layout.notes) rows.emplace_back("note", note);
  if (r.plan().partial) rows.emplace_back("partial Fourier", name_of(options.partial));
  if (layout.coefficients > 0) {
    rows.emplace_back("basis", fmt::format("{}: {} of {}", options.basis,
                                           counted(layout.coefficients, "coefficient"),
                                           counted(layout.n_frames(), "frame")));
  }
  if (!options.phase.empty()) rows.emplace_back("phase of the image", options.phase);
  rows.emplace_back("coil maps", options.maps.empty() ? "estimated" : options.maps);
  rows.emplace_back("regularizers", fmt::format("{}", fmt::join(regularizers, ", ")));
  rows.emplace_back("method", fmt::format("{}: {}", method_name(r), method_reason(r, options)));
  rows.emplace_back("scale", fmt::format("{:g}", result.scale));
  if (is_iterative(r)) {
    rows.emplace_back("end", fmt::format("{} after {}: {}", name_of(result.status),
                                         counted(result.iterations, "iteration"), result.reason));
    for (const auto& [name, count] : result.applications) {
      rows.emplace_back("applications of " + name, with_commas(count));
    }
    rows.emplace_back("solves", with_commas(r.plan().solves));
  }
  rows.emplace_back("peak, announced", with_commas(r.plan().peak_bytes) + " bytes");
  rows.emplace_back("peak, measured", with_commas(facts.measured_peak_bytes) + " bytes");
  rows.emplace_back("peak of the process", with_commas(process_peak_bytes()) + " bytes");
  rows.emplace_back("k-space and maps", r.plan().in_memory ? "in memory" : "in files");
  return rows;
}

std::vector<RankReport> reports_of_ranks(const ScanReconstruction& r,
                                         const ScanReconstructionOptions& options) {
  std::vector<RankReport> reports;
  const int n = r.team().size();
  if (n == 1) return reports;
  const Extents image = r.layout().result_shape();
  const index_t pixels = element_count(image), solves = r.plan().solves;
  for (int rank = 0; rank < n; ++rank) {
    const Team seen = Team::pretend(r.team().axes(), rank);
    const index_t own = part_range(solves, seen.coordinate("solve"), seen.size("solve")).size();
    const index_t coils =
        part_range(r.layout().n_coils(), seen.coordinate("coil"), seen.size("coil")).size();
    const bool is_sender = seen.coordinate("solve") > 0 && seen.coordinate("coil") == 0;
    const index_t gathered =
        is_sender ? pixels / solves * own * static_cast<index_t>(sizeof(std::complex<float>)) : 0;
    const bool is_same = !reports.empty() && reports.back().solves == own &&
                         reports.back().coils == coils && reports.back().gathered_bytes == gathered;
    if (is_same) {
      ++reports.back().ranks;
      continue;
    }
    ScanReconstructionOptions of_rank = options;
    of_rank.team = seen;
    const ScanReconstruction planned(of_rank);
    reports.push_back(
        {rank, 1, own, coils, planned.plan().peak_bytes, traffic_of(planned.step()), gathered});
  }
  return reports;
}

void add_ranks(JsonReport& report, const std::vector<RankReport>& ranks) {
  if (ranks.empty()) return;
  JsonReport table;
  for (const RankReport& r : ranks) {
    JsonReport line;
    line.set("ranks", r.ranks).set("solves", r.solves).set("coils", r.coils);
    line.set("peak_bytes", r.peak_bytes).set("gathered_bytes", r.gathered_bytes);
    line.set("sent_bytes_per_iteration", r.traffic.bytes);
    line.set("messages_per_iteration", r.traffic.messages);
    line.set("synchronisations_per_iteration", r.traffic.synchronisations);
    table.set(std::to_string(r.rank), line);
  }
  report.set("ranks", table);
}

std::string ranks_text(const std::vector<RankReport>& ranks) {
  if (ranks.empty()) return {};
  std::string text =
      fmt::format("{:<16}{:>8}{:>8}{:>18}{:>18}{:>12}{:>8}{:>18}\n", "ranks", "solves", "coils",
                  "peak bytes", "sent/iteration", "messages", "syncs", "image bytes sent");
  for (const RankReport& r : ranks) {
    const std::string which = r.ranks == 1 ? std::to_string(r.rank)
                                           : fmt::format("{} to {}", r.rank, r.rank + r.ranks - 1);
    text += fmt::format("{:<16}{:>8}{:>8}{:>18}{:>18}{:>12}{:>8}{:>18}\n", which, r.solves, r.coils,
                        with_commas(r.peak_bytes), with_commas(r.traffic.bytes), r.traffic.messages,
                        r.traffic.synchronisations, with_commas(r.gathered_bytes));
  }
  return text;
}

// The missing side of k-space, and its treatment. Empty if no side is missing.
std::string partial_text(const ScanReconstruction& r, const ScanReconstructionOptions& options) {
  const ScanLayout& layout = r.layout();
  if (layout.has_trajectory()) return {};
  std::optional<PartialLines> lines = r.plan().partial;
  try {
    if (!lines) lines = partial_lines(layout.mask);
  } catch (const ValueError&) {
    return {};
  }
  if (!lines) return {};
  return fmt::format("one side of k-space is missing along {}, {} of {} lines: {}\n",
                     layout.item_dims()[static_cast<std::size_t>(lines->axis)].str(),
                     lines->extent - lines->acquired, lines->extent,
                     r.plan().partial ? name_of(options.partial)
                                      : "zeros, or --partial for images of smooth phase");
}

std::string scan_text(const ScanReconstruction& r, const ScanReconstructionOptions& options) {
  const ScanLayout& layout = r.layout();
  std::string extents;
  for (const index_t n : layout.item_shape()) {
    extents += fmt::format("{}{}", extents.empty() ? "" : " x ", n);
  }
  if (layout.n_items() > 1) extents += fmt::format(" x {} positions", layout.n_items());
  if (layout.n_slices() > 1) extents += fmt::format(", {} slices", layout.n_slices());
  if (!layout.frames.empty()) extents += fmt::format(", {} frames", layout.n_frames());
  if (layout.coefficients > 0) {
    extents += " of " + counted(layout.coefficients, "coefficient");
  }
  std::string text = fmt::format("{}: {}, {}, {:.2f}-fold undersampled\n", options.kspace,
                                 counted(layout.n_coils(), "coil"), extents, layout.acceleration());
  // Frames of so many readouts are made of readouts in their order, whatever their counters are.
  if (layout.n_repetitions * layout.n_averages > 1 && options.scan.readouts_per_frame == 0) {
    const std::string joined = counted(layout.n_repetitions, "repetition") + " and " +
                               counted(layout.n_averages, "average");
    text += layout.has_trajectory() ? "readouts of " + joined + " in one image\n"
                                    : "mean of " + joined + "\n";
  }
  if (layout.format == FileFormat::ismrmrd) {
    const Extents image = layout.image_shape();
    const auto& voxel = layout.geometry.voxel_mm;
    std::vector<index_t> pixels(image.begin(), image.end());
    std::reverse(pixels.begin(), pixels.end());
    text += fmt::format("image: {} pixels of {:.4g} mm\n", fmt::join(pixels, " x "),
                        fmt::join(voxel, " x "));
  }
  for (const std::string& note : layout.notes) text += note + "\n";
  text += partial_text(r, options);
  if (options.maps.empty()) {
    const auto [rows, columns] = used_center(r.center());
    text += fmt::format("coil sensitivities estimated from the {} x {} centre{}\n", rows, columns,
                        r.uses_calibration() ? " of separate calibration lines" : "");
  }
  return text;
}

std::string plan_text(const ScanReconstruction& r) {
  const ScanReconstructionPlan& plan = r.plan();
  std::string text;
  const auto row = [&](const std::string& name, index_t bytes, const std::string& note = "") {
    std::string line = fmt::format("{:<18}{:>16}  {}", name, with_commas(bytes), note);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  row("peak", plan.peak_bytes,
      plan.budget ? "of " + with_commas(*plan.budget) + " bytes" : "bytes, no limit");
  for (const Stage& stage : plan.stages) {
    const bool is_solve = stage.name == "solve";
    const bool is_cut = is_solve || stage.name == "adjoint";
    row(stage.name, stage.bytes, is_cut ? cut_text(cut_of(r, is_solve)) : "");
    if (!is_solve) continue;
    const SolvePlan& solve = r.solve();
    row("  state", solve.state_bytes, "vectors of the iteration");
    row("  workspace", solve.peak_bytes - solve.state_bytes, "of one iteration");
    row("  operator", solve.operator_bytes, "maps and weights in memory");
    row("  streamed", solve.streamed_bytes, "of files, at a time");
    row("  held beside it", stage.bytes - solve.total_bytes(), "right-hand side, image, k-space");
  }
  text += fmt::format("k-space and maps lie {}\n", plan.in_memory ? "in memory" : "in files");
  return text;
}

std::string run_text(const ScanReconstruction& r, const ScanReconstructionResult& result,
                     const RunFacts& facts) {
  std::string text;
  if (!result.history.empty()) {
    text += fmt::format("{}: {}, residual {:.1e} ({}: {})\n", method_name(r),
                        counted(result.iterations, "iteration"), result.history.back().residual,
                        name_of(result.status), result.reason);
  }
  if (result.kept_energy < 1) {
    text += fmt::format("energy kept in {}: {:.2f} %\n",
                        counted(r.layout().n_coils(), "virtual coil"), 100 * result.kept_energy);
  }
  text += fmt::format(
      "peak: announced {} bytes, measured {} bytes; the process, with its code and libraries, {} "
      "bytes\n",
      with_commas(r.plan().peak_bytes), with_commas(facts.measured_peak_bytes),
      with_commas(process_peak_bytes()));
  text += fmt::format("seconds: read {:.2f}, sensitivities {:.2f}, solve {:.2f}, write {:.2f}\n",
                      result.read_s, result.sensitivities_s, result.solve_s, facts.write_s);
  return text;
}

index_t process_peak_bytes() {
  // Not RUSAGE_SELF: its maximum counts the process that started this one, too. Raw files are read
  // by processes of their own.
  rusage children{};
  ::getrusage(RUSAGE_CHILDREN, &children);
  const index_t largest_child = index_t{1024} * children.ru_maxrss;
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    index_t kib = 0;
    if (word == "VmHWM:" && status >> kib) return std::max(kib * 1024, largest_child);
  }
  return largest_child;
}

}  // namespace palimpsest::cli
