// SPDX-License-Identifier: Apache-2.0
// palimpsest nufft: Fourier transform between images and samples along a trajectory.
#include <complex>

#include "palimpsest/cli/steps/prelude.hpp"
#include "palimpsest/imaging/reconstruct.hpp"
#include "palimpsest/imaging/trajectories.hpp"
#include "palimpsest/imaging/weights.hpp"
#include "palimpsest/solve/conjugate_gradients.hpp"

namespace palimpsest::cli {
namespace {

struct NufftCommand {
  std::string input, output, trajectory, size, weights;
  std::vector<std::string> terms;
  std::vector<Regularizer> regularizers;
  index_t iterations = 20;
  double lambda = 0;
  bool adjoint = false, inverse = false;
  CommonOptions common;
};

// The array with the axes (.., readouts, samples); BART's k-space has x = 1 at its end.
Tensor samples_of(const Image& image, const Tensor& trajectory, const std::string& path) {
  Tensor data = image.data;
  const index_t readouts = trajectory.shape(0), samples = trajectory.shape(1);
  if (data.rank() >= 3 && data.shape(-1) == 1 && data.shape(-2) == samples) data = data.squeeze(-1);
  if (data.rank() < 2 || data.shape(-1) != samples || data.shape(-2) != readouts) {
    throw UsageError(fmt::format("[{}] got the shape {}, expected (.., {}, {}) like the trajectory",
                                 path, to_string(data.shape()), readouts, samples));
  }
  return data;
}

Extents image_extents(const NufftCommand& options, const Image& image, std::size_t d) {
  const bool to_image = options.adjoint || options.inverse;
  if (!to_image) {
    if (image.data.rank() < d) {
      throw UsageError(fmt::format("[{}] got the shape {}, expected an image of {} axes",
                                   options.input, to_string(image.data.shape()), d));
    }
    const Extents& shape = image.data.shape();
    return {shape.end() - static_cast<std::ptrdiff_t>(d), shape.end()};
  }
  if (options.size.empty()) {
    throw UsageError("[--size] is needed for an image. Try --size 128,128");
  }
  const auto n = parse_numbers("--size", options.size, {d});
  return {n.begin(), n.end()};
}

// (readouts, samples), float32.
std::optional<Tensor> read_weights(const NufftCommand& options, const Tensor& trajectory) {
  if (options.weights.empty()) return std::nullopt;
  Tensor weights = read_image(options.weights).data;
  while (weights.rank() > 2 && weights.shape(-1) == 1) weights = weights.squeeze(-1);
  if (is_complex(weights.dtype())) weights = part_of(weights, ImagePart::real);
  const Extents expected{trajectory.shape(0), trajectory.shape(1)};
  if (weights.shape() != expected) {
    throw UsageError(fmt::format("[--weights] {} has the shape {}, expected {} like the trajectory",
                                 options.weights, to_string(weights.shape()), to_string(expected)));
  }
  weights = weights.to(DType::float32).contiguous();
  check_weights("--weights", weights);
  return weights;
}

Tensor computed(const NufftCommand& options, const Tensor& x, const Tensor& trajectory,
                const std::optional<Tensor>& weights, const Extents& image, const NamedLinop& A) {
  if (options.inverse) {
    return inverse_trajectory_transform(x, trajectory, image,
                                        {.iterations = static_cast<int>(options.iterations),
                                         .lambda = options.lambda,
                                         .regularizers = options.regularizers});
  }
  if (!options.adjoint) return A(x);
  return adjoint_image(A, x, weights);
}

// Peak bytes of one image with regularizers beside its samples.
index_t regularized_bytes(const Run& run, const NufftCommand& options, const Tensor& x,
                          const Tensor& trajectory, const Extents& image, const NamedLinop& A) {
  Extents coil = image;
  coil.insert(0, 1);
  const Tensor map = Tensor::full<std::complex<float>>(coil, 1);
  const Tensor one = x.reshape({-1, x.shape(-2), x.shape(-1)}).narrow(0, 0, 1);
  const SolvePlan plan = plan_reconstruct(one, map, {.trajectory = trajectory},
                                          {.regularizers = options.regularizers,
                                           .iterations = static_cast<int>(options.iterations),
                                           .tolerance = 0});
  const index_t adjoint = A.H().plan({DType::complex64, one.shape(), {}}).peak_bytes;
  // The model that finds the scale holds the operator's data, locations and an order of the samples
  // while the solver is made and runs; images pass from the adjoint to the solver.
  const index_t beside = 2 * trajectory.nbytes() + 4 * one.numel() + 5 * map.nbytes();
  const index_t making = run.peak_bytes() - run.held_bytes() + map.nbytes();
  return beside + std::max({making, plan.operator_bytes + plan.total_bytes(), adjoint});
}

// Peak bytes beside the operator and the input.
index_t working_bytes(const Run& run, const NufftCommand& options, const Tensor& x,
                      const Tensor& trajectory, const Extents& image, const NamedLinop& A) {
  const TensorType given{DType::complex64, x.shape(), {}};
  if (!options.adjoint && !options.inverse) return A.plan(given).peak_bytes;
  const index_t weighted = options.weights.empty() ? 0 : 3 * x.nbytes();
  if (options.adjoint) return weighted + A.H().plan(given).peak_bytes;
  const TensorType one{DType::complex64, image, {}};
  const index_t image_bytes = element_count(image) * 8;
  const index_t n_images = x.numel() / (x.shape(-1) * x.shape(-2));
  if (!options.regularizers.empty()) {
    return n_images * image_bytes + regularized_bytes(run, options, x, trajectory, image, A);
  }
  const Extents samples{x.shape(-2), x.shape(-1)};
  const index_t solve = plan_conjugate_gradients(A.N(), one).peak_bytes;
  const index_t start = A.H().plan({DType::complex64, samples, {}}).peak_bytes;
  return (n_images + 1) * image_bytes + std::max(solve, start);
}

void nufft(NufftCommand options) {
  for (const std::string& text : options.terms) {
    options.regularizers.push_back(parse_regularizer(text));
  }
  Run run("nufft", options.common);
  expect_iterations(options.iterations);
  expect_at_least("--lambda", options.lambda, 0);
  Outputs& outputs = run.outputs();
  for (const std::string& path : {options.input, options.trajectory, options.weights}) {
    outputs.reads(path);
  }
  announce_image(outputs, options.output, array_endings());
  if (options.trajectory.empty()) {
    throw UsageError("[--trajectory] is needed. Try palimpsest traj --help");
  }
  const Tensor trajectory = read_trajectory(options.trajectory);
  const Image input = read_image(options.input);
  const auto d = static_cast<std::size_t>(trajectory.shape(2));
  const Extents image = image_extents(options, input, d);
  const bool to_image = options.adjoint || options.inverse;
  Tensor x = to_image ? samples_of(input, trajectory, options.input) : input.data;
  x = x.to(DType::complex64).contiguous();
  check_finite(options.input, x, to_image ? kspace_values() : image_values());
  const std::optional<Tensor> weights = read_weights(options, trajectory);
  const std::string warning = unit_warning(trajectory, image);
  if (!warning.empty()) run.note(warning);
  const bool is_linear = options.inverse && options.regularizers.empty();
  const NamedLinop A = trajectory_transform(trajectory, image, is_linear);
  run.facts().set("input", options.input).set("readouts", trajectory.shape(0));
  const index_t work = working_bytes(run, options, x, trajectory, image, A);
  if (run.announce(std::max(run.peak_bytes(), run.held_bytes() + work))) return run.finish("");
  Image result;
  result.data = computed(options, x, trajectory, weights, image, A);
  if (to_image) {
    result.names = usual_names(result.data.rank());
    if (result.data.rank() == d + 1) {
      result.names = Dims("C") + usual_names(d);
    }
  } else {
    // Axes of BART: (coil, readouts, samples, 1).
    const bool is_cfl = options.output.ends_with(".cfl") || options.output.ends_with(".hdr");
    if (is_cfl) result.data = result.data.unsqueeze(-1);
    result.names = usual_names(result.data.rank());
    if (is_cfl && result.data.rank() == 4) result.names = Dims("C Nz Ny Nx");
  }
  write_image(outputs, options.output, result);
  run.finish(fmt::format("{} from {}\n", to_string(result.data.shape()), to_string(x.shape())));
}

}  // namespace

void add_nufft(CommandLine& line) {
  const auto options = std::make_shared<NufftCommand>();
  Command command =
      line.add("nufft", "Fourier transform between images and samples along a trajectory");
  command
      .argument("INPUT", options->input,
                "Image (.., y, x), or with --adjoint and --inverse samples (.., readouts, samples)")
      .argument("OUTPUT", options->output, "Output: the other one; .npy, .cfl, ..")
      .option("--trajectory", "FILE", options->trajectory,
              "Trajectory (readouts, samples, 2 or 3) in cycles per field of view; needed")
      .flag("--adjoint", options->adjoint, "From samples to an image, by the adjoint")
      .flag("--inverse", options->inverse,
            "From samples to an image, by conjugate gradients, or the method that fits --reg")
      .option("--size", "NY,NX", options->size, "Extents of the image, with NZ first in 3-D")
      .option("--weights", "FILE", options->weights,
              "Factors of the samples for --adjoint, (readouts, samples)")
      .option("--iterations", "N", options->iterations, "Iterations of --inverse, 1 or more")
      .option("--lambda", "X", options->lambda,
              "Weight of |image|^2 for --inverse, relative to the largest eigenvalue")
      .option(
          "--reg", "TERM", options->terms,
          "Regularizer of --inverse, as of recon, relative to the brightness of each image; may "
          "be given several times")
      .excludes("--adjoint", {"--inverse"})
      .needs("--size", {"--adjoint", "--inverse"})
      .needs("--weights", {"--adjoint"})
      .needs("--iterations", {"--inverse"})
      .needs("--lambda", {"--inverse"})
      .needs("--reg", {"--inverse"})
      .excludes("--lambda", {"--reg"})
      .action([options] { nufft(*options); });
  add_common(command, options->common);
}

}  // namespace palimpsest::cli
