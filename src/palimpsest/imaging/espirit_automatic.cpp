// SPDX-License-Identifier: Apache-2.0
// Choices by Stein's unbiased estimate of risk: weights of singular vectors, and the crop value.

#include "palimpsest/imaging/espirit_kernels.hpp"
#include "palimpsest/imaging/prelude.hpp"

namespace palimpsest {
namespace {

using Line = std::vector<Complex>;

// Estimated risk of the threshold l of singular values s, of complex noise whose real and imaginary
// parts have variance tau2, up to a constant.
double risk(const std::vector<double>& s, double l, index_t rows, index_t columns, double tau2) {
  const double shape = 2 * static_cast<double>(std::abs(rows - columns)) + 1;
  double bias = 0, divergence = 0;
  for (std::size_t i = 0; i < s.size(); ++i) {
    bias += std::min(l * l, s[i] * s[i]);
    if (s[i] <= l) continue;
    divergence += 1 + shape * (1 - l / s[i]);
    for (std::size_t j = 0; j < s.size(); ++j) {
      const double difference = s[i] * s[i] - s[j] * s[j];
      if (i != j && difference != 0) divergence += 4 * s[i] * (s[i] - l) / difference;
    }
  }
  return bias + 2 * tau2 * divergence;
}

// The unitary centred transform between the image and the calibration area, axis by axis.
class LowPass {
 public:
  explicit LowPass(const EspiritSizes& s) : s_(s) {
    for (std::size_t k = 0; k < 3; ++k) {
      const double n = static_cast<double>(s.n[k]);
      for (index_t q = 0; q < s.area.extent[k]; ++q) {
        const auto f = static_cast<double>(s.area.start[k] + q - s.n[k] / 2);
        for (index_t j = 0; j < s.n[k]; ++j) {
          const auto r = static_cast<double>(j - s.n[k] / 2);
          tables_[k].push_back(std::polar(1 / std::sqrt(n), -2 * std::numbers::pi * f * r / n));
        }
      }
    }
  }

  // Image (z, y, x) -> samples of the area.
  Line forward(const Line& image) const {
    Line a = image;
    std::array<index_t, 3> n = s_.n;
    for (std::size_t k = 3; k-- > 0;) a = apply(a, n, k, false);
    return a;
  }
  Line adjoint(const Line& samples) const {
    Line a = samples;
    std::array<index_t, 3> n = s_.area.extent;
    for (std::size_t k = 0; k < 3; ++k) a = apply(a, n, k, true);
    return a;
  }

 private:
  // Applies the operator along one axis, and changes its extent in n.
  Line apply(const Line& in, std::array<index_t, 3>& n, std::size_t axis, bool is_adjoint) const {
    const index_t from = n[axis], to = is_adjoint ? s_.n[axis] : s_.area.extent[axis];
    index_t before = 1, after = 1;
    for (std::size_t k = 0; k < axis; ++k) before *= n[k];
    for (std::size_t k = axis + 1; k < 3; ++k) after *= n[k];
    Line out(static_cast<std::size_t>(before * to * after));
    for (index_t b = 0; b < before; ++b) {
      for (index_t q = 0; q < to; ++q) {
        Complex* const sum = out.data() + (b * to + q) * after;
        for (index_t j = 0; j < from; ++j) {
          const Complex t = is_adjoint
                                ? std::conj(tables_[axis][static_cast<std::size_t>(j * to + q)])
                                : tables_[axis][static_cast<std::size_t>(q * from + j)];
          const Complex* const row = in.data() + (b * from + j) * after;
          for (index_t i = 0; i < after; ++i) {
            sum[i] += Complex(t.real() * row[i].real() - t.imag() * row[i].imag(),
                              t.real() * row[i].imag() + t.imag() * row[i].real());
          }
        }
      }
    }
    n[axis] = to;
    return out;
  }

  const EspiritSizes& s_;
  std::array<Line, 3> tables_;  // (frequency, position)
};

double energy(const Line& a) {
  double sum = 0;
  for (const Complex v : a) sum += std::norm(v);
  return sum;
}

class CropRisk {
 public:
  CropRisk(const Tensor& samples, const EspiritSizes& s, const Tensor& maps,
           const Tensor& eigenvalues, double sigma2)
      : s_(s),
        low_pass_(s),
        maps_(maps.data<Sample>()),
        eigenvalues_(eigenvalues.data<float>()),
        sigma2_(sigma2),
        voxels_(s.n[0] * s.n[1] * s.n[2]),
        points_(s.samples() / s.n_coils) {
    const auto* y = samples.data<Complex>();
    for (index_t c = 0; c < s.n_coils; ++c) {
      y_.emplace_back(y + c * points_, y + (c + 1) * points_);
    }
    // s^H y of each set, before it is cropped.
    combined_.assign(static_cast<std::size_t>(s.sets), Line(static_cast<std::size_t>(voxels_)));
    for (index_t c = 0; c < s.n_coils; ++c) {
      const Line image = low_pass_.adjoint(y_[static_cast<std::size_t>(c)]);
      for (index_t m = 0; m < s.sets; ++m) {
        for (index_t i = 0; i < voxels_; ++i) {
          combined_[static_cast<std::size_t>(m)][static_cast<std::size_t>(i)] +=
              std::conj(map(m, c, i)) * image[static_cast<std::size_t>(i)];
        }
      }
    }
  }

  double operator()(double crop) const {
    double sum = 0;
    for (index_t c = 0; c < s_.n_coils; ++c) {
      Line projected(static_cast<std::size_t>(voxels_));
      for (index_t m = 0; m < s_.sets; ++m) {
        Line cropped(static_cast<std::size_t>(voxels_));
        for (index_t i = 0; i < voxels_; ++i) {
          if (static_cast<double>(eigenvalues_[m * voxels_ + i]) < crop) continue;
          const auto at = static_cast<std::size_t>(i);
          cropped[at] = map(m, c, i);
          projected[at] += cropped[at] * combined_[static_cast<std::size_t>(m)][at];
        }
        sum += 2 * sigma2_ * energy(low_pass_.forward(cropped));
      }
      Line difference = low_pass_.forward(projected);
      const Line& y = y_[static_cast<std::size_t>(c)];
      for (std::size_t i = 0; i < difference.size(); ++i) difference[i] -= y[i];
      sum += energy(difference);
    }
    return sum;
  }

 private:
  Complex map(index_t m, index_t c, index_t i) const {
    return Complex(maps_[(m * s_.n_coils + c) * voxels_ + i]);
  }

  const EspiritSizes& s_;
  const LowPass low_pass_;
  const Sample* maps_;
  const float* eigenvalues_;
  const double sigma2_;
  const index_t voxels_, points_;
  std::vector<Line> y_, combined_;
};

}  // namespace

std::vector<double> soft_weights(const std::vector<double>& values, index_t rows, index_t columns,
                                 double sigma2) {
  double best = 0, least = std::numeric_limits<double>::infinity();
  // Between two values the risk is a parabola with its bend upward or a line: its ends and middle.
  const auto consider = [&](double l) {
    const double r = risk(values, l, rows, columns, sigma2 / 2);
    if (r < least) {
      least = r;
      best = l;
    }
  };
  consider(values.front());
  for (std::size_t k = 0; k < values.size(); ++k) {
    const double next = k + 1 < values.size() ? values[k + 1] : 0;
    consider((values[k] + next) / 2);
    consider(next);
  }
  std::vector<double> weights;
  for (const double v : values) weights.push_back(v > best ? 1 - best / v : 0);
  return weights;
}

double best_crop(const Tensor& samples, const EspiritSizes& s, const Tensor& maps,
                 const Tensor& eigenvalues, double sigma2) {
  const CropRisk risk_at(samples, s, maps, eigenvalues, sigma2);
  double best = 0.5, least = std::numeric_limits<double>::infinity();
  const auto consider = [&](double crop) {
    const double r = risk_at(crop);
    if (r < least) {
      least = r;
      best = crop;
    }
  };
  for (int i = 50; i <= 99; ++i) consider(i / 100.0);
  const double middle = best;
  for (int i = -9; i <= 9; ++i) {
    const double crop = middle + i / 1000.0;
    if (i != 0 && crop > 0 && crop < 1) consider(crop);
  }
  return best;
}

}  // namespace palimpsest
