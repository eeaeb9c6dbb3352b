// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/coil_compression.hpp"

#include <span>

#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/imaging/recon/coil_mixer.hpp"
#include "palimpsest/imaging/recon/value_checks.hpp"
#include "palimpsest/kernels/matrices/lapack.hpp"
#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/pad.hpp"

namespace palimpsest {
namespace {

using Matrix = std::vector<Complex>;  // row-major

struct Eigen {
  std::vector<double> values;  // descending
  Matrix vectors;              // vector k in row k
};

// Eigenvectors of sum y y^H, given as its upper triangle.
Eigen eigen_of(Matrix sum, index_t coils) {
  std::vector<double> values(static_cast<std::size_t>(coils));
  Matrix work(hermitian_eigen_work<Complex>(coils) / sizeof(Complex) + 1);
  hermitian_eigen(coils, sum.data(), values.data(), std::as_writable_bytes(std::span(work)));
  Eigen result;
  for (index_t k = coils; k-- > 0;) {
    result.values.push_back(std::max(values[static_cast<std::size_t>(k)], 0.0));
    result.vectors.insert(result.vectors.end(), sum.begin() + k * coils,
                          sum.begin() + (k + 1) * coils);
  }
  return result;
}

// Eigenvectors of sum y y^H over samples (C, n).
Eigen principal_vectors(const Complex* samples, index_t coils, index_t n) {
  Matrix sum(static_cast<std::size_t>(coils * coils));
  for (index_t a = 0; a < coils; ++a) {
    for (index_t b = a; b < coils; ++b) {
      Complex product = 0;
      for (index_t i = 0; i < n; ++i) product += samples[a * n + i] * std::conj(samples[b * n + i]);
      sum[static_cast<std::size_t>(a * coils + b)] = product;
    }
  }
  return eigen_of(std::move(sum), coils);
}

// The samples of the area, (C, points), transformed to position x of N along the readout.
Matrix samples_at(const Tensor& area, index_t start, index_t x, index_t n) {
  const auto* values = area.data<Complex>();
  const index_t width = area.shape(-1), lines = area.numel() / width;
  Matrix result(static_cast<std::size_t>(lines));
  for (index_t k = 0; k < width; ++k) {
    const auto turn = static_cast<double>((start + k - n / 2) * (x - n / 2));
    const Complex phase = std::polar(1 / std::sqrt(static_cast<double>(n)),
                                     2 * std::numbers::pi * turn / static_cast<double>(n));
    for (index_t l = 0; l < lines; ++l) {
      result[static_cast<std::size_t>(l)] += phase * values[l * width + k];
    }
  }
  return result;
}

void check_compression(const CompressOptions& o, index_t coils) {
  if (o.to && o.energy) {
    throw ValueError("[compress_coils] got to and energy, expected one of them");
  }
  if (o.to && (*o.to < 1 || *o.to > coils)) {
    throw ValueError(
        fmt::format("[compress_coils] to: got {}, expected 1 to {} virtual coils", *o.to, coils));
  }
  if (o.energy && !(*o.energy > 0 && *o.energy <= 1)) {
    throw ValueError(
        fmt::format("[compress_coils] energy: got {}, expected a number in (0, 1]", *o.energy));
  }
}

index_t number_of_coils(const CompressOptions& o, const std::vector<double>& energies) {
  const auto coils = std::ssize(energies);
  if (o.to) return *o.to;
  if (!o.energy) return coils;
  double sum = 0;
  for (index_t k = 0; k < coils; ++k) {
    sum += energies[static_cast<std::size_t>(k)];
    if (sum >= *o.energy) return k + 1;
  }
  return coils;
}

// Rows conj(u_k): y' = U^H y.
void put_rows(const Matrix& vectors, index_t coils, index_t n, Complex* out) {
  for (index_t i = 0; i < n * coils; ++i) out[i] = std::conj(vectors[static_cast<std::size_t>(i)]);
}

// next <- V U^H next, for next last^H = U S V^H: as little turned from `last` as can be.
void align(const Complex* last, Complex* next, index_t n, index_t coils) {
  Matrix product(static_cast<std::size_t>(n * n)), u(product.size()), vh(product.size());
  std::vector<double> s(static_cast<std::size_t>(n));
  for (index_t i = 0; i < n; ++i) {
    for (index_t j = 0; j < n; ++j) {
      Complex sum = 0;
      for (index_t c = 0; c < coils; ++c) {
        sum += next[i * coils + c] * std::conj(last[j * coils + c]);
      }
      product[static_cast<std::size_t>(i * n + j)] = sum;
    }
  }
  Matrix work(singular_values_work<Complex>(n, n) / sizeof(Complex) + 1);
  singular_values(n, n, product.data(), u.data(), s.data(), vh.data(),
                  std::as_writable_bytes(std::span(work)));
  const Matrix old(next, next + n * coils);
  for (index_t i = 0; i < n; ++i) {
    for (index_t c = 0; c < coils; ++c) next[i * coils + c] = 0;
    for (index_t j = 0; j < n; ++j) {
      Complex turn = 0;  // (V U^H)_ij
      for (index_t k = 0; k < n; ++k) {
        turn += std::conj(vh[static_cast<std::size_t>(k * n + i)]) *
                std::conj(u[static_cast<std::size_t>(j * n + k)]);
      }
      for (index_t c = 0; c < coils; ++c) {
        next[i * coils + c] += turn * old[static_cast<std::size_t>(j * coils + c)];
      }
    }
  }
}

void expect_signal(double energy) {
  if (energy > 0 && std::isfinite(energy)) return;
  throw ValueError(fmt::format(
      "[compress_coils] there is no signal: got samples of energy {}, expected more than 0",
      energy));
}

std::vector<double> normalized(std::vector<double> energies) {
  double sum = 0;
  for (const double e : energies) sum += e;
  expect_signal(sum);
  for (double& e : energies) e /= sum;
  return energies;
}

Compression svd_compression(const Tensor& samples, const CompressOptions& options) {
  const index_t coils = samples.shape(0);
  const Eigen eigen = principal_vectors(samples.data<Complex>(), coils, samples.numel() / coils);
  Compression result;
  result.energies = normalized(eigen.values);
  const index_t n = number_of_coils(options, result.energies);
  Matrix rows(static_cast<std::size_t>(n * coils));
  put_rows(eigen.vectors, coils, n, rows.data());
  result.matrices = Tensor::from(rows, Extents{n, coils}).to(DType::complex64);
  return result;
}

Compression geometric_compression(const Tensor& samples, index_t start, index_t n_x,
                                  const CompressOptions& options) {
  const index_t coils = samples.shape(0);
  std::vector<Eigen> positions;
  std::vector<double> energies(static_cast<std::size_t>(coils));
  for (index_t x = 0; x < n_x; ++x) {
    const Matrix at = samples_at(samples, start, x, n_x);
    positions.push_back(principal_vectors(at.data(), coils, std::ssize(at) / coils));
    for (std::size_t k = 0; k < energies.size(); ++k) energies[k] += positions.back().values[k];
  }
  Compression result;
  result.energies = normalized(std::move(energies));
  const index_t n = number_of_coils(options, result.energies);
  Matrix all(static_cast<std::size_t>(n_x * n * coils));
  for (index_t x = 0; x < n_x; ++x) {
    Complex* const now = all.data() + x * n * coils;
    put_rows(positions[static_cast<std::size_t>(x)].vectors, coils, n, now);
    if (x > 0) align(now - n * coils, now, n, coils);
  }
  result.matrices = Tensor::from(all, Extents{n_x, n, coils}).to(DType::complex64);
  return result;
}

// Adds the operators for grids of `axes` axes.
void add_operators(Compression& c, std::size_t axes) {
  const Dims image = Dims("Nz Ny Nx").slice(3 - axes, 3),
             grid = Dims("Kz Ky Kx").slice(3 - axes, 3);
  const Dims physical("C"), virtual_coils("V");
  if (c.matrices.rank() == 2) {
    c.kspace = Dense(c.matrices, "V C", physical + grid, virtual_coils + grid);
    c.image = Dense(c.matrices, "V C", physical + image, virtual_coils + image);
    return;
  }
  c.image = Dense(c.matrices, "Nx V C", physical + image, virtual_coils + image);
  const Dims lines = grid.slice(0, axes - 1), hybrid = lines + Dims("Nx");
  const auto along_x = [&](const Dims& coils) {
    return Fft(1, {.batch = coils + lines, .grid = Grid{"Nx", "Kx"}, .centered = true});
  };
  c.kspace = Chain(along_x(physical).H(),
                   Dense(c.matrices, "Nx V C", physical + hybrid, virtual_coils + hybrid),
                   along_x(virtual_coils));
}

}  // namespace

namespace {

void check_input(const Tensor& kspace, const CompressOptions& options) {
  if (kspace.rank() != 3 && kspace.rank() != 4) {
    throw ShapeError(fmt::format(
        "[compress_coils] got k-space of the shape {}, expected (coil, y, x) or (coil, z, y, x)",
        to_string(kspace.shape())));
  }
  if (kspace.dtype() != DType::complex64) {
    throw DTypeError(fmt::format("[compress_coils] got k-space of {}, expected complex64",
                                 name_of(kspace.dtype())));
  }
  expect_signal(static_cast<double>(kspace.numel()));
  check_compression(options, kspace.shape(0));
  expect_finite("compress_coils", "k-space", kspace);
}

// The samples that the matrices come from.
Tensor samples_for(const Tensor& kspace, const CompressOptions& options, CalibrationArea& area) {
  area = options.area ? *options.area : calibration_area_of(kspace);
  const bool has_area = area.extent[0] > 0;
  if (options.method == CompressionMethod::geometric && !has_area) {
    throw ValueError(
        "[compress_coils] the geometric method needs a calibration area: got none around the "
        "middle of k-space. Try svd");
  }
  return has_area ? calibration_samples(kspace, area) : kspace;
}

}  // namespace

index_t plan_compress_coils(const Tensor& kspace, const CompressOptions& options) {
  check_input(kspace, options);
  CalibrationArea area;
  const Tensor samples = samples_for(kspace, options, area);
  const index_t coils = kspace.shape(0), n = options.to.value_or(coils);
  Compression c;
  const bool is_geometric = options.method == CompressionMethod::geometric;
  c.matrices = Tensor::zeros(is_geometric ? Extents{kspace.shape(-1), n, coils} : Extents{n, coils},
                             DType::complex64);
  add_operators(c, kspace.rank() - 1);
  return samples.numel() * 16 + c.matrices.nbytes() +
         c.kspace.plan({DType::complex64, kspace.shape(), {}}).peak_bytes;
}

CompressedKspace compress_coils(const Tensor& kspace, const CompressOptions& options) {
  check_input(kspace, options);
  CalibrationArea area;
  const Tensor samples = samples_for(kspace, options, area).to(DType::complex128).contiguous();
  const bool is_geometric = options.method == CompressionMethod::geometric;
  CompressedKspace result;
  result.compression =
      is_geometric ? geometric_compression(samples, area.start[2], kspace.shape(-1), options)
                   : svd_compression(samples, options);
  add_operators(result.compression, kspace.rank() - 1);
  result.kspace = result.compression.kspace(kspace);
  return result;
}

LeadingCoils leading_coils(Matrix covariance, index_t coils, index_t to) {
  const Eigen eigen = eigen_of(std::move(covariance), coils);
  LeadingCoils result;
  const std::vector<double> energies = normalized(eigen.values);
  for (index_t k = 0; k < to; ++k) result.energy += energies[static_cast<std::size_t>(k)];
  for (index_t i = 0; i < to * coils; ++i) {
    result.rows.emplace_back(std::conj(eigen.vectors[static_cast<std::size_t>(i)]));
  }
  return result;
}

Tensor remove_oversampling(const Tensor& kspace, index_t n_x) {
  const index_t n = kspace.rank() > 0 ? kspace.shape(-1) : 0;
  if (n_x < 1 || n_x > n) {
    throw ValueError(fmt::format(
        "[remove_oversampling] size: got {} points, expected 1 to {}, those of the readout", n_x,
        n));
  }
  if (n_x == n) return kspace;
  const auto fft = [](const char* image, const char* grid) {
    return Fft(1, {.grid = Grid{image, grid}, .centered = true});
  };
  return Chain(fft("X1", "Kx1").H(), Crop({n}, {n_x}, {.in = "X1", .out = "X2"}),
               fft("X2", "Kx2"))(kspace);
}

}  // namespace palimpsest
