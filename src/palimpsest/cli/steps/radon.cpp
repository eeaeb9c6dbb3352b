// SPDX-License-Identifier: Apache-2.0
// palimpsest radon: sinograms of slices, and slices from sinograms or tilt series.
#include "palimpsest/linop/transforms/radon.hpp"

#include <cmath>
#include <fstream>
#include <numbers>

#include "palimpsest/cli/steps/prelude.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/solve/conjugate_gradients.hpp"
#include "palimpsest/solve/spectrum.hpp"

namespace palimpsest::cli {
namespace {

struct RadonCommand {
  std::string input, output, angles, size;
  std::optional<index_t> views, detectors;
  std::optional<double> center;
  double spacing = 1, lambda = 0;
  index_t iterations = 20;
  bool adjoint = false, filtered = false, inverse = false, projections = false;
  CommonOptions common;

  bool to_image() const { return adjoint || filtered || inverse; }
};

// The numbers of a text, in degrees.
std::vector<double> numbers_of_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw UsageError(fmt::format("[{}] cannot be read: no such file", path));
  std::vector<double> numbers;
  for (double number = 0; file >> number;) numbers.push_back(number);
  if (file.eof()) return numbers;
  throw UsageError(fmt::format(
      "[{}] is no list of angles: got something else behind {} numbers. Try a number on "
      "each line, or NPY",
      path, numbers.size()));
}

// In radians.
std::vector<double> angles_of(const RadonCommand& options) {
  if (options.angles.empty() == !options.views) {
    throw UsageError("[--angles] or --views is needed, one of them. Try --views 180");
  }
  std::vector<double> angles;
  if (options.views) {
    expect_between("--views", *options.views, 1, 1'000'000);
    for (index_t a = 0; a < *options.views; ++a) {
      angles.push_back(180.0 * static_cast<double>(a) / static_cast<double>(*options.views));
    }
  } else if (ends_in(options.angles, ".npy")) {
    const Tensor array = read_input(options.angles, [&] { return read_npy(options.angles); });
    if (array.rank() != 1 || is_complex(array.dtype())) {
      throw UsageError(fmt::format("[{}] got {} {}, expected a real array of one axis",
                                   options.angles, name_of(array.dtype()),
                                   to_string(array.shape())));
    }
    angles = array.to(DType::float64).to_vector<double>();
  } else {
    angles = numbers_of_text(options.angles);
  }
  const bool is_finite =
      std::all_of(angles.begin(), angles.end(), [](double a) { return std::isfinite(a); });
  if (angles.empty() || !is_finite) {
    throw UsageError(fmt::format("[{}] got {} angles, expected one or more, all finite",
                                 options.angles, angles.size()));
  }
  for (double& angle : angles) angle *= std::numbers::pi / 180;
  return angles;
}

// float32 or complex64 with the axes (.., rows, columns): images, or sinograms.
Tensor data_of(const RadonCommand& options, const Tensor& read, std::size_t n_angles) {
  const std::size_t least = options.projections ? 3 : 2;
  if (read.rank() < least || read.numel() == 0) {
    throw UsageError(fmt::format("[{}] got the shape {}, expected {} axes or more{}", options.input,
                                 to_string(read.shape()), least,
                                 options.projections ? " for --projections" : ""));
  }
  Tensor data = read.to(is_complex(read.dtype()) ? DType::complex64 : DType::float32);
  if (options.to_image()) {
    if (options.projections) data = data.transpose(-3, -2);
    if (data.shape(-2) != static_cast<index_t>(n_angles)) {
      throw UsageError(
          fmt::format("[{}] got {} angles for the shape {}, expected {} by --angles or --views",
                      options.input, n_angles, to_string(read.shape()), data.shape(-2)));
    }
  }
  return data.contiguous();
}

NamedLinop model_of(const RadonCommand& options, const Tensor& data, std::vector<double> angles) {
  RadonLinopOptions how{
      .n_detectors = options.detectors, .spacing = options.spacing, .center = options.center};
  expect_between("--detectors", options.detectors.value_or(1), 1);
  Extents size{data.shape(-2), data.shape(-1)};
  if (options.to_image()) {
    how.n_detectors = data.shape(-1);
    size = {data.shape(-1), data.shape(-1)};
    if (!options.size.empty()) {
      const auto given = parse_numbers("--size", options.size, {2});
      size = {given.begin(), given.end()};
    }
  }
  try {
    const Tensor list = Tensor::from(angles, Extents{std::ssize(angles)});
    return Radon(list.to(DType::float32), size, how);
  } catch (const ValueError& error) {
    throw UsageError(error.what());
  }
}

NamedLinop normal_of(const RadonCommand& options, const NamedLinop& A, const TensorType& image) {
  if (options.lambda <= 0) return A.N();
  return A.N() + options.lambda * operator_norm2(A, image).value * Identity(A.ishape());
}

void radon(const RadonCommand& options) {
  Run run("radon", options.common);
  Outputs& outputs = run.outputs();
  outputs.reads(options.input);
  outputs.reads(options.angles);
  announce_image(outputs, options.output, array_endings());
  const std::vector<double> angles = angles_of(options);
  Image image = read_image(options.input);
  Tensor x = data_of(options, image.data, angles.size());
  image.data = {};
  check_finite(options.input, x, image_values());
  const NamedLinop A = model_of(options, x, angles);
  const TensorType given{x.dtype(), x.shape(), {}};
  run.facts().set("input", options.input).set("angles", std::ssize(angles));
  Tensor y;
  if (options.inverse) {
    expect_iterations(options.iterations);
    expect_at_least("--lambda", options.lambda, 0);
    Extents extents = x.shape();
    for (std::size_t d = 0; d < 2; ++d) {
      extents[x.rank() - 2 + d] = A.size(d == 0 ? "Ny" : "Nx").value();
    }
    const TensorType result{x.dtype(), extents, {}};
    const NamedLinop N = normal_of(options, A, result);
    const CgOptions how{.tolerance = 0, .max_iterations = static_cast<int>(options.iterations)};
    // A^H keeps its workspace while the solver runs.
    const index_t peak = run.held_bytes() + A.H().plan(given).peak_bytes +
                         plan_conjugate_gradients(N, result, how).peak_bytes;
    if (run.announce(std::max(run.peak_bytes(), peak))) return run.finish("");
    y = conjugate_gradients(N, A.H()(x), how).x;
  } else {
    const NamedLinop B = options.filtered  ? filtered_back_projection(A)
                         : options.adjoint ? A.H()
                                           : A;
    // The spectrum of the ramp is kept beside the plan.
    const index_t ramp = options.filtered ? 32 * A.size("R").value() : 0;
    const index_t peak = run.held_bytes() + ramp + B.plan(given).peak_bytes;
    if (run.announce(std::max(run.peak_bytes(), peak))) return run.finish("");
    y = B(x);
  }
  if (options.projections && !options.to_image()) y = y.transpose(-3, -2);
  Image result{.data = y, .names = usual_names(y.rank()), .voxel_mm = image.voxel_mm};
  write_image(outputs, options.output, result);
  run.finish(fmt::format("{} from {}\n", to_string(y.shape()), to_string(x.shape())));
}

}  // namespace

void add_radon(CommandLine& line) {
  const auto options = std::make_shared<RadonCommand>();
  Command command =
      line.add("radon", "Sinograms of slices, and slices from sinograms or tilt series");
  command
      .argument(
          "INPUT", options->input,
          "Slices (.., y, x), or with --adjoint, --filtered and --inverse sinograms (.., angle, "
          "detector)")
      .argument("OUTPUT", options->output, "Output: the other one; .npy, .nii, .mrc, ..")
      .option("--angles", "FILE", options->angles,
              "Angles in degrees: a text with one on each line, or NPY (angle)")
      .option("--views", "N", options->views,
              "N angles from 0 to 180 degrees, in place of --angles")
      .option("--detectors", "N", options->detectors,
              "Elements of the detector; default: as many as see the whole slice")
      .option("--spacing", "X", options->spacing, "Distance between elements, in pixels")
      .option("--center", "X", options->center,
              "Element, from 0, in front of the middle of the slice; default: the middle one")
      .flag("--projections", options->projections,
            "Sinograms of a volume as projections (angle, row, detector), as cameras take them")
      .flag("--adjoint", options->adjoint, "Back projection")
      .flag("--filtered", options->filtered, "Back projection after a ramp filter")
      .flag("--inverse", options->inverse, "Least squares, by conjugate gradients")
      .option("--size", "NY,NX", options->size,
              "Extents of the slices; default: as many as elements of the detector")
      .option("--iterations", "N", options->iterations, "Iterations of --inverse, 1 or more")
      .option("--lambda", "X", options->lambda,
              "Weight of |slice|^2 relative to the largest eigenvalue, of --inverse")
      .excludes("--angles", {"--views"})
      .excludes("--adjoint", {"--filtered", "--inverse"})
      .excludes("--filtered", {"--inverse"})
      .excludes("--detectors", {"--adjoint", "--filtered", "--inverse"})
      .needs("--size", {"--adjoint", "--filtered", "--inverse"})
      .needs("--iterations", {"--inverse"})
      .needs("--lambda", {"--inverse"})
      .action([options] { radon(*options); });
  add_common(command, options->common);
}

}  // namespace palimpsest::cli
