// SPDX-License-Identifier: Apache-2.0
// palimpsest show: an image as a picture, or in the terminal.

#include <cmath>

#include "palimpsest/cli/images/image_files.hpp"
#include "palimpsest/cli/prelude.hpp"
#include "palimpsest/imaging/inputs.hpp"
#include "palimpsest/imaging/results/montage.hpp"

namespace palimpsest::cli {
namespace {

struct ShowOptions {
  std::string input, output, part = "magnitude", window;
  index_t columns = 0, bits = 8;
};

// `LOW:HIGH`.
void take_window(const std::string& text, WriteImageOptions& how) {
  if (text.empty()) return;
  const std::size_t colon = text.find(':');
  try {
    std::size_t used = 0;
    if (colon == std::string::npos) throw std::invalid_argument("");
    how.window_low = std::stod(text.substr(0, colon), &used);
    if (used != colon) throw std::invalid_argument("");
    const std::string high = text.substr(colon + 1);
    how.window_high = std::stod(high, &used);
    if (used != high.size()) throw std::invalid_argument("");
  } catch (const std::logic_error&) {
    throw UsageError(fmt::format("[--window] got '{}', expected two numbers such as 0:1.5", text));
  }
  if (!std::isfinite(*how.window_low) || !std::isfinite(*how.window_high) ||
      !(*how.window_low < *how.window_high)) {
    throw UsageError(
        fmt::format("[--window] got '{}', expected finite numbers that increase", text));
  }
}

// The values, checked; complex64 or float32.
Image read_finite(const std::string& path) {
  Image image = read_image(path);
  const DType dtype = is_complex(image.data.dtype()) ? DType::complex64 : DType::float32;
  image.data = image.data.to(dtype).contiguous();
  if (image.data.numel() == 0) {
    throw UsageError(
        fmt::format("[{}] is empty: got the shape {}", path, to_string(image.data.shape())));
  }
  check_finite(path, image.data, image_values());
  return image;
}

void preview(const Image& image, const ShowOptions& options, ImagePart part) {
  constexpr index_t kUsualColumns = 72;
  Tensor plane = radiological(image).data;
  const Extents shape = image.data.shape();
  while (plane.rank() > 2) plane = plane.select(0, plane.shape(0) / 2);
  plane = part_of(plane, part);
  print(text_preview(plane, options.columns > 0 ? options.columns : kUsualColumns));
  print(fmt::format("{} {}, {} of the middle plane, white from {:.4g} on\n", image.names.str(),
                    to_string(shape), options.part, white_level(plane)));
}

void show(const ShowOptions& options) {
  expect_between("--columns", options.columns, 0);
  expect_bits(options.bits);
  WriteImageOptions how = {
      .part = parse_image_part(options.part), .bits = options.bits, .columns = options.columns};
  take_window(options.window, how);
  Outputs outputs;
  outputs.reads(options.input);
  announce_image(outputs, options.output, {".png"});
  const Image image = read_finite(options.input);
  if (options.output.empty()) {
    preview(image, options, *how.part);
  } else {
    write_image(outputs, options.output, image, how);
    print("wrote " + options.output + "\n");
  }
  outputs.commit();
}

}  // namespace

void add_show(CommandLine& line) {
  const auto options = std::make_shared<ShowOptions>();
  line.add("show", "Show an image: a picture of all planes, or a preview in the terminal")
      .argument("IMAGE", options->input, "Image (.., y, x): NPY, CFL, NIfTI, ISMRMRD images or PNG")
      .option("-o,--output", "FILE.png", options->output,
              "Output: one image, or all planes side by side with one window; default: the middle "
              "plane as characters on standard output")
      .choice("--part", {"magnitude", "phase", "real", "imag"}, options->part,
              "Part of complex values")
      .option("--columns", "N", options->columns,
              "Planes in a row of the picture, or characters in a line; 0: as many as fit")
      .option("--window", "LOW:HIGH", options->window,
              "Values that are black and white; default: from 0 to the value that half a percent "
              "exceeds")
      .option("--bits", "N", options->bits, "PNG bit depth of a single plane: 8 or 16")
      .needs("--bits", {"--output"})
      .needs("--window", {"--output"})
      .action([options] { show(*options); });
}

}  // namespace palimpsest::cli
