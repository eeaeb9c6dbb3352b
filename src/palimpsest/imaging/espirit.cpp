// SPDX-License-Identifier: Apache-2.0
// The polynomial of G is contracted axis by axis: for a plane, a line, a point. Workers take groups
// of kLines lines. The power steps of a line begin with the vectors of the line before in its
// group. The groups are the same for any number of workers, and so is the result.

#include <atomic>
#include <mutex>
#include <span>

#include "palimpsest/base/config.hpp"
#include "palimpsest/base/fork.hpp"
#include "palimpsest/imaging/espirit_kernels.hpp"
#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/imaging/sensitivities.hpp"
#include "palimpsest/kernels/matrices/dominant_vectors.hpp"
#include "palimpsest/kernels/matrices/lapack.hpp"
#include "palimpsest/kernels/pool/parallel.hpp"

namespace palimpsest {
namespace {

constexpr index_t kLines = 8;
// Power steps before LAPACK takes over, for the first line of a group and for the others.
constexpr int kFirstSteps = 48;
constexpr int kSteps = 24;
constexpr float kResidual = 1e-6F;
// Error of sums of fourth powers of eigenvalues in single precision, relative to the largest.
constexpr double kPowersError = 1e-5;

index_t padded(index_t points) { return (points + kPointLanes - 1) / kPointLanes * kPointLanes; }

// exp(i d theta_j) of the position j of n.
Complex phase_of_shift(index_t j, index_t n, index_t d) {
  return std::polar(
      1.0, 2 * std::numbers::pi * static_cast<double>((j - n / 2) * d) / static_cast<double>(n));
}

// out = sum over d of exp(i d theta_j) times block d of the polynomial, d from 1 - kernel on.
void contract(const Complex* blocks, index_t block, index_t kernel, index_t j, index_t n,
              Complex* out) {
  std::fill_n(out, block, Complex(0));
  for (index_t d = 1 - kernel; d < kernel; ++d) {
    const Complex p = phase_of_shift(j, n, d);
    const double pr = p.real(), pi = p.imag();
    const auto* in = reinterpret_cast<const double*>(blocks + (d + kernel - 1) * block);
    auto* const sum = reinterpret_cast<double*>(out);
    for (index_t i = 0; i < block; ++i) {
      sum[2 * i] += in[2 * i] * pr - in[2 * i + 1] * pi;
      sum[2 * i + 1] += in[2 * i] * pi + in[2 * i + 1] * pr;
    }
  }
}

// Memory of one worker.
struct Worker {
  Worker(const EspiritSizes& s, bool has_vectors, std::byte* at = nullptr) : room(at) {
    const index_t n = s.n_coils, points = padded(s.n[2]), blocks = s.offsets(2) * s.pairs();
    line = room.take<Complex>(blocks);
    matrix = room.take<Complex>(n * n);
    values = room.take<double>(n);
    eigen_bytes = static_cast<index_t>(hermitian_eigen_work<Complex>(n));
    eigen = room.take<std::byte>(eigen_bytes);
    maps = room.take<Sample>(s.sets * n * s.n[2]);
    eigenvalues = room.take<float>(s.sets * s.n[2]);
    if (!has_vectors) return;
    re = room.take<float>(blocks);
    im = room.take<float>(blocks);
    vectors = {room.take<float>(n * points), room.take<float>(n * points), room.take<float>(points),
               room.take<float>(points), room.take<float>(points)};
    steps = room.take<float>(dominant_vectors_work(n));
  }

  Room room;
  Complex *line = nullptr, *matrix = nullptr;
  double* values = nullptr;
  std::byte* eigen = nullptr;
  index_t eigen_bytes = 0;
  Sample* maps = nullptr;  // (set, coil, x)
  float* eigenvalues = nullptr;
  float *re = nullptr, *im = nullptr, *steps = nullptr;
  DominantVectors vectors;
};

// Shared input of all workers: the polynomial of a plane, and cos and sin along x.
struct Common {
  Common(const EspiritSizes& s, bool has_vectors, std::byte* at = nullptr) : room(at) {
    plane = room.take<Complex>(s.offsets(1) * s.offsets(2) * s.pairs());
    if (!has_vectors) return;
    cos = room.take<float>((s.kernel[2] - 1) * padded(s.n[2]));
    sin = room.take<float>((s.kernel[2] - 1) * padded(s.n[2]));
  }

  Room room;
  Complex* plane = nullptr;
  float *cos = nullptr, *sin = nullptr;
};

// Destination of lines of maps: a tensor, or an array that is written piece by piece.
struct Target {
  Sample* maps = nullptr;
  ScratchArray* array = nullptr;
  float* eigenvalues = nullptr;
};

class EigenMaps {
 public:
  EigenMaps(const EspiritSizes& sizes, const EspiritOptions& options, const SignalSpace& space,
            double crop, const Target& target)
      : s_(sizes),
        options_(options),
        space_(space),
        crop_(crop),
        target_(target),
        has_vectors_(has_vectors(sizes, options)) {}

  // True if no vector is needed for an eigenvalue below the crop value.
  static bool crops(const EspiritOptions& o) { return o.crop && !o.soft && !o.keep_eigenvalues; }
  // True if power steps find the dominant vectors.
  static bool has_vectors(const EspiritSizes& s, const EspiritOptions& o) {
    return s.sets == 1 || crops(o);
  }
  static index_t workers(const EspiritSizes& s) {
    return std::min(
        {index_t{pool_threads()}, config().threads.value_or(pool_threads()), groups(s)});
  }
  static index_t bytes(const EspiritSizes& s, const EspiritOptions& o) {
    return Common(s, has_vectors(s, o)).room.bytes() +
           workers(s) * Worker(s, has_vectors(s, o)).room.bytes();
  }

  void run() {
    Tensor memory = Tensor::empty({bytes(s_, options_)}, DType::uint8);
    auto* const at = reinterpret_cast<std::byte*>(memory.mutable_data<std::uint8_t>());
    const Common common(s_, has_vectors_, at);
    if (has_vectors_) fill_tables(common);
    const index_t each = Worker(s_, has_vectors_).room.bytes(), n_workers = workers(s_);
    for (index_t z = 0; z < s_.n[0]; ++z) {
      contract(space_.polynomial.data<Complex>(), s_.offsets(1) * s_.offsets(2) * s_.pairs(),
               s_.kernel[0], z, s_.n[0], common.plane);
      std::atomic<index_t> next{0};
      // A range per worker: there are no more threads than workers.
      parallel_ranges(n_workers, 1, [&](index_t begin, index_t end) {
        for (index_t w = begin; w < end; ++w) {
          Worker worker(s_, has_vectors_, at + common.room.bytes() + w * each);
          for (index_t g = next++; g < groups(s_); g = next++) run_group(common, worker, z, g);
        }
      });
    }
  }

 private:
  static index_t groups(const EspiritSizes& s) { return (s.n[1] + kLines - 1) / kLines; }

  void fill_tables(const Common& common) const {
    const index_t points = padded(s_.n[2]);
    for (index_t d = 1; d < s_.kernel[2]; ++d) {
      for (index_t x = 0; x < points; ++x) {
        const Complex p = phase_of_shift(std::min(x, s_.n[2] - 1), s_.n[2], d);
        common.cos[(d - 1) * points + x] = static_cast<float>(p.real());
        common.sin[(d - 1) * points + x] = static_cast<float>(p.imag());
      }
    }
  }

  void run_group(const Common& common, Worker& w, index_t z, index_t group) {
    const index_t first = group * kLines, last = std::min(s_.n[1], first + kLines);
    for (index_t y = first; y < last; ++y) {
      contract(common.plane, s_.offsets(2) * s_.pairs(), s_.kernel[1], y, s_.n[1], w.line);
      if (has_vectors_) step_line(common, w, y == first);
      for (index_t x = 0; x < s_.n[2]; ++x) finish_point(w, x);
      write_line(w, z, y);
    }
  }

  // The dominant vectors of a line, as far as power steps find them.
  void step_line(const Common& common, Worker& w, bool is_first) const {
    const index_t pairs = s_.pairs(), k = s_.kernel[2], points = padded(s_.n[2]);
    const Complex* middle = w.line + (k - 1) * pairs;
    const auto set = [&](index_t block, index_t e, Complex value) {
      w.re[block * pairs + e] = static_cast<float>(value.real());
      w.im[block * pairs + e] = static_cast<float>(value.imag());
    };
    for (index_t e = 0; e < pairs; ++e) {
      set(0, e, middle[e]);
      for (index_t d = 1; d < k; ++d) {
        const Complex up = middle[d * pairs + e], down = middle[-d * pairs + e];
        set(2 * d - 1, e, up + down);
        set(2 * d, e, Complex(0, 1) * (up - down));
      }
    }
    if (is_first) {
      std::fill_n(w.vectors.re, s_.n_coils * points, 1 / std::sqrt(static_cast<float>(s_.n_coils)));
      std::fill_n(w.vectors.im, s_.n_coils * points, 0.0F);
    }
    const MatrixPolynomial g{s_.n_coils, k, w.re, w.im, common.cos, common.sin, points};
    DominantVectors wanted = w.vectors;
    if (!crops(options_)) wanted.fourth_powers = nullptr;
    dominant_vectors(g, wanted, is_first ? kFirstSteps : kSteps, kResidual, w.steps);
  }

  // All eigenvectors of a point, the largest eigenvalue last, by LAPACK.
  void decompose(Worker& w, index_t x) const {
    const index_t n = s_.n_coils, pairs = s_.pairs();
    std::fill_n(w.matrix, n * n, Complex(0));
    for (index_t d = 1 - s_.kernel[2]; d < s_.kernel[2]; ++d) {
      const Complex p = phase_of_shift(x, s_.n[2], d);
      const Complex* block = w.line + (d + s_.kernel[2] - 1) * pairs;
      for (index_t a = 0; a < n; ++a) {
        for (index_t b = 0; b <= a; ++b) {
          const Complex c = *block++;
          // The upper triangle: (b, a) is the conjugate of (a, b).
          w.matrix[b * n + a] += Complex(c.real() * p.real() - c.imag() * p.imag(),
                                         -c.real() * p.imag() - c.imag() * p.real());
        }
      }
    }
    for (index_t a = 0; a < n; ++a) w.matrix[a * n + a] = w.matrix[a * n + a].real();
    hermitian_eigen(n, w.matrix, w.values,
                    std::span(w.eigen, static_cast<std::size_t>(w.eigen_bytes)));
  }

  // True if all eigenvalues but the largest `n` are below the crop value. Only the sum of their
  // fourth powers is known.
  bool are_others_cropped(const Worker& w, index_t x, index_t n) const {
    if (!crops(options_)) return false;
    const auto fourth = [](double v) { return v * v * v * v; };
    const double all = double{w.vectors.fourth_powers[x]};
    const double found = n > 0 ? fourth(double{w.vectors.values[x]}) : 0;
    return all - found + kPowersError * all < fourth(crop_);
  }

  // Power steps give the vectors of most points, and show at many of the others that the image has
  // no signal there.
  void finish_point(Worker& w, index_t x) const {
    const index_t n = s_.n_coils, points = padded(s_.n[2]);
    const index_t found = has_vectors_ && w.vectors.residuals[x] <= kResidual ? 1 : 0;
    const bool is_done = has_vectors_ && (found == s_.sets || are_others_cropped(w, x, found));
    if (!is_done) decompose(w, x);
    for (index_t c = 0; is_done && found > 0 && c < n; ++c) {
      w.matrix[c] = {w.vectors.re[c * points + x], w.vectors.im[c * points + x]};
    }
    for (index_t m = 0; m < s_.sets; ++m) {
      if (!is_done) {
        finish_vector(w, m, x, w.matrix + (n - 1 - m) * n, w.values[n - 1 - m]);
      } else {
        finish_vector(w, m, x, w.matrix, m < found ? double{w.vectors.values[x]} : 0);
      }
    }
    if (!has_vectors_ || is_done) return;
    const Complex* best = w.matrix + (n - 1) * n;
    for (index_t c = 0; c < n; ++c) {
      w.vectors.re[c * points + x] = static_cast<float>(best[c].real());
      w.vectors.im[c * points + x] = static_cast<float>(best[c].imag());
    }
  }

  double weight(double eigenvalue) const {
    if (!options_.soft) return eigenvalue < crop_ ? 0 : 1;
    const double t = (std::sqrt(std::max(eigenvalue, 0.0)) - crop_) / (1 - crop_);
    return t <= -1 ? 0 : t >= 1 ? 1 : 0.5 + t / (1 + t * t);
  }

  // Phase and length of one vector, into the worker's line.
  void finish_vector(Worker& w, index_t m, index_t x, const Complex* v, double eigenvalue) const {
    const index_t n = s_.n_coils;
    w.eigenvalues[m * s_.n[2] + x] = static_cast<float>(eigenvalue);
    Complex factor = weight(eigenvalue);
    if (factor != 0.0 && options_.rotate_phase) {
      Complex overlap = 0;
      for (index_t c = 0; c < n; ++c) {
        overlap += std::conj(space_.reference[static_cast<std::size_t>(c)]) * v[c];
      }
      const double length = std::abs(overlap);
      if (length > 0) factor *= std::conj(overlap) / length;
    }
    if (factor != 0.0 && options_.intensity) {
      double sum = 0;
      for (index_t c = 0; c < n; ++c) sum += std::abs(v[c]);
      factor *= std::sqrt(static_cast<double>(n)) / sum;
    }
    for (index_t c = 0; c < n; ++c) {
      w.maps[(m * n + c) * s_.n[2] + x] = Sample(factor == 0.0 ? Complex(0) : factor * v[c]);
    }
  }

  void write_line(const Worker& w, index_t z, index_t y) {
    const index_t nx = s_.n[2], volume = s_.n[0] * s_.n[1] * nx, at = (z * s_.n[1] + y) * nx;
    for (index_t i = 0; i < s_.sets * s_.n_coils && target_.maps; ++i) {
      std::copy_n(w.maps + i * nx, nx, target_.maps + i * volume + at);
    }
    for (index_t m = 0; m < s_.sets && target_.eigenvalues; ++m) {
      std::copy_n(w.eigenvalues + m * nx, nx, target_.eigenvalues + m * volume + at);
    }
    if (!target_.array) return;
    const std::lock_guard guard(mutex_);
    for (index_t i = 0; i < s_.sets * s_.n_coils; ++i) {
      target_.array->write(i * volume + at, w.maps + i * nx, nx);
    }
  }

  const EspiritSizes& s_;
  const EspiritOptions& options_;
  const SignalSpace& space_;
  const double crop_;
  const Target target_;
  const bool has_vectors_;
  Mutex mutex_;
};

// (M, C, ..), or (M, ..) without coils.
Extents shape_of(const EspiritSizes& s, bool has_coils) {
  Extents shape{s.sets};
  if (has_coils) shape.push_back(s.n_coils);
  for (std::size_t k = 3 - static_cast<std::size_t>(s.n_axes); k < 3; ++k) shape.push_back(s.n[k]);
  return shape;
}

// Maps below the crop value become 0; with soft weights, as EigenMaps does it.
void crop_maps(const Tensor& eigenvalues, double crop, Tensor& maps) {
  const index_t sets = maps.shape(0), coils = maps.shape(1), voxels = maps.numel() / sets / coils;
  const float* e = eigenvalues.data<float>();
  auto* const s = maps.mutable_data<Sample>();
  for (index_t m = 0; m < sets; ++m) {
    for (index_t i = 0; i < voxels; ++i) {
      if (static_cast<double>(e[m * voxels + i]) >= crop) continue;
      for (index_t c = 0; c < coils; ++c) s[(m * coils + c) * voxels + i] = Sample(0);
    }
  }
}

void check_espirit(const EspiritOptions& o) {
  const auto expect = [](bool holds, const char* name, double got, const char* expected) {
    if (holds) return;
    throw ValueError(fmt::format("[espirit] {}: got {}, expected {}", name, got, expected));
  };
  const auto number = [](index_t n) { return static_cast<double>(n); };
  expect(o.kernel >= 1, "kernel", number(o.kernel), "at least 1");
  expect(o.calibration >= 1, "calibration", number(o.calibration), "at least 1");
  expect(o.sets >= 1, "sets", number(o.sets), "at least 1");
  const double threshold = o.threshold.value_or(0), percent = o.percent.value_or(0);
  expect(threshold >= 0 && threshold < 1, "threshold", threshold, "a number in [0, 1)");
  expect(percent >= 0 && percent < 100, "percent", percent, "a number in [0, 100)");
  expect(o.rank.value_or(1) >= 1, "rank", number(o.rank.value_or(1)), "at least 1");
  const double crop = o.crop.value_or(0);
  expect(crop >= 0 && crop < 1, "crop", crop, "a number in [0, 1)");
  expect(o.sigma2.value_or(0) >= 0, "sigma2", o.sigma2.value_or(0), "at least 0");
  if (!o.crop && o.soft) {
    throw ValueError("[espirit] an automatic crop value has no effect with soft maps. Give one");
  }
}

MapsResult estimate(const Tensor& kspace, ScratchArray* array, const EspiritOptions& options) {
  if (kspace.dtype() != DType::complex64) {
    throw DTypeError(
        fmt::format("[espirit] k-space has the wrong dtype: got {}, expected complex64",
                    name_of(kspace.dtype())));
  }
  check_espirit(options);
  const CalibrationArea area =
      options.area ? *options.area : calibration_area_of(kspace, options.calibration);
  const EspiritSizes s(kspace.shape(), options, area);
  if (array && (array->shape() != shape_of(s, true) || array->dtype() != DType::complex64)) {
    throw ShapeError(fmt::format("[espirit] the array for the maps is {} {}, expected complex64 {}",
                                 name_of(array->dtype()), to_string(array->shape()),
                                 to_string(shape_of(s, true))));
  }
  MapsResult result;
  result.area = area;
  Tensor samples = calibration_samples(kspace, area).to(DType::complex128).contiguous();
  const SignalSpace space = signal_space(samples, s, options);
  if (options.crop) samples = Tensor();
  result.vectors = space.vectors;
  result.of_vectors = space.of_vectors;
  result.crop = options.crop.value_or(0);
  const bool holds_maps = !array || !options.crop;
  Target target;
  if (holds_maps) {
    result.maps = Tensor::empty(shape_of(s, true), DType::complex64);
    target.maps = result.maps.mutable_data<Sample>();
  } else {
    target.array = array;
  }
  if (options.keep_eigenvalues || !options.crop) {
    result.eigenvalues = Tensor::empty(shape_of(s, false), DType::float32);
    target.eigenvalues = result.eigenvalues.mutable_data<float>();
  }
  EigenMaps(s, options, space, result.crop, target).run();
  if (!options.crop) {
    result.crop = best_crop(samples, s, result.maps, result.eigenvalues, space.sigma2);
    crop_maps(result.eigenvalues, result.crop, result.maps);
    if (array) {
      array->write(0, result.maps.data<Sample>(), result.maps.numel());
      result.maps = Tensor();
    }
    if (!options.keep_eigenvalues) result.eigenvalues = Tensor();
  }
  return result;
}

}  // namespace

EspiritSizes::EspiritSizes(const Extents& kspace, const EspiritOptions& options,
                           const CalibrationArea& given)
    : sets(options.sets), area(given) {
  if (kspace.size() != 3 && kspace.size() != 4) {
    throw ShapeError(fmt::format(
        "[espirit] got k-space of the shape {}, expected (coil, y, x) or (coil, z, y, x)",
        to_string(kspace)));
  }
  n_coils = kspace[0];
  n_axes = static_cast<index_t>(kspace.size()) - 1;
  for (std::size_t k = 0; k + 1 < kspace.size(); ++k) {
    n[3 - static_cast<std::size_t>(n_axes) + k] = kspace[1 + k];
  }
  if (n_coils < 1 || sets > n_coils) {
    throw ValueError(fmt::format(
        "[espirit] sets: got {} of {} coils, expected at most one for each coil", sets, n_coils));
  }
  for (std::size_t k = 0; k < 3; ++k) {
    if (n[k] == 1 && area.extent[k] == 1) continue;
    kernel[k] = options.kernel;
    if (area.extent[k] - 2 < kernel[k]) {
      throw ValueError(fmt::format(
          "[espirit] the calibration area is too small: got {} x {} x {} points (z, y, x), "
          "expected at least {} along each axis for kernels of {}",
          area.extent[0], area.extent[1], area.extent[2], kernel[k] + 2, kernel[k]));
    }
    if (area.start[k] < 0 || area.start[k] + area.extent[k] > n[k]) {
      throw ValueError(fmt::format(
          "[espirit] the calibration area lies outside of k-space: got {} to {} of {} points",
          area.start[k], area.start[k] + area.extent[k], n[k]));
    }
  }
}

MapsResult espirit(const Tensor& kspace, const EspiritOptions& options) {
  return estimate(kspace, nullptr, options);
}

MapsResult espirit(const Tensor& kspace, ScratchArray& maps, const EspiritOptions& options) {
  return estimate(kspace, &maps, options);
}

EspiritPlan plan_espirit(const Extents& kspace, const EspiritOptions& options, bool into_array) {
  check_espirit(options);
  CalibrationArea area;
  const std::size_t axes = kspace.empty() ? 0 : kspace.size() - 1;
  for (std::size_t k = 0; k < std::min<std::size_t>(axes, 3); ++k) {
    area.extent[3 - std::min<std::size_t>(axes, 3) + k] =
        std::min(kspace[1 + k], options.calibration);
  }
  const EspiritSizes s(kspace, options, options.area.value_or(area));
  constexpr index_t kComplex = 16;
  EspiritPlan plan;
  plan.maps_bytes =
      into_array && options.crop ? 0 : byte_count(shape_of(s, true), DType::complex64);
  plan.eigenvalue_bytes = options.keep_eigenvalues || !options.crop
                              ? byte_count(shape_of(s, false), DType::float32)
                              : 0;
  const index_t results = plan.maps_bytes + plan.eigenvalue_bytes;
  const index_t samples = s.samples() * kComplex;
  // The results are not there yet while the kernels are made.
  const index_t kernels = samples + signal_space_bytes(s, options);
  const index_t points = EigenMaps::bytes(s, options) + s.coefficients() * kComplex +
                         (options.crop ? 0 : samples) + results;
  const index_t finding =
      options.area ? 0 : element_count(Extents(kspace.begin() + 1, kspace.end()));
  plan.work_bytes = std::max({kernels, points, finding, results}) - results;
  return plan;
}

}  // namespace palimpsest
