// SPDX-License-Identifier: Apache-2.0
// palimpsest fft: Fourier transform along axes of an array.
#include "palimpsest/cli/steps/prelude.hpp"
#include "palimpsest/imaging/results/image_formats.hpp"
#include "palimpsest/io/format.hpp"

namespace palimpsest::cli {
namespace {

struct FftCommand {
  std::string input, output, dims = "Nx:Ny", axes, norm = "ortho";
  bool inverse = false, uncentered = false;
  CommonOptions common;
};

// A BART file has all of BART's dimensions: those of one point, which an Image lacks, need no
// transform.
std::vector<index_t> axes_of(const std::string& text, const Image& image, bool is_bart) {
  std::vector<index_t> axes;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t to = std::min(text.find(':', at), text.size());
    const std::string name = text.substr(at, to - at);
    at = to + 1;
    const auto found = std::find_if(image.names.begin(), image.names.end(),
                                    [&](const NamedDimension& d) { return d.text() == name; });
    if (found == image.names.end()) {
      if (is_bart && is_bart_dimension(name)) continue;
      throw UsageError(fmt::format("[--dims] '{}': no dimension {} in {}. Try --axes", text, name,
                                   image.names.str()));
    }
    axes.push_back(found - image.names.begin());
  }
  if (axes.empty()) {
    throw UsageError(fmt::format("[--dims] '{}': these have one point each, expected some of {}",
                                 text, image.names.str()));
  }
  return axes;
}

void fft(const FftCommand& options) {
  Run run("fft", options.common);
  Outputs& outputs = run.outputs();
  outputs.reads(options.input);
  announce_image(outputs, options.output, array_endings());
  Image image = read_image(options.input);
  name_axes(image, options.axes);
  const bool is_bart = options.axes.empty() && detect_format(options.input) == FileFormat::cfl;
  const std::vector<index_t> axes = axes_of(options.dims, image, is_bart);
  const DType dtype =
      image.data.dtype() == DType::complex128 || image.data.dtype() == DType::float64
          ? DType::complex128
          : DType::complex64;
  const index_t read_bytes = image.data.nbytes();
  const index_t input_bytes = image.data.dtype() == dtype
                                  ? read_bytes
                                  : image.data.numel() * static_cast<index_t>(item_size(dtype));
  const TransformOptions how = {
      .inverse = options.inverse,
      .norm = options.norm == "ortho" ? FftNorm::ortho : FftNorm::backward,
      .centered = !options.uncentered};
  const index_t planned = plan_transform({dtype, image.data.shape(), {}}, axes, how);
  // While it is converted, the array lies beside the file's.
  const bool converts = image.data.dtype() != dtype;
  const index_t peak =
      std::max(input_bytes + planned, converts ? read_bytes + input_bytes : index_t{0});
  run.facts().set("input", options.input).set("dims", options.dims);
  if (run.announce(peak)) return run.finish("");
  image.data = image.data.to(dtype);
  if (dtype == DType::complex64)
    check_finite(options.input, image.data.contiguous(), image_values());
  image.data = transform(image.data, axes, how);
  write_image(outputs, options.output, image);
  run.finish(fmt::format("{} {} along {}\n", image.names.str(), to_string(image.data.shape()),
                         options.dims));
}

}  // namespace

void add_fft(CommandLine& line) {
  const auto options = std::make_shared<FftCommand>();
  Command command = line.add("fft", "Fourier transform of an array along some of its axes");
  command.argument("INPUT", options->input, "Array: NPY, CFL, NIfTI or ISMRMRD images")
      .argument("OUTPUT", options->output, "Output: the same axes, complex")
      .option("--dims", "NAMES", options->dims, "Axes that are transformed, such as Nx:Ny:Nz")
      .option("--axes", "NAMES", options->axes,
              "Names of the input's axes, slow to fast, such as C,Ny,Nx")
      .flag("--inverse", options->inverse, "From k-space to the image")
      .choice("--norm", {"ortho", "backward"}, options->norm,
              "Unitary, or the whole factor in the inverse")
      .flag("--uncentered", options->uncentered, "Origin at index 0, not at n/2")
      .action([options] { fft(*options); });
  add_common(command, options->common);
}

}  // namespace palimpsest::cli
