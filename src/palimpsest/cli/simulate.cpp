// SPDX-License-Identifier: Apache-2.0
// palimpsest simulate: a raw scan of a known image, or the k-space that coils see of an image.

#include <array>
#include <cmath>
#include <complex>

#include "palimpsest/cli/images/image_files.hpp"
#include "palimpsest/cli/prelude.hpp"
#include "palimpsest/cli/recon/image.hpp"
#include "palimpsest/cli/steps/array_files.hpp"
#include "palimpsest/imaging/coil_maps.hpp"
#include "palimpsest/imaging/forward_model.hpp"
#include "palimpsest/imaging/inputs.hpp"
#include "palimpsest/imaging/patterns.hpp"
#include "palimpsest/imaging/phantom.hpp"
#include "palimpsest/imaging/transforms.hpp"
#include "palimpsest/io/cartesian.hpp"
#include "palimpsest/io/npy.hpp"

namespace palimpsest::cli {
namespace {

using Sample = std::complex<float>;

struct SimulateOptions {
  std::string output, image, reference, save_maps, save_kspace;
  std::string axis, pattern = "poisson", maps, replace;
  std::optional<index_t> slice;
  std::optional<index_t> center;
  index_t size = 256, coils = 8, seed = 0;
  double acceleration = 4, noise = 0.005;
  bool json = false, fake_kspace = false;
};

constexpr double kFrequencyHz = 123.2e6;  // of protons at 2.89 T
constexpr index_t kUsualCenter = 24;
constexpr double kMostOfSamples = 0.75;  // in the centre
constexpr index_t kLargestAxis = 8192, kMostCoils = 256;

// The smallest even number from n on that has no prime factor above 7: scanners encode such
// numbers, and transforms of them are fast.
index_t encoded_extent(index_t n) {
  for (index_t candidate = std::max<index_t>(2, n + n % 2);; candidate += 2) {
    index_t rest = candidate;
    for (const index_t prime : {2, 3, 5, 7}) {
      while (rest % prime == 0) rest /= prime;
    }
    if (rest == 1) return candidate;
  }
}

// The object: largest magnitude 1; that of a file in a field of view of even extents.
Tensor object_image(const SimulateOptions& options) {
  Tensor image = options.image.empty()
                     ? ellipse_image(modified_shepp_logan(), options.size, options.size)
                     : read_slice(options.image, options.axis, options.slice);
  if (image.shape(0) > kLargestAxis || image.shape(1) > kLargestAxis) {
    throw UsageError(fmt::format("[simulate] got an image of {}, expected at most {} along an axis",
                                 to_string(image.shape()), kLargestAxis));
  }
  image = image.to(DType::complex64).clone();
  if (!options.image.empty()) {
    image = center_pad(image, encoded_extent(image.shape(0)), encoded_extent(image.shape(1)));
  }
  const auto scale = static_cast<float>(1 / quantile(magnitude(image), 1));
  Sample* values = image.mutable_data<Sample>();
  std::for_each(values, values + image.numel(), [scale](Sample& v) { v *= scale; });
  return image;
}

// Adds noise of the given standard deviation (of the complex number), and clears the elements that
// were not measured.
void add_noise(Tensor& kspace, const Tensor& mask, double noise, std::uint64_t seed) {
  const Tensor normal = Tensor::random_normal(kspace.shape(), DType::complex64, {seed, 3});
  const Sample* n = normal.data<Sample>();
  const bool* measured = mask.data<bool>();
  Sample* values = kspace.mutable_data<Sample>();
  const index_t plane = mask.numel();
  for (index_t i = 0, end = kspace.numel(); i < end; ++i) {
    values[i] = measured[i % plane] ? values[i] + static_cast<float>(noise) * n[i] : Sample(0);
  }
}

// Extent of the fully sampled centre: unless it is given, at most a part of the samples.
index_t center_extent(const SimulateOptions& options, index_t ny, index_t nx) {
  if (options.center) return *options.center;
  const double samples = static_cast<double>(ny * nx) / std::max(1.0, options.acceleration);
  const auto fitting = static_cast<index_t>(std::sqrt(kMostOfSamples * samples));
  return std::min({kUsualCenter, fitting, ny, nx});
}

RawScan raw_scan(const Tensor& kspace, const Tensor& mask, bool is_full) {
  const index_t n_coils = kspace.shape(0), ny = kspace.shape(1), nx = kspace.shape(2);
  RawScanHeader header;
  header.n_coils = n_coils;
  header.h1_frequency_hz = kFrequencyHz;
  // In full, a scan of ny readouts with nx samples. Undersampled along both axes they are both
  // phase encoded, rows by partitions (z): the readout runs through the slice and has one sample.
  header.encoded.matrix =
      is_full ? std::array<index_t, 3>{nx, ny, 1} : std::array<index_t, 3>{1, nx, ny};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    header.encoded.field_of_view_mm[axis] = static_cast<double>(header.encoded.matrix[axis]);
  }
  header.recon = header.encoded;
  if (is_full) {
    return cartesian_scan(kspace.unsqueeze(1), Tensor::full<bool>({1, ny}, true), header);
  }
  RawScan scan = cartesian_scan(kspace.unsqueeze(3), mask, header);
  // The image is an axial slice: columns run to the left, rows to the back.
  for (Readout& readout : scan.readouts) {
    readout.read_direction = {0, 0, 1};
    readout.phase_direction = {1, 0, 0};
    readout.slice_direction = {0, 1, 0};
  }
  return scan;
}

void check_options(const SimulateOptions& options) {
  expect_between("--coils", options.coils, 1, kMostCoils);
  expect_between("--size", options.size, 8, kLargestAxis);
  expect_at_least("--noise", options.noise, 0);
}

JsonReport report_of(const SimulateOptions& options, const Tensor& mask) {
  const index_t samples = count_samples(mask);
  JsonReport report;
  report.set("output", options.output).set("coils", options.coils);
  report.set("rows", mask.shape(0)).set("columns", mask.shape(1));
  report.set("pattern", options.pattern).set("samples_per_coil", samples);
  report.set("acceleration", static_cast<double>(mask.numel()) / static_cast<double>(samples));
  report.set("center", center_extent(options, mask.shape(0), mask.shape(1)));
  report.set("noise", options.noise).set("seed", options.seed);
  return report;
}

std::string summary_of(const SimulateOptions& options, const Tensor& mask) {
  const index_t samples = count_samples(mask), points = mask.numel();
  return fmt::format("{}, {} x {}, {} of {} points ({:.2f}-fold), noise {} of the largest pixel\n",
                     counted(options.coils, "coil"), mask.shape(0), mask.shape(1), samples, points,
                     static_cast<double>(points) / static_cast<double>(samples), options.noise);
}

// The result of sampling_pattern(). Its errors name the options.
Tensor pattern_of(index_t ny, index_t nx, const PatternOptions& options) {
  try {
    return sampling_pattern(ny, nx, options);
  } catch (const ValueError& error) {
    throw UsageError(std::string(error.what()) + " (--acceleration, --center, --pattern)");
  }
}

Tensor read_complex(const std::string& path, const Values& what, Dims& names) {
  const Image image = read_image(path);
  names = image.names;
  const Tensor values = image.data.to(DType::complex64).contiguous();
  check_finite(path, values, what);
  return values;
}

// All points of the grid, of a series of all frames: image ([T], [M], [z], y, x), maps ([M], C,
// [z], y, x).
KspaceSampling whole_grid(const SimulateOptions& options, const Tensor& image, const Dims& names,
                          const Tensor& maps, const Dims& map_names) {
  const Extents &x = image.shape(), &s = maps.shape();
  const auto same_end = [&](std::size_t n) {
    return x.size() >= n && s.size() >= n &&
           std::equal(x.end() - std::ptrdiff_t(n), x.end(), s.end() - std::ptrdiff_t(n));
  };
  const bool has_sets = names.contains(ND("M")) || map_names.contains(ND("M"));
  const std::size_t d = s.size() == 5 || (s.size() == 4 && same_end(3) && !has_sets) ? 3 : 2;
  const std::size_t sets = s.size() == d + 2 ? 1 : 0;
  const bool fits = s.size() == d + 1 + sets && same_end(d) && x.size() <= d + sets + 1 &&
                    (sets == 0 || (x.size() > d && x[x.size() - d - 1] == s[0]));
  if (!fits) {
    throw UsageError(
        fmt::format("[--maps] {} has the shape {} for the image {}, expected ([set,] coil, [z,] y, "
                    "x) with the extents of the image ([frame,] [set,] [z,] y, x)",
                    options.maps, to_string(s), to_string(x)));
  }
  Extents grid(x.end() - std::ptrdiff_t(d), x.end());
  if (x.size() == d + sets + 1) grid.insert(0, x[0]);
  return {.mask = Tensor::full<bool>(grid, true)};
}

void fake(const SimulateOptions& options) {
  Outputs outputs;
  for (const std::string& path : {options.image, options.maps, options.replace}) {
    outputs.reads(path);
  }
  announce_image(outputs, options.output, {".npy", ".cfl", ".hdr"});
  Dims names, map_names;
  const Tensor image = read_complex(options.image, image_values(), names);
  Tensor maps = read_complex(options.maps, coil_map_values(), map_names);
  if (maps.rank() == 2) maps = maps.unsqueeze(0);
  const KspaceSampling grid = whole_grid(options, image, names, maps, map_names);
  std::optional<Tensor> measured;
  if (!options.replace.empty()) {
    measured = read_kspace(options.replace).kspace;
    // The readout of a raw scan of two phase encodes.
    const bool has_readout = measured->rank() == grid.mask->rank() + 2;
    if (has_readout && measured->shape(-1) == 1) measured = measured->squeeze(-1);
  }
  const NamedLinop A = sense_model(maps, grid);
  const Dims out = A.oshape();
  Image kspace{.data = fake_kspace(A, image, measured),
               .names = (out.contains(ND("T")) ? Dims("T C") : Dims("C")) +
                        (out.contains(ND("Kz")) ? Dims("Nz Ny Nx") : Dims("Ny Nx"))};
  write_image(outputs, options.output, kspace);
  const std::string shape = to_string(kspace.data.shape());
  if (options.json) {
    print(JsonReport().set("output", options.output).set("shape", shape).text());
  } else {
    print(fmt::format("k-space {} {}\nwrote {}\n", kspace.names.str(), shape, options.output));
  }
  outputs.commit();
}

void simulate(const SimulateOptions& options) {
  if (options.fake_kspace) return fake(options);
  check_options(options);
  const PatternKind kind = parse_pattern(options.pattern);
  Outputs outputs;
  outputs.reads(options.image);
  outputs.announce(options.output, ".h5");
  outputs.announce(options.reference, ".npy");
  outputs.announce(options.save_maps, ".npy");
  outputs.announce(options.save_kspace, ".npy");

  const auto seed = static_cast<std::uint64_t>(options.seed);
  const Tensor image = object_image(options);
  const index_t ny = image.shape(0), nx = image.shape(1);
  const index_t center = center_extent(options, ny, nx);
  const Tensor mask = pattern_of(
      ny, nx, {.kind = kind, .acceleration = options.acceleration, .center = center, .seed = seed});
  if (count_samples(mask) == 0) {
    throw UsageError(fmt::format("[--acceleration] {} leaves no samples of {} x {}",
                                 options.acceleration, ny, nx));
  }
  const Tensor maps = ring_coil_maps(options.coils, ny, nx);
  Tensor kspace = sense_model(maps)(image).contiguous();
  add_noise(kspace, mask, options.noise, seed);

  const RawScan scan = raw_scan(kspace, mask, kind == PatternKind::full);
  outputs.write(options.output, [&](const std::string& path) { write_ismrmrd(path, scan); });
  outputs.write(options.reference, [&](const std::string& path) { write_npy(path, image); });
  outputs.write(options.save_maps, [&](const std::string& path) { write_npy(path, maps); });
  outputs.write(options.save_kspace, [&](const std::string& path) { write_npy(path, kspace); });
  if (options.json) {
    print(report_of(options, mask).text());
  } else {
    print(summary_of(options, mask));
    for (const std::string& path : outputs.written()) print("wrote " + path + "\n");
  }
  outputs.commit();
}

}  // namespace

void add_simulate(CommandLine& line) {
  const auto options = std::make_shared<SimulateOptions>();
  line.add("simulate", "Make a raw scan (ISMRMRD) of a phantom or of an image, or its k-space")
      .argument("OUTPUT.h5", options->output,
                "Output: raw file (ISMRMRD); with --fake-kspace .npy, .cfl or .hdr")
      .option("--image", "FILE", options->image,
              "Object: NIfTI or NPY file, padded to even extents; default: Shepp-Logan phantom")
      .choice("--axis", {"x", "y", "z"}, options->axis,
              "Axis of a volume perpendicular to the slice; default: z")
      .option("--slice", "N", options->slice, "Slice of a volume, from 0; default: the middle one")
      .option("--size", "N", options->size, "Width and height of the phantom in pixels")
      .option("--coils", "N", options->coils, "Number of coils, on a ring around the object")
      .choice("--pattern", {"poisson", "random", "uniform", "full"}, options->pattern,
              "Sampling pattern of k-space")
      .option("--acceleration", "X", options->acceleration, "Grid points per sample")
      .option("--center", "N", options->center,
              "Width and height of the fully sampled centre in grid points; default: 24, but at "
              "most three quarters of the samples")
      .option("--noise", "X", options->noise,
              "Standard deviation of the noise in a coil image; the largest pixel is 1")
      .option("--seed", "N", options->seed, "Seed of pattern and noise")
      .option("--reference", "FILE.npy", options->reference, "Output: the object, (y, x)")
      .option("--save-maps", "FILE.npy", options->save_maps, "Output: coil maps, (coil, y, x)")
      .option("--save-kspace", "FILE.npy", options->save_kspace, "Output: k-space, (coil, y, x)")
      .flag("--fake-kspace", options->fake_kspace,
            "k-space ([frame,] coil, [z,] y, x) of --image ([frame,] [set,] [z,] y, x) and --maps, "
            "all of the grid and without noise, in place of a raw scan")
      .option("--maps", "FILE", options->maps,
              "Coil maps for --fake-kspace, ([set,] coil, [z,] y, x): NPY or BART CFL")
      .option("--replace", "FILE", options->replace,
              "Measured k-space, whose samples take the place of those of --fake-kspace")
      .flag("--json", options->json, "Facts as JSON on standard output instead of a summary")
      .needs("--axis", {"--image"})
      .needs("--slice", {"--image"})
      .excludes("--image", {"--size"})
      .needs("--fake-kspace", {"--image"})
      .needs("--fake-kspace", {"--maps"})
      .needs("--maps", {"--fake-kspace"})
      .needs("--replace", {"--fake-kspace"})
      .excludes("--fake-kspace",
                {"--axis", "--slice", "--coils", "--pattern", "--acceleration", "--center",
                 "--noise", "--seed", "--reference", "--save-maps", "--save-kspace"})
      .excludes("--pattern", {"--acceleration", "--center"}, "full")
      .action([options] { simulate(*options); });
}

}  // namespace palimpsest::cli
