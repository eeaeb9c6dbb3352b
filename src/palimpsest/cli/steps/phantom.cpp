// SPDX-License-Identifier: Apache-2.0
// palimpsest phantom: known images, and simulated measurements of them.
#include "palimpsest/imaging/phantom.hpp"

#include "palimpsest/cli/steps/prelude.hpp"
#include "palimpsest/imaging/coil_maps.hpp"

namespace palimpsest::cli {
namespace {

struct PhantomCommand {
  std::string output, size = "128,128", trajectory, save_maps;
  index_t coils = 1;
  bool kspace = false;
  CommonOptions common;
};

// Coil images (C, y, x) of the phantom, or the phantom itself.
Tensor images_of(const PhantomCommand& options, index_t ny, index_t nx, Tensor& maps) {
  const Tensor image = ellipse_image(modified_shepp_logan(), ny, nx).to(DType::complex64);
  if (options.coils == 1) return image;
  maps = ring_coil_maps(options.coils, ny, nx);
  Tensor result = maps.clone();
  auto* values = result.mutable_data<std::complex<float>>();
  const auto* object = image.data<std::complex<float>>();
  for (index_t i = 0, end = result.numel(); i < end; ++i) values[i] *= object[i % (ny * nx)];
  return result;
}

void phantom(const PhantomCommand& options) {
  constexpr index_t kMostCoils = 256;
  Run run("phantom", options.common);
  Outputs& outputs = run.outputs();
  outputs.reads(options.trajectory);
  announce_image(outputs, options.output);
  announce_image(outputs, options.save_maps, array_endings());
  const std::vector<index_t> n = parse_numbers("--size", options.size, {2});
  expect_between("--coils", options.coils, 1, kMostCoils);
  const index_t ny = n[0], nx = n[1], points = ny * nx;
  run.facts().set("rows", ny).set("columns", nx).set("coils", options.coils);
  const bool is_exact = options.kspace && options.coils == 1;
  Tensor trajectory;
  if (!options.trajectory.empty()) trajectory = read_trajectory(options.trajectory);
  const index_t samples = trajectory.defined() ? trajectory.numel() : points;
  const index_t images = options.coils == 1 ? points * 12 : (2 * options.coils + 1) * points * 8;
  const index_t peak = is_exact ? samples * 20 : images + (options.kspace ? images : 0);
  if (run.announce(peak)) return run.finish("");
  Image result;
  Tensor maps;
  if (trajectory.defined()) {
    result.data = ellipse_kspace(modified_shepp_logan(), trajectory, ny, nx);
  } else if (is_exact) {
    result.data = ellipse_kspace(modified_shepp_logan(), ny, nx);
  } else {
    result.data = images_of(options, ny, nx, maps);
    if (options.kspace) result.data = transform(result.data, {1, 2});
  }
  result.names = result.data.rank() == 3 ? Dims("C Ny Nx") : Dims("Ny Nx");
  if (!options.kspace && options.coils == 1) result.data = part_of(result.data, ImagePart::real);
  write_image(outputs, options.output, result);
  if (!options.save_maps.empty()) {
    Image map_image;
    map_image.data = maps;
    map_image.names = Dims("C Ny Nx");
    write_image(outputs, options.save_maps, map_image);
  }
  run.finish(fmt::format("Shepp-Logan phantom {}\n", to_string(result.data.shape())));
}

}  // namespace

void add_phantom(CommandLine& line) {
  const auto options = std::make_shared<PhantomCommand>();
  Command command = line.add("phantom", "Make the Shepp-Logan phantom as image or in k-space");
  command.argument("OUTPUT", options->output, "Output: ([coil,] y, x), or samples of --trajectory")
      .option("--size", "NY,NX", options->size, "Extents of the image in pixels")
      .option("--coils", "N", options->coils, "Coils on a ring around it, 1 to 256; 1: no profile")
      .flag(
          "--kspace", options->kspace,
          "k-space: of one coil the exact transform of the ellipses, of several that of the image")
      .option("--trajectory", "FILE", options->trajectory,
              "Exact samples along a trajectory (readouts, samples, 2)")
      .option("--save-maps", "FILE", options->save_maps, "Output: the coil maps, (coil, y, x)")
      .needs("--trajectory", {"--kspace"})
      .needs("--save-maps", {"--coils"})
      .excludes("--trajectory", {"--coils"})
      .action([options] { phantom(*options); });
  add_common(command, options->common);
}

}  // namespace palimpsest::cli
