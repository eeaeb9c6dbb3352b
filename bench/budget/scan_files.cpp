// SPDX-License-Identifier: Apache-2.0
#include "scan_files.hpp"

#include <cmath>
#include <complex>
#include <filesystem>
#include <numbers>
#include <vector>

#include "palimpsest/io/cfl.hpp"
#include "palimpsest/io/npy.hpp"
#include "palimpsest/linop/transforms/fft.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest::bench {
namespace {

using Value = std::complex<float>;

struct Point {
  double z, y, x;
};

// Calls f(position in the volume, coordinates within -1 .. 1).
template <class F>
void for_each_point(index_t n, F&& f) {
  const auto at = [n](index_t i) {
    return 2.0 * static_cast<double>(i) / static_cast<double>(n) - 1;
  };
  index_t i = 0;
  for (index_t z = 0; z < n; ++z) {
    for (index_t y = 0; y < n; ++y) {
      for (index_t x = 0; x < n; ++x, ++i) f(i, Point{at(z), at(y), at(x)});
    }
  }
}

float phantom(const Point& p) {
  struct Ellipsoid {
    double value;
    Point radii, middle;
  };
  constexpr Ellipsoid kParts[] = {{1.0, {0.9, 0.75, 0.65}, {0, 0, 0}},
                                  {-0.6, {0.8, 0.68, 0.58}, {0, 0, 0}},
                                  {0.4, {0.3, 0.2, 0.12}, {0.1, 0.1, 0.25}},
                                  {0.5, {0.2, 0.15, 0.2}, {-0.2, -0.3, -0.1}}};
  double value = 0;
  for (const Ellipsoid& e : kParts) {
    const double z = (p.z - e.middle.z) / e.radii.z, y = (p.y - e.middle.y) / e.radii.y,
                 x = (p.x - e.middle.x) / e.radii.x;
    if (z * z + y * y + x * x < 1) value += e.value;
  }
  return static_cast<float>(value * (1 + 0.05 * std::sin(20 * p.x) * std::cos(17 * p.y)));
}

Tensor coil_maps(index_t n, index_t coils) {
  Tensor maps = Tensor::empty({coils, n, n, n}, DType::complex64);
  Value* const values = maps.mutable_data<Value>();
  const index_t volume = n * n * n;
  for_each_point(n, [&](index_t i, const Point& p) {
    double power = 0;
    for (index_t c = 0; c < coils; ++c) {
      const double angle =
          2 * std::numbers::pi * static_cast<double>(c) / static_cast<double>(coils);
      const double z = p.z - (c % 2 == 0 ? 0.6 : -0.6), y = p.y - 1.2 * std::sin(angle),
                   x = p.x - 1.2 * std::cos(angle);
      const double size = std::exp(-(z * z + y * y + x * x) / 1.5);
      const double phase = angle + p.x * std::cos(angle) + p.y * std::sin(angle);
      values[c * volume + i] = static_cast<Value>(std::polar(size, phase));
      power += size * size;
    }
    for (index_t c = 0; c < coils; ++c) {
      values[c * volume + i] *= static_cast<float>(1 / std::sqrt(power));
    }
  });
  return maps;
}

// Per pair (z, y): is the readout measured?
std::vector<bool> measured_lines(index_t n) {
  const Tensor chances = Tensor::random_uniform({n, n}, DType::float64, {1, 0});
  const double* chance = chances.data<double>();
  std::vector<bool> result;
  const auto is_central = [n](index_t i) { return std::abs(i - n / 2) <= n / 12; };
  for (index_t z = 0; z < n; ++z) {
    for (index_t y = 0; y < n; ++y) {
      result.push_back((is_central(z) && is_central(y)) || chance[z * n + y] < 0.22);
    }
  }
  return result;
}

}  // namespace

void make_scan_files(const std::string& folder, index_t n, index_t coils) {
  if (std::filesystem::exists(folder + "/maps.hdr")) return;
  std::filesystem::create_directories(folder);
  const Tensor maps = coil_maps(n, coils);
  const std::vector<bool> measured = measured_lines(n);
  std::vector<float> image(static_cast<std::size_t>(n * n * n));
  for_each_point(
      n, [&](index_t i, const Point& p) { image[static_cast<std::size_t>(i)] = phantom(p); });
  const NamedLinop transform = Fft(3, {.norm = FftNorm::ortho, .centered = true});
  Tensor kspace = Tensor::empty(maps.shape(), DType::complex64);
  for (index_t c = 0; c < coils; ++c) {
    Tensor coil = maps.select(0, c).clone();
    Value* values = coil.mutable_data<Value>();
    for (std::size_t i = 0; i < image.size(); ++i) values[i] *= image[i];
    Tensor spectrum = transform(coil);
    const Tensor noise = Tensor::random_normal(spectrum.shape(), DType::complex64,
                                               {2, static_cast<std::uint64_t>(c)});
    Value* samples = spectrum.mutable_data<Value>();
    const Value* noises = noise.data<Value>();
    for (std::size_t i = 0; i < image.size(); ++i) {
      const bool is_there = measured[i / static_cast<std::size_t>(n)];
      samples[i] = is_there ? samples[i] + 1e-3F * noises[i] : Value(0);
    }
    kspace.select(0, c).copy_from(spectrum);
  }
  write_npy(folder + "/kspace.npy", kspace);
  write_npy(folder + "/maps.npy", maps);
  write_cfl(folder + "/kspace", kspace);
  write_cfl(folder + "/maps", maps);
}

}  // namespace palimpsest::bench
