// SPDX-License-Identifier: Apache-2.0
// palimpsest whiten: makes the coils' noise uncorrelated, of variance 1.

#include <cmath>
#include <complex>

#include "palimpsest/cli/steps/prelude.hpp"
#include "palimpsest/imaging/noise.hpp"
#include "palimpsest/io/cartesian.hpp"

namespace palimpsest::cli {
namespace {

struct WhitenCommand {
  std::string input, output, noise, covariance, save_covariance;
  bool from_border = false;
  CommonOptions common;
};

// complex64 (coil, sample) or (readout, coil, sample); of CFL (coil, sample) too.
Tensor read_noise(const std::string& path, index_t coils) {
  const Image image = read_image(path);
  Tensor noise = image.data;
  // BART's noise has coils, and samples along any of x, y, z.
  if (image.names.front() == NamedDimension("C") && noise.rank() > 2) {
    noise = noise.reshape({noise.shape(0), noise.numel() / std::max<index_t>(noise.shape(0), 1)});
  }
  if (!is_complex(noise.dtype()) || noise.rank() > 3 || noise.shape(-2) != coils) {
    throw UsageError(fmt::format(
        "[{}] got {} {}, expected complex noise (coil, sample) or (readout, coil, sample) of {} "
        "coils",
        path, name_of(noise.dtype()), to_string(noise.shape()), coils));
  }
  noise = noise.to(DType::complex64).contiguous();
  check_finite(path, noise, {"the noise", "Try to leave these readouts out"});
  return noise;
}

void check_covariance(const std::string& path, const Tensor& matrix) {
  const index_t n = matrix.shape(0);
  const auto* v = matrix.data<std::complex<double>>();
  for (index_t i = 0; i < n * n; ++i) {
    const std::complex<double> a = v[i], b = std::conj(v[i % n * n + i / n]);
    // Of single precision at least. False for NaN too.
    const double scale = std::sqrt(std::abs(v[i / n * (n + 1)]) * std::abs(v[i % n * (n + 1)]));
    if (std::abs(a - b) <= 1e-5 * scale && std::isfinite(scale)) continue;
    throw UsageError(
        fmt::format("[--covariance] {}: element ({}, {}) is {:g}{:+g}i, expected finite numbers "
                    "and a Hermitian "
                    "matrix",
                    path, i / n, i % n, a.real(), a.imag()));
  }
}

// The given covariance, or that of the scan's own noise readouts.
Tensor covariance_of(const WhitenCommand& options, const KspaceFile& file) {
  const index_t coils = file.kspace.shape(0);
  if (!options.covariance.empty()) {
    const Tensor matrix =
        read_input(options.covariance, [&] { return read_npy(options.covariance); });
    if (matrix.shape() != Extents{coils, coils}) {
      throw UsageError(fmt::format("[{}] got the shape {}, expected ({}, {}) for {} coils",
                                   options.covariance, to_string(matrix.shape()), coils, coils,
                                   coils));
    }
    const Tensor covariance = matrix.to(DType::complex128).contiguous();
    check_covariance(options.covariance, covariance);
    return covariance;
  }
  if (!options.noise.empty()) return noise_covariance(read_noise(options.noise, coils), {});
  if (options.from_border) return {};
  if (file.is_raw) return noise_covariance(read_ismrmrd(options.input));
  return {};
}

void whiten_file(const WhitenCommand& options) {
  Run run("whiten", options.common);
  Outputs& outputs = run.outputs();
  for (const std::string& path : {options.input, options.noise, options.covariance}) {
    outputs.reads(path);
  }
  announce_image(outputs, options.output, array_endings());
  outputs.announce(options.save_covariance, ".npy");
  const KspaceFile file = read_kspace(options.input);
  // Noise is gone when k-space is whitened, but counts if it is larger.
  const Tensor covariance = covariance_of(options, file);
  if (!covariance.defined() && !options.from_border) {
    throw UsageError(
        fmt::format("[{}] has no noise readouts. Try --noise FILE, --covariance FILE, "
                    "or --from-border",
                    options.input));
  }
  run.facts().set("input", options.input).set("coils", file.kspace.shape(0));
  // From the border, its samples are copied: at most 10 % along each axis.
  const index_t covariance_bytes =
      covariance.defined() ? covariance.nbytes() : file.kspace.nbytes();
  if (run.announce(file.held_bytes + covariance_bytes + file.kspace.nbytes())) {
    return run.finish("");
  }
  std::optional<Tensor> psi;
  if (covariance.defined()) psi = covariance;
  Image result;
  result.data = whiten(file.kspace, psi, {.from_border = options.from_border});
  result.names = file.names;
  write_image(outputs, options.output, result);
  if (covariance.defined()) {
    outputs.write(options.save_covariance,
                  [&](const std::string& path) { write_npy(path, covariance); });
  }
  run.finish(fmt::format("whitened {} coils\n", file.kspace.shape(0)));
}

}  // namespace

void add_whiten(CommandLine& line) {
  const auto options = std::make_shared<WhitenCommand>();
  Command command =
      line.add("whiten", "Make the noise of the coils uncorrelated, of variance 1 per sample");
  command.argument("KSPACE", options->input, "(coil, [z,] y, x): NPY, CFL, or raw scan")
      .argument("OUTPUT", options->output, "Output: the same, .npy or .cfl")
      .option(
          "--noise", "FILE", options->noise,
          "Noise (coil, sample) or (readout, coil, sample); default: the noise readouts of a raw "
          "scan")
      .option("--covariance", "FILE", options->covariance,
              "Covariance of the noise, (coil, coil), in place of noise")
      .flag("--from-border", options->from_border,
            "Takes the noise from the outer 5 % of k-space along each axis")
      .option("--save-covariance", "FILE.npy", options->save_covariance,
              "Output: the covariance, (coil, coil)")
      .excludes("--noise", {"--covariance", "--from-border"})
      .excludes("--from-border", {"--covariance", "--save-covariance"})
      .action([options] { whiten_file(*options); });
  add_common(command, options->common);
}

}  // namespace palimpsest::cli
