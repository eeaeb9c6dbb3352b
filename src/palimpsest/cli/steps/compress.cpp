// SPDX-License-Identifier: Apache-2.0
// palimpsest compress: fewer, virtual coils.

#include "palimpsest/cli/steps/prelude.hpp"
#include "palimpsest/imaging/coil_compression.hpp"

namespace palimpsest::cli {
namespace {

struct CompressCommand {
  std::string input, output, method = "svd", save_matrix, maps, save_maps;
  std::optional<index_t> to;
  std::optional<double> energy;
  CommonOptions common;
};

// Coil maps (coil, ..) or (set, coil, ..) that fit k-space.
Tensor read_maps(const std::string& path, const Extents& kspace) {
  Tensor maps = read_image(path).data;
  const index_t coil_axis = maps.rank() == kspace.size() + 1 ? 1 : 0;
  if (maps.rank() < kspace.size() || maps.rank() > kspace.size() + 1 ||
      maps.shape(coil_axis) != kspace[0]) {
    throw UsageError(
        fmt::format("[{}] got maps {} for k-space {}, expected ([set,] coil, [z,] y, x)", path,
                    to_string(maps.shape()), to_string(kspace)));
  }
  return maps;
}

// Maps go through the operator of images.
Tensor compressed_maps(const Tensor& given, const Compression& by, const Extents& kspace) {
  const Tensor maps = given.to(DType::complex64);
  if (maps.rank() == kspace.size()) return by.image(maps);
  Extents shape = by.image.output_shape(maps.select(0, 0).shape());
  shape.insert(0, maps.shape(0));
  Tensor result = Tensor::empty(shape, DType::complex64);
  for (index_t m = 0; m < maps.shape(0); ++m) {
    result.select(0, m).copy_from(by.image(maps.select(0, m)));
  }
  return result;
}

void compress(const CompressCommand& options) {
  Run run("compress", options.common);
  Outputs& outputs = run.outputs();
  outputs.reads(options.input);
  outputs.reads(options.maps);
  announce_image(outputs, options.output, array_endings());
  outputs.announce(options.save_matrix, ".npy");
  announce_image(outputs, options.save_maps, array_endings());
  const KspaceFile file = read_kspace(options.input);
  const CompressOptions how = {
      .to = options.to,
      .energy = options.energy,
      .method = options.method == "svd" ? CompressionMethod::svd : CompressionMethod::geometric};
  run.facts().set("input", options.input).set("method", options.method);
  run.facts().set("coils", file.kspace.shape(0));
  if (!options.maps.empty()) read_maps(options.maps, file.kspace.shape());  // refuses wrong ones
  if (run.announce(
          std::max(run.peak_bytes(), file.held_bytes + plan_compress_coils(file.kspace, how)))) {
    return run.finish("");
  }
  const CompressedKspace result = compress_coils(file.kspace, how);
  const Compression& by = result.compression;
  const index_t to = result.kspace.shape(0);
  double kept = 0;
  for (index_t k = 0; k < to; ++k) kept += by.energies[static_cast<std::size_t>(k)];
  run.facts().set("virtual_coils", to).set("energies", by.energies).set("kept_energy", kept);
  Image image;
  image.data = result.kspace;
  image.names = file.names;
  write_image(outputs, options.output, image);
  outputs.write(options.save_matrix,
                [&](const std::string& path) { write_npy(path, by.matrices); });
  if (!options.maps.empty()) {
    Image maps;
    const Extents& kspace = file.kspace.shape();
    maps.data = compressed_maps(read_maps(options.maps, kspace), by, kspace);
    maps.names = maps.data.rank() > file.names.size() ? Dims("M") + file.names : file.names;
    write_image(outputs, options.save_maps, maps);
  }
  run.finish(
      fmt::format("{} of {} coils keep {:.4f} of the energy\n", to, file.kspace.shape(0), kept));
}

}  // namespace

void add_compress(CommandLine& line) {
  const auto options = std::make_shared<CompressCommand>();
  Command command = line.add("compress", "Compress coils to fewer, virtual ones");
  command.argument("KSPACE", options->input, "(coil, [z,] y, x), whitened: NPY, CFL, or raw scan")
      .argument("OUTPUT", options->output, "Output: (virtual coil, [z,] y, x), .npy or .cfl")
      .option("--to", "N", options->to, "Virtual coils, 1 to the number of coils; default: all")
      .option("--energy", "X", options->energy,
              "Smallest number of coils that keeps this part of the energy, such as 0.98")
      .choice("--method", {"svd", "geometric"}, options->method,
              "One matrix for all, or one for each position along the readout")
      .option("--save-matrix", "FILE.npy", options->save_matrix,
              "Output: the matrices, ([x,] virtual coil, coil)")
      .option("--maps", "FILE", options->maps, "Coil maps that are compressed as well")
      .option("--save-maps", "FILE", options->save_maps, "Output: the compressed maps")
      .excludes("--to", {"--energy"})
      .needs("--maps", {"--save-maps"})
      .needs("--save-maps", {"--maps"})
      .action([options] { compress(*options); });
  add_common(command, options->common);
}

}  // namespace palimpsest::cli
