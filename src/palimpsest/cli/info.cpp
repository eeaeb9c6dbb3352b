// SPDX-License-Identifier: Apache-2.0
// palimpsest info: the contents of a file.

#include <utility>

#include "palimpsest/cli/prelude.hpp"
#include "palimpsest/imaging/inputs.hpp"
#include "palimpsest/imaging/results/image_formats.hpp"
#include "palimpsest/io/cartesian.hpp"
#include "palimpsest/io/cfl.hpp"
#include "palimpsest/io/format.hpp"
#include "palimpsest/io/ismrmrd.hpp"
#include "palimpsest/io/ismrmrd_images.hpp"
#include "palimpsest/io/nifti.hpp"
#include "palimpsest/io/npy.hpp"
#include "palimpsest/io/png.hpp"

namespace palimpsest::cli {
namespace {

struct InfoOptions {
  std::string file;
  bool json = false;
};

// Facts, written as lines of text and as JSON, in one order.
class Facts {
 public:
  void add(const std::string& name, const std::string& value) {
    rows_.push_back({name, value});
    json_.set(name, value);
  }
  void add(const std::string& name, index_t value) {
    rows_.push_back({name, with_commas(value)});
    json_.set(name, value);
  }
  /// A list of counters: `8: 0 to 7`, `3: 0, 2, 5`.
  void add_counters(const std::string& name, const std::vector<index_t>& values) {
    constexpr std::size_t kMostShown = 8;
    std::string text = fmt::format("{}", values.size());
    const bool is_range = values.size() > 2 &&
                          values.back() - values.front() == static_cast<index_t>(values.size()) - 1;
    if (is_range || values.size() > kMostShown) {
      text += fmt::format(": {} to {}", values.front(), values.back());
    } else if (!values.empty()) {
      text += fmt::format(": {}", fmt::join(values, ", "));
    }
    rows_.push_back({name, text});
    json_.set(name, std::vector<double>(values.begin(), values.end()));
  }
  void add(const std::string& name, const std::vector<double>& values) {
    add_list(name, values, " x ");
  }
  void add_list(const std::string& name, const std::vector<double>& values,
                const char* between = ", ") {
    rows_.push_back({name, fmt::format("{:g}", fmt::join(values, between))});
    json_.set(name, values);
  }
  void print(bool as_json) const {
    if (as_json) return cli::print(json_.text());
    for (const auto& [name, value] : rows_) {
      cli::print(fmt::format("{:<21} {}\n", name, value.empty() ? "none given" : value));
    }
  }

 private:
  std::vector<std::pair<std::string, std::string>> rows_;
  JsonReport json_;
};

void add_array(Facts& facts, const Tensor& data) {
  facts.add("shape", to_string(data.shape()));
  facts.add("dtype", std::string(name_of(data.dtype())));
  facts.add("bytes", data.nbytes());
}

std::string matrix_text(const EncodingSpace& space) {
  return fmt::format("{} x {} x {} over {:g} x {:g} x {:g} mm", space.matrix[0], space.matrix[1],
                     space.matrix[2], space.field_of_view_mm[0], space.field_of_view_mm[1],
                     space.field_of_view_mm[2]);
}

void add_raw_scan(Facts& facts, const RawScan& scan) {
  const RawScanHeader& header = scan.header;
  const ScanContents contents = contents_of(scan);
  index_t n_samples = 0;
  for (const Readout& readout : scan.readouts) n_samples += readout.n_coils * readout.n_samples;
  facts.add("coils", header.n_coils);
  facts.add("readouts", static_cast<index_t>(scan.readouts.size()));
  facts.add("imaging readouts", contents.imaging_readouts);
  facts.add("calibration readouts", contents.calibration_readouts);
  facts.add("calibration mode", header.calibration_mode);
  facts.add("noise readouts", contents.noise_readouts);
  facts.add_counters("slices", contents.slices);
  facts.add_counters("contrasts", contents.contrasts);
  facts.add_counters("phases", contents.phases);
  facts.add_counters("sets", contents.sets);
  facts.add_counters("repetitions", contents.repetitions);
  facts.add_counters("averages", contents.averages);
  facts.add_counters("segments", contents.segments);
  facts.add("trajectory", header.trajectory);
  facts.add("encoded", matrix_text(header.encoded));
  facts.add("recon", matrix_text(header.recon));
  facts.add("bytes", byte_count(Extents{n_samples}, DType::complex64));
}

// Position of the middle and directions of the axes, LPS, and the time between two frames.
void add_place(Facts& facts, const Image& image) {
  if (image.time_step_s > 0) facts.add("time step in s", std::vector<double>{image.time_step_s});
  if (!image.affine_lps) return;
  const Orientation place = orientation_of(*image.affine_lps, spatial_extents(image));
  const auto numbers = [](const auto& v) { return std::vector<double>(v.begin(), v.end()); };
  facts.add_list("position in mm, LPS", numbers(place.position_mm));
  constexpr const char* kAxes[] = {"direction of x", "direction of y", "direction of z"};
  for (std::size_t d = 0; d < 3; ++d) facts.add_list(kAxes[d], numbers(place.directions[d]));
}

void add_images(Facts& facts, const Image& image, std::size_t n_images) {
  facts.add("images", static_cast<index_t>(n_images));
  facts.add("axes", image.names.str());
  add_array(facts, image.data);
  facts.add("spacing in mm",
            std::vector<double>{image.voxel_mm[2], image.voxel_mm[1], image.voxel_mm[0]});
  add_place(facts, image);
  facts.add("description", image.description);
}

void add_ismrmrd(Facts& facts, const std::string& file) {
  const IsmrmrdContents contents = ismrmrd_contents(file);
  for (const std::string& series : contents.image_series) facts.add("image series", series);
  if (contents.has_scan) add_raw_scan(facts, RawScanFile(file).contents());
  if (contents.image_series.empty()) return;
  const IsmrmrdImages images = read_ismrmrd_images(file);
  add_images(facts, from_ismrmrd(images), images.heads.size());
}

void add_image(Facts& facts, const NiftiImage& image) {
  add_array(facts, image.data);
  facts.add("spacing in mm", std::vector<double>(image.spacing_mm.begin(), image.spacing_mm.end()));
  add_place(facts, from_nifti(image));
  facts.add("description", image.description);
}

void info(const InfoOptions& options) {
  const std::string& file = options.file;
  Outputs().reads(file);
  Facts facts;
  read_input(file, [&] {
    const FileFormat format = detect_format(file);
    facts.add("file", file);
    facts.add("format", std::string(format_name(file)));
    switch (format) {
      case FileFormat::npy:
        return add_array(facts, read_npy(file));
      case FileFormat::cfl:
        return add_array(facts, read_cfl(file));
      case FileFormat::png:
        return add_array(facts, read_png(file));
      case FileFormat::ismrmrd:
        return add_ismrmrd(facts, file);
      case FileFormat::nifti:
        return add_image(facts, read_nifti(file));
      case FileFormat::image:
        return add_image(facts, detect_image_format(file)->read(file));
    }
  });
  facts.print(options.json);
}

}  // namespace

void add_info(CommandLine& line) {
  const auto options = std::make_shared<InfoOptions>();
  line.add("info", "List the contents of a file: a scan, images or an array in any known format")
      .argument("FILE", options->file, "File to describe")
      .flag("--json", options->json, "Facts as JSON on standard output")
      .action([options] { info(*options); });
}

}  // namespace palimpsest::cli
