// SPDX-License-Identifier: Apache-2.0
// palimpsest convert: the same numbers in another format.

#include <fmt/ranges.h>

#include <charconv>

#include "palimpsest/cli/images/image_files.hpp"
#include "palimpsest/cli/prelude.hpp"
#include "palimpsest/imaging/inputs.hpp"
#include "palimpsest/io/cartesian.hpp"
#include "palimpsest/io/format.hpp"
#include "palimpsest/io/ismrmrd_images.hpp"

namespace palimpsest::cli {
namespace {

struct ConvertOptions {
  std::string input, output, axes, part;
  std::vector<std::string> slices;
  index_t bits = 8, columns = 0;
};

// `Nz=10:20`, or `Nz=10` for one element; the axis then disappears.
struct Cut {
  std::string axis;
  index_t first = 0;
  std::optional<index_t> last = {};  // behind the last element
};

std::optional<index_t> number_of(std::string_view text) {
  index_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

Cut parse_cut(const std::string& text) {
  const std::size_t equals = text.find('='), colon = text.find(':');
  const auto fail = [&] {
    return UsageError(
        fmt::format("[--slice] got '{}', expected an axis and a range such as "
                    "Nz=10:20, or Nz=10",
                    text));
  };
  if (equals == std::string::npos || equals == 0) throw fail();
  Cut cut{text.substr(0, equals)};
  const bool is_range = colon != std::string::npos;
  const auto first = number_of(
      std::string_view(text).substr(equals + 1, is_range ? colon - equals - 1 : std::string::npos));
  if (!first) throw fail();
  cut.first = *first;
  if (is_range) {
    cut.last = number_of(std::string_view(text).substr(colon + 1));
    if (!cut.last || *cut.last <= cut.first) throw fail();
  }
  return cut;
}

// The voxel that becomes the first one is where it was.
void move_place(Image& image, const Cut& cut) {
  if (!image.affine_lps) return;
  const char* const names[] = {"Nx", "Ny", "Nz"};
  for (std::size_t d = 0; d < 3; ++d) {
    const bool is_slices = d == 2 && cut.axis == "S" && !image.names.contains("Nz");
    if (cut.axis != names[d] && !is_slices) continue;
    for (auto& row : *image.affine_lps) row[3] += row[d] * static_cast<double>(cut.first);
  }
}

// The facts of the slices or frames that stay; the middle of each image moves with its edges.
void cut_facts(Image& image, const Cut& cut, index_t n, index_t last) {
  if (facts_at(image, 0, 0) == nullptr) return image.facts.clear();
  const index_t n_slices = slices_of(image), n_frames = frames_of(image);
  const char* const names[] = {"Nx", "Ny", "Nz"};
  std::vector<ImageFacts> kept;
  for (index_t s = 0; s < n_slices; ++s) {
    for (index_t t = 0; t < n_frames; ++t) {
      const index_t at = cut.axis == "S" ? s : t;
      if ((cut.axis == "S" || cut.axis == "T") && (at < cut.first || at >= last)) continue;
      ImageFacts& facts = kept.emplace_back(*facts_at(image, s, t));
      for (std::size_t d = 0; d < 3; ++d) {
        if (cut.axis != names[d]) continue;
        const auto shift =
            static_cast<double>(cut.first + (last - cut.first) / 2 - n / 2) * image.voxel_mm[d];
        for (std::size_t row = 0; row < 3; ++row) {
          facts.place.position_mm[row] += shift * facts.place.directions[d][row];
        }
      }
    }
  }
  image.facts = std::move(kept);
}

void apply_cut(Image& image, const Cut& cut) {
  const auto axis = image.names.index_of(NamedDimension(cut.axis));
  if (!axis) {
    throw UsageError(fmt::format("[--slice] no axis {} in {}", cut.axis, image.names.str()));
  }
  const auto at = static_cast<index_t>(*axis);
  const index_t n = image.data.shape(at), last = cut.last.value_or(cut.first + 1);
  if (last > n) {
    throw UsageError(fmt::format("[--slice] outside the array: got {}, expected 0 to {} along {}",
                                 last - 1, n - 1, cut.axis));
  }
  const bool has_one_place = are_one_volume(image.facts, slices_of(image));
  move_place(image, cut);
  cut_facts(image, cut, n, last);
  image.data = image.data.narrow(at, cut.first, last - cut.first);
  if (!cut.last && cut.axis != "Nx" && cut.axis != "Ny") {
    image.data = image.data.squeeze(at);
    image.names = image.names.without(image.names[*axis]);
  }
  if (!has_one_place) take_place_of_facts(image);
}

// The samples of a raw scan on the grid of k-space. Cuts of counters select the readouts.
Image sorted_scan(const std::string& path, std::vector<Cut>& cuts) {
  CartesianOptions which;
  const std::pair<const char*, std::optional<index_t>*> counters[] = {
      {"S", &which.slice}, {"T", &which.repetition}, {"B5", &which.contrast}, {"M", &which.set}};
  for (const auto& [name, target] : counters) {
    const auto cut = std::find_if(cuts.begin(), cuts.end(),
                                  [name = name](const Cut& c) { return c.axis == name; });
    if (cut == cuts.end() || cut->last) continue;
    *target = cut->first;
    cuts.erase(cut);
  }
  const RawScan scan = read_ismrmrd(path);
  Image image;
  image.data = cartesian_kspace(scan, which).kspace;
  image.names = Dims("C Nz Ny Nx");
  image.header = scan.header.xml;
  for (std::size_t d = 0; d < 3; ++d) {
    image.voxel_mm[d] = scan.header.encoded.field_of_view_mm[d] /
                        static_cast<double>(scan.header.encoded.matrix[d]);
  }
  if (image.data.shape(1) == 1) {
    image.data = image.data.squeeze(1);
    image.names = Dims("C Ny Nx");
  }
  return image;
}

Image read_cut(const std::string& path, std::vector<Cut>& cuts) {
  const FileFormat format = read_input(path, [&] { return detect_format(path); });
  if (format != FileFormat::ismrmrd) return read_image(path);
  const IsmrmrdContents contents = read_input(path, [&] { return ismrmrd_contents(path); });
  if (!contents.has_scan || !contents.image_series.empty()) return read_image(path);
  return read_input(path, [&] { return sorted_scan(path, cuts); });
}

void convert(const ConvertOptions& options) {
  expect_bits(options.bits);
  std::vector<Cut> cuts;
  for (const std::string& text : options.slices) cuts.push_back(parse_cut(text));
  expect_between("--columns", options.columns, 0);
  WriteImageOptions how = {.bits = options.bits, .columns = options.columns};
  if (!options.part.empty()) how.part = parse_image_part(options.part);
  Outputs outputs;
  outputs.reads(options.input);
  announce_image(outputs, options.output);
  Image image = read_cut(options.input, cuts);
  const Dims names = image.names;
  name_axes(image, options.axes);
  if (!(image.names == names)) image.facts.clear();
  for (const Cut& cut : cuts) apply_cut(image, cut);
  const auto files = files_of_image(options.output, image.facts, slices_of(image));
  for (const std::string& file : files) {
    if (files.size() > 1) announce_image(outputs, file);
  }
  write_image(outputs, options.output, image, how);
  for (const std::string& note : notes_of_image(options.output, image.facts, slices_of(image))) {
    print(note + "\n");
  }
  print(fmt::format("wrote {}: {} {}, {}\n", fmt::join(files, ", "), image.names.str(),
                    to_string(image.data.shape()), written_elements(options.output, image, how)));
  outputs.commit();
}

}  // namespace

void add_convert(CommandLine& line) {
  const auto options = std::make_shared<ConvertOptions>();
  Command command = line.add(
      "convert", "Convert between formats, cut, take parts of complex values, sort raw scans");
  command
      .argument("INPUT", options->input,
                "NPY, CFL, NIfTI, ISMRMRD images or raw scan (to k-space), PNG")
      .argument(
          "OUTPUT", options->output,
          fmt::format("Output; its ending is the format: {}", fmt::join(image_endings(), ", ")))
      .option("--axes", "NAMES", options->axes,
              "Names of the input's axes, slow to fast, such as T,C,Ny,Nx; see `help dimensions`")
      .option("--slice", "AXIS=A:B", options->slices,
              "Elements A to B - 1 along an axis, or AXIS=A for one of them; of a raw scan S, T "
              "(repetition), M (set) and B5 (contrast) select the readouts; repeatable")
      .action([options] { convert(*options); });
  add_written_image(command, options->part, options->bits, options->columns);
}

}  // namespace palimpsest::cli
