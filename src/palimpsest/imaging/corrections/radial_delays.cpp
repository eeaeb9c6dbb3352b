// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/corrections/radial_delays.hpp"

#include <array>
#include <optional>

#include "palimpsest/imaging/prelude.hpp"

namespace palimpsest {
namespace {

// Points around the middle of a spoke: kDelayReach samples to each side, kFine points for each
// sample.
constexpr index_t kDelayReach = 6, kFine = 16, kPoints = 2 * kDelayReach * kFine + 1;
constexpr index_t kCoarse = kFine / 2;  // points between two of the first search
constexpr std::size_t kMostPairs = 2000;
constexpr double kLeastSine = 0.5;  // of the angle that a pair encloses

// Samples lie at (start + step j) n.
struct Spoke {
  std::array<double, 2> n;
  double start, step;
};

[[noreturn]] void refuse_delays_of(const char* what, const Tensor& array, const char* expected) {
  throw ShapeError(fmt::format("[radial_delays] {}: got the shape {}, expected {}", what,
                               to_string(array.shape()), expected));
}

std::vector<Spoke> spokes_of(const Tensor& trajectory) {
  if (trajectory.dtype() != DType::float32) {
    throw DTypeError(fmt::format("[radial_delays] trajectory: got {}, expected float32",
                                 name_of(trajectory.dtype())));
  }
  if (trajectory.rank() != 3 || trajectory.shape(2) != 2 || trajectory.shape(1) < 2) {
    refuse_delays_of("trajectory", trajectory, "(spokes, samples, 2)");
  }
  const Tensor dense = trajectory.contiguous();
  const auto* k = dense.data<float>();
  const index_t samples = trajectory.shape(1);
  std::vector<Spoke> spokes;
  for (index_t i = 0; i < trajectory.shape(0); ++i) {
    const float* line = k + i * samples * 2;
    const double x = line[2 * samples - 2] - line[0], y = line[2 * samples - 1] - line[1];
    const double length = std::hypot(x, y), step = length / static_cast<double>(samples - 1);
    Spoke spoke{{x / length, y / length}, 0, step};
    spoke.start = line[0] * spoke.n[0] + line[1] * spoke.n[1];
    bool is_line = length > 0 && std::isfinite(length);
    for (index_t j = 0; is_line && j < samples; ++j) {
      const double t = spoke.start + step * static_cast<double>(j);
      is_line =
          std::hypot(line[2 * j] - t * spoke.n[0], line[2 * j + 1] - t * spoke.n[1]) < 0.01 * step;
    }
    if (!is_line) {
      throw ValueError(
          fmt::format("[radial_delays] spoke {}: got points that are not an even line through the "
                      "middle, expected "
                      "a radial trajectory",
                      i));
    }
    spokes.push_back(spoke);
  }
  return spokes;
}

// sum over j of y_j D(s - j) interpolates samples whose transform has no more than n frequencies.
double dirichlet(double s, index_t n) {
  const double angle = std::numbers::pi * s, count = static_cast<double>(n);
  const double below = std::sin(angle / count);
  if (std::abs(below) < 1e-12) return 1;
  const double ratio = std::sin(angle) / (count * below);
  return n % 2 == 0 ? ratio * std::cos(angle / count) : ratio;
}

// The data around the middle of every spoke, (spoke, point, coil).
std::vector<Sample> middles(const Tensor& kspace, const std::vector<Spoke>& spokes) {
  const Tensor dense = kspace.contiguous();
  const auto* y = dense.data<Sample>();
  const index_t coils = kspace.shape(0), count = kspace.shape(1), samples = kspace.shape(2);
  std::vector<Sample> result(static_cast<std::size_t>(count * kPoints * coils));
  std::vector<double> weights(static_cast<std::size_t>(kPoints * samples));
  double offset = std::numeric_limits<double>::quiet_NaN();  // of the weights
  for (index_t i = 0; i < count; ++i) {
    const Spoke& spoke = spokes[static_cast<std::size_t>(i)];
    const double middle = -spoke.start / spoke.step;  // in samples
    if (middle != offset) {
      for (index_t p = 0; p < kPoints; ++p) {
        const double at =
            middle + static_cast<double>(p - kPoints / 2) / static_cast<double>(kFine);
        for (index_t j = 0; j < samples; ++j) {
          weights[static_cast<std::size_t>(p * samples + j)] =
              dirichlet(at - static_cast<double>(j), samples);
        }
      }
      offset = middle;
    }
    for (index_t p = 0; p < kPoints; ++p) {
      const double* w = weights.data() + p * samples;
      for (index_t c = 0; c < coils; ++c) {
        const Sample* line = y + (c * count + i) * samples;
        std::complex<double> sum = 0;
        for (index_t j = 0; j < samples; ++j) sum += w[j] * std::complex<double>(line[j]);
        result[static_cast<std::size_t>((i * kPoints + p) * coils + c)] = Sample(sum);
      }
    }
  }
  return result;
}

// Search for the point where two spokes agree best.
class Crossing {
 public:
  Crossing(const Sample* a, const Sample* b, index_t coils) : a_(a), b_(b), coils_(coils) {}

  // In points from the middle of each. None: at the border, or without a minimum.
  std::optional<std::array<double, 2>> find() const {
    index_t p = 0, q = 0;
    search(0, kPoints - 1, 0, kPoints - 1, kCoarse, p, q);
    search(p - kCoarse, p + kCoarse, q - kCoarse, q + kCoarse, 1, p, q);
    if (p < 1 || q < 1 || p > kPoints - 2 || q > kPoints - 2) return std::nullopt;
    // The lowest point of the paraboloid through the points around.
    const double f = distance(p, q);
    const double left = distance(p - 1, q), right = distance(p + 1, q);
    const double down = distance(p, q - 1), up = distance(p, q + 1);
    const double gp = (right - left) / 2, gq = (up - down) / 2;
    const double hp = right - 2 * f + left, hq = up - 2 * f + down;
    const double cross = (distance(p + 1, q + 1) - distance(p + 1, q - 1) - distance(p - 1, q + 1) +
                          distance(p - 1, q - 1)) /
                         4;
    const double determinant = hp * hq - cross * cross;
    if (!(determinant > 0) || !(hp > 0)) return std::nullopt;
    const double dp = std::clamp((cross * gq - hq * gp) / determinant, -1.0, 1.0);
    const double dq = std::clamp((cross * gp - hp * gq) / determinant, -1.0, 1.0);
    return std::array{static_cast<double>(p - kPoints / 2) + dp,
                      static_cast<double>(q - kPoints / 2) + dq};
  }

 private:
  double distance(index_t p, index_t q) const {
    double sum = 0;
    for (index_t c = 0; c < coils_; ++c) {
      sum += std::norm(std::complex<double>(a_[p * coils_ + c]) -
                       std::complex<double>(b_[q * coils_ + c]));
    }
    return sum;
  }

  void search(index_t p0, index_t p1, index_t q0, index_t q1, index_t step, index_t& best_p,
              index_t& best_q) const {
    double least = std::numeric_limits<double>::infinity();
    for (index_t p = std::max<index_t>(p0, 0); p <= std::min(p1, kPoints - 1); p += step) {
      for (index_t q = std::max<index_t>(q0, 0); q <= std::min(q1, kPoints - 1); q += step) {
        const double d = distance(p, q);
        if (d < least) {
          least = d;
          best_p = p;
          best_q = q;
        }
      }
    }
  }

  const Sample *a_, *b_;
  index_t coils_;
};

// S d = r of one pair.
struct Equation {
  std::array<double, 2> d, r;
  double weight = 1;
  double miss(const RadialDelays& s) const {
    return std::hypot(s.xx * d[0] + s.xy * d[1] - r[0], s.xy * d[0] + s.yy * d[1] - r[1]);
  }
};

// The normal equations of (d0 0 d1; 0 d1 d0) (xx, yy, xy) = r, by Cramer's rule.
std::optional<RadialDelays> solved(const std::vector<Equation>& equations) {
  double xx = 0, yy = 0, xy = 0;
  std::array<double, 3> b{};
  for (const auto& [d, r, w] : equations) {
    xx += w * d[0] * d[0];
    yy += w * d[1] * d[1];
    xy += w * d[0] * d[1];
    b[0] += w * d[0] * r[0];
    b[1] += w * d[1] * r[1];
    b[2] += w * (d[1] * r[0] + d[0] * r[1]);
  }
  // (xx 0 xy; 0 yy xy; xy xy xx + yy)
  const double last = xx + yy, determinant = xx * yy * last - xy * xy * last;
  if (!(determinant > 1e-9 * last * last * last)) return std::nullopt;
  const double s0 = b[0] * (yy * last - xy * xy) + xy * (b[1] * xy - b[2] * yy);
  const double s1 = b[1] * (xx * last - xy * xy) + xy * (b[0] * xy - b[2] * xx);
  const double s2 = xx * (yy * b[2] - xy * b[1]) - xy * yy * b[0];
  return RadialDelays{s0 / determinant, s1 / determinant, s2 / determinant};
}

// Least sum of misses, by least squares with the weights 1 / miss: pairs that agree best where they
// do not cross count little.
std::optional<RadialDelays> robust(std::vector<Equation>& equations) {
  constexpr int kRounds = 30;
  auto delays = solved(equations);
  for (int round = 0; delays && round < kRounds; ++round) {
    for (Equation& e : equations) e.weight = 1 / std::max(e.miss(*delays), 1e-3);
    delays = solved(equations);
  }
  return delays;
}

std::vector<std::array<std::size_t, 2>> pairs_of(const std::vector<Spoke>& spokes) {
  std::vector<std::array<std::size_t, 2>> pairs;
  const auto encloses = [&](const Spoke& a, const Spoke& b) {
    return std::abs(a.n[0] * b.n[1] - a.n[1] * b.n[0]) >= kLeastSine;
  };
  std::size_t count = 0;
  for (std::size_t i = 0; i < spokes.size(); ++i) {
    for (std::size_t j = i + 1; j < spokes.size(); ++j) {
      count += encloses(spokes[i], spokes[j]) ? 1U : 0U;
    }
  }
  const std::size_t every = count / kMostPairs + 1;
  std::size_t seen = 0;
  for (std::size_t i = 0; i < spokes.size(); ++i) {
    for (std::size_t j = i + 1; j < spokes.size(); ++j) {
      if (encloses(spokes[i], spokes[j]) && seen++ % every == 0) pairs.push_back({i, j});
    }
  }
  return pairs;
}

}  // namespace

RadialDelays estimate_delays(const Tensor& kspace, const Tensor& trajectory) {
  const std::vector<Spoke> spokes = spokes_of(trajectory);
  if (kspace.dtype() != DType::complex64) {
    throw DTypeError(fmt::format("[radial_delays] k-space: got {}, expected complex64",
                                 name_of(kspace.dtype())));
  }
  if (kspace.rank() != 3 || kspace.shape(0) < 1 || kspace.shape(1) != trajectory.shape(0) ||
      kspace.shape(2) != trajectory.shape(1)) {
    refuse_delays_of("k-space", kspace,
                     fmt::format("(C, {}, {})", trajectory.shape(0), trajectory.shape(1)).c_str());
  }
  const auto pairs = pairs_of(spokes);
  if (pairs.size() < 3) {
    throw ValueError(
        fmt::format("[radial_delays] got {} pairs of spokes that cross at 30 degrees or more, "
                    "expected at least 3",
                    pairs.size()));
  }
  const std::vector<Sample> around = middles(kspace, spokes);
  const index_t coils = kspace.shape(0);
  std::vector<Equation> equations;
  for (const auto& [i, j] : pairs) {
    const auto data = [&](std::size_t spoke) {
      return around.data() + static_cast<index_t>(spoke) * kPoints * coils;
    };
    const auto found = Crossing(data(i), data(j), coils).find();
    if (!found) continue;
    const Spoke &a = spokes[i], &b = spokes[j];
    const double t = (*found)[0] * a.step / static_cast<double>(kFine);
    const double u = (*found)[1] * b.step / static_cast<double>(kFine);
    equations.push_back({{a.n[0] - b.n[0], a.n[1] - b.n[1]},
                         {u * b.n[0] - t * a.n[0], u * b.n[1] - t * a.n[1]},
                         1});
  }
  if (equations.size() >= 3) {
    if (const auto delays = robust(equations)) return *delays;
  }
  throw ValueError(
      "[radial_delays] no signal where spokes cross, expected data around the middle of k-space");
}

Tensor corrected(const Tensor& trajectory, const RadialDelays& delays) {
  const std::vector<Spoke> spokes = spokes_of(trajectory);
  Tensor result = trajectory.contiguous().clone();
  auto* k = result.mutable_data<float>();
  for (const Spoke& spoke : spokes) {
    const double x = delays.xx * spoke.n[0] + delays.xy * spoke.n[1];
    const double y = delays.xy * spoke.n[0] + delays.yy * spoke.n[1];
    for (index_t j = 0; j < trajectory.shape(1); ++j, k += 2) {
      k[0] += static_cast<float>(x);
      k[1] += static_cast<float>(y);
    }
  }
  return result;
}

}  // namespace palimpsest
