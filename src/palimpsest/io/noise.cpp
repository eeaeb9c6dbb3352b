// SPDX-License-Identifier: Apache-2.0
// Noise readouts: the covariance between coils, and its removal.
#include <fmt/format.h>

#include <cmath>
#include <complex>

#include "palimpsest/io/cartesian.hpp"

namespace palimpsest {

namespace {

using cfloat = std::complex<float>;
using cdouble = std::complex<double>;

/// Lower triangle L of covariance = L L^H, row-major.
std::vector<cdouble> cholesky(const Tensor& covariance) {
  const index_t n = covariance.shape(0);
  std::vector<cdouble> l = covariance.to_vector<cdouble>();
  const auto at = [&](index_t i, index_t j) -> cdouble& {
    return l[static_cast<std::size_t>(i * n + j)];
  };
  for (index_t j = 0; j < n; ++j) {
    double pivot = at(j, j).real();
    const double whole = pivot;
    for (index_t k = 0; k < j; ++k) pivot -= std::norm(at(j, k));
    // Also false for NaN.
    if (!(pivot > 1e-12 * whole)) {
      throw ValueError(
          fmt::format("[prewhiten] the noise covariance is not positive definite at coil "
                      "{}. Try without prewhitening: the coil may be dead, or the noise "
                      "readouts too short.",
                      j));
    }
    at(j, j) = std::sqrt(pivot);
    for (index_t i = j + 1; i < n; ++i) {
      cdouble sum = at(i, j);
      for (index_t k = 0; k < j; ++k) sum -= at(i, k) * std::conj(at(j, k));
      at(i, j) = sum / at(j, j);
    }
  }
  return l;
}

/// Row-major inverse of a lower triangle.
std::vector<cdouble> inverse_of_triangle(const std::vector<cdouble>& l, index_t n) {
  std::vector<cdouble> inverse(l.size());
  const auto index = [n](index_t i, index_t j) { return static_cast<std::size_t>(i * n + j); };
  for (index_t j = 0; j < n; ++j) {
    inverse[index(j, j)] = 1.0 / l[index(j, j)];
    for (index_t i = j + 1; i < n; ++i) {
      cdouble sum = 0;
      for (index_t k = j; k < i; ++k) sum += l[index(i, k)] * inverse[index(k, j)];
      inverse[index(i, j)] = -sum / l[index(i, i)];
    }
  }
  return inverse;
}

}  // namespace

void add_noise_readout(RawScan& scan, const Tensor& noise) {
  if (noise.dtype() != DType::complex64 || noise.rank() != 2 || noise.numel() == 0) {
    throw ShapeError(
        fmt::format("[add_noise_readout] got {} of shape {}, expected complex64 (coil, "
                    "sample).",
                    name_of(noise.dtype()), to_string(noise.shape())));
  }
  Readout readout;
  readout.n_coils = noise.shape(0);
  readout.n_samples = noise.shape(1);
  readout.sample_time_us = 5.0;
  readout.first_sample = scan.samples.defined() ? scan.samples.numel() : 0;
  readout.set_flag(ReadoutFlag::noise);
  Tensor grown = Tensor::empty({readout.first_sample + noise.numel()}, DType::complex64);
  if (readout.first_sample > 0) grown.narrow(0, 0, readout.first_sample).copy_from(scan.samples);
  grown.narrow(0, readout.first_sample, noise.numel()).view(noise.shape()).copy_from(noise);
  scan.samples = grown;
  scan.readouts.push_back(readout);
}

Tensor noise_covariance(const RawScan& scan) {
  index_t n_coils = 0, n_samples = 0;
  std::vector<cdouble> sum;
  for (std::size_t i = 0; i < scan.readouts.size(); ++i) {
    const Readout& readout = scan.readouts[i];
    if (!readout.has(ReadoutFlag::noise) || readout.n_samples == 0) continue;
    if (n_coils == 0) {
      n_coils = readout.n_coils;
      sum.resize(static_cast<std::size_t>(n_coils * n_coils));
    }
    if (readout.n_coils != n_coils) {
      throw FormatError(
          fmt::format("[scan] noise readout {} has {} coils, expected {} as in the "
                      "first one.",
                      i, readout.n_coils, n_coils));
    }
    const cfloat* noise = scan.samples.data<cfloat>() + readout.first_sample;
    for (index_t a = 0; a < n_coils; ++a) {
      for (index_t b = 0; b < n_coils; ++b) {
        cdouble product = 0;
        for (index_t s = 0; s < readout.n_samples; ++s) {
          product += cdouble(noise[a * readout.n_samples + s]) *
                     std::conj(cdouble(noise[b * readout.n_samples + s]));
        }
        sum[static_cast<std::size_t>(a * n_coils + b)] += product;
      }
    }
    n_samples += readout.n_samples;
  }
  if (n_samples == 0) return {};
  for (cdouble& value : sum) value /= static_cast<double>(n_samples);
  return Tensor::from(sum, Extents{n_coils, n_coils});
}

Tensor prewhitened(const Tensor& kspace, const Tensor& covariance) {
  const index_t n = kspace.rank() > 0 ? kspace.shape(0) : 0;
  if (kspace.dtype() != DType::complex64 || covariance.dtype() != DType::complex128 ||
      covariance.shape() != Extents{n, n} || n == 0) {
    throw ShapeError(
        fmt::format("[prewhiten] got k-space {} {} and covariance {} {}, expected "
                    "complex64 (coil, ..) and complex128 (coil, coil).",
                    name_of(kspace.dtype()), to_string(kspace.shape()), name_of(covariance.dtype()),
                    to_string(covariance.shape())));
  }
  const std::vector<cdouble> whitening = inverse_of_triangle(cholesky(covariance), n);
  const Tensor from = kspace.contiguous();
  Tensor result = Tensor::zeros(kspace.shape(), DType::complex64);
  const index_t plane = kspace.numel() / n;
  const cfloat* x = from.data<cfloat>();
  auto* y = result.mutable_data<cfloat>();
  for (index_t i = 0; i < n; ++i) {
    for (index_t j = 0; j <= i; ++j) {
      const cfloat weight(whitening[static_cast<std::size_t>(i * n + j)]);
      for (index_t p = 0; p < plane; ++p) y[i * plane + p] += weight * x[j * plane + p];
    }
  }
  return result;
}

}  // namespace palimpsest
