// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/trajectories.hpp"

#include "palimpsest/imaging/prelude.hpp"

namespace palimpsest {
namespace {

constexpr double kPhi = std::numbers::phi;

double radians(double degrees) { return degrees * std::numbers::pi / 180; }

void expect_positive(const char* who, const char* name, double got) {
  if (got > 0 && std::isfinite(got)) return;
  throw ValueError(fmt::format("[{}] {}: got {}, expected a positive number", who, name, got));
}

void check(const char* who, const RadialOptions& o) {
  expect_positive(who, "spokes", static_cast<double>(o.spokes));
  expect_positive(who, "samples", static_cast<double>(o.samples));
  expect_positive(who, "oversampling", o.oversampling);
  if (o.golden < 0) {
    throw ValueError(fmt::format("[{}] golden: got {}, expected at least 0", who, o.golden));
  }
}

// The signed k-space radius of sample j of a spoke, in cycles per field of view.
double radius(const RadialOptions& o, index_t j) {
  const bool is_half = o.half_shift || o.convention == TrajectoryConvention::bart;
  const double at = is_half ? static_cast<double>(j) - static_cast<double>(o.samples) / 2 + 0.5
                            : static_cast<double>(j - o.samples / 2);
  return at / o.oversampling;
}

double angle_degrees(const RadialOptions& o, index_t i) {
  const double step = o.golden > 0 ? golden_angle(o.golden)
                                   : (o.full ? 360.0 : 180.0) / static_cast<double>(o.spokes);
  // Whole turns are taken off before rounding, so that long series keep their accuracy.
  const double angle = std::fmod(static_cast<double>(i) * step, 360.0);
  return o.convention == TrajectoryConvention::bart ? 90 - angle : angle;
}

// Radius at each time of a spiral whose turns are `pitch(r)` apart, in cycles per field of view.
class Spiral {
 public:
  explicit Spiral(const SpiralOptions& o) : o_(o) {
    constexpr double kGamma = 42.577478518e6;  // Hz/T
    const double fov_m = o.field_of_view_mm * 1e-3;
    speed_ = kGamma * o.g_max * 1e-3 * fov_m;  // cycles per field of view and second
    acceleration_ = kGamma * o.s_max * fov_m;
    last_ = static_cast<double>(o.matrix) / 2;
  }

  // The angle of the points of one interleave, at multiples of the time step; radii to `radii`.
  std::vector<double> angles(std::vector<double>& radii) const {
    constexpr int kFine = 50;
    const double dt = o_.time_step_us * 1e-6 / kFine;
    std::vector<double> result;
    double r = 0, theta = 0, v = 0;  // v: length of path per second
    for (index_t step = 0; r <= last_; ++step) {
      if (step % kFine == 0) {
        result.push_back(theta);
        radii.push_back(r);
        if (result.size() > (std::size_t{1} << 17)) {
          throw ValueError("[spiral_trajectory] too long: got more than 131072 samples");
        }
      }
      // Along the path ds: dr = cos ds, r dtheta = sin ds, with dr/dtheta = pitch / (2 pi).
      const double slope = pitch(r) * static_cast<double>(o_.interleaves) / (2 * std::numbers::pi);
      const double length = std::sqrt(slope * slope + r * r);
      // Turning takes v^2 times the curvature, (r^2 + 2 slope^2) / length^3, of the slew rate.
      const double bend = (r * r + 2 * slope * slope) / (length * length * length);
      const double v_max = std::min(speed_, std::sqrt(acceleration_ / bend));
      const double turning = v * v * bend;
      const double left =
          std::sqrt(std::max(acceleration_ * acceleration_ - turning * turning, 0.0));
      v = std::min(v + left * dt, v_max);
      r += v * dt * slope / length;
      theta += v * dt / length;
    }
    return result;
  }

 private:
  // Distance between neighbouring turns of all interleaves.
  double pitch(double r) const {
    return 1 + (o_.outer_undersampling - 1) * std::pow(r / last_, o_.density_power);
  }

  const SpiralOptions& o_;
  double speed_, acceleration_, last_;
};

// The position, 0 .. 1, at the time t of a line whose gradient is a trapezoid.
double trapezoid(double t, double ramp) {
  const double area = 1 - ramp;
  if (ramp > 0 && t < ramp) return t * t / (2 * ramp) / area;
  if (ramp > 0 && t > 1 - ramp) return 1 - (1 - t) * (1 - t) / (2 * ramp) / area;
  return (t - ramp / 2) / area;
}

}  // namespace

double golden_angle(index_t golden) {
  if (golden < 1) {
    throw ValueError(fmt::format("[golden_angle] got {}, expected at least 1", golden));
  }
  // 180 / phi = 111.2461 for the first of them.
  return 180 / (kPhi + static_cast<double>(golden) - 1);
}

Tensor radial_trajectory(const RadialOptions& o) {
  check("radial_trajectory", o);
  Tensor result = Tensor::empty({o.spokes, o.samples, 2}, DType::float32);
  auto* out = result.mutable_data<float>();
  for (index_t i = 0; i < o.spokes; ++i) {
    const double a = radians(angle_degrees(o, i));
    for (index_t j = 0; j < o.samples; ++j) {
      *out++ = static_cast<float>(radius(o, j) * std::cos(a));
      *out++ = static_cast<float>(radius(o, j) * std::sin(a));
    }
  }
  return result;
}

Tensor stack_of_stars(const RadialOptions& radial, const StackOptions& stack) {
  check("stack_of_stars", radial);
  expect_positive("stack_of_stars", "planes", static_cast<double>(stack.planes));
  expect_positive("stack_of_stars", "acceleration", static_cast<double>(stack.acceleration));
  const index_t middle = stack.planes / 2;
  std::vector<index_t> planes;
  for (index_t p = middle % stack.acceleration; p < stack.planes; p += stack.acceleration) {
    planes.push_back(p);
  }
  Tensor result =
      Tensor::empty({std::ssize(planes), radial.spokes, radial.samples, 3}, DType::float32);
  auto* out = result.mutable_data<float>();
  const double between = (radial.full ? 360.0 : 180.0) / static_cast<double>(radial.spokes);
  for (std::size_t p = 0; p < planes.size(); ++p) {
    const double part = static_cast<double>(p) * (kPhi - 1);
    const double turned = stack.rotated ? (part - std::floor(part)) * between : 0;
    for (index_t i = 0; i < radial.spokes; ++i) {
      const double a = radians(angle_degrees(radial, i) + turned);
      for (index_t j = 0; j < radial.samples; ++j) {
        *out++ = static_cast<float>(radius(radial, j) * std::cos(a));
        *out++ = static_cast<float>(radius(radial, j) * std::sin(a));
        *out++ = static_cast<float>(planes[p] - middle);
      }
    }
  }
  return result;
}

Tensor koosh_ball(const RadialOptions& o) {
  check("koosh_ball", o);
  Tensor result = Tensor::empty({o.spokes, o.samples, 3}, DType::float32);
  auto* out = result.mutable_data<float>();
  const auto fraction = [](double x) { return x - std::floor(x); };
  for (index_t i = 0; i < o.spokes; ++i) {
    const double z = 2 * fraction(0.465571 * static_cast<double>(i)) - 1;
    const double azimuth = 2 * std::numbers::pi * fraction(0.682328 * static_cast<double>(i));
    const double across = std::sqrt(std::max(0.0, 1 - z * z));
    for (index_t j = 0; j < o.samples; ++j) {
      *out++ = static_cast<float>(radius(o, j) * across * std::cos(azimuth));
      *out++ = static_cast<float>(radius(o, j) * across * std::sin(azimuth));
      *out++ = static_cast<float>(radius(o, j) * z);
    }
  }
  return result;
}

Tensor spiral_trajectory(const SpiralOptions& o) {
  constexpr const char* kWho = "spiral_trajectory";
  expect_positive(kWho, "interleaves", static_cast<double>(o.interleaves));
  expect_positive(kWho, "matrix", static_cast<double>(o.matrix));
  expect_positive(kWho, "field_of_view_mm", o.field_of_view_mm);
  expect_positive(kWho, "g_max", o.g_max);
  expect_positive(kWho, "s_max", o.s_max);
  expect_positive(kWho, "outer_undersampling", o.outer_undersampling);
  expect_positive(kWho, "density_power", o.density_power);
  expect_positive(kWho, "time_step_us", o.time_step_us);
  std::vector<double> radii;
  const std::vector<double> angles = Spiral(o).angles(radii);
  Tensor result = Tensor::empty({o.interleaves, std::ssize(angles), 2}, DType::float32);
  auto* out = result.mutable_data<float>();
  for (index_t i = 0; i < o.interleaves; ++i) {
    const double start =
        2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(o.interleaves);
    for (std::size_t j = 0; j < angles.size(); ++j) {
      *out++ = static_cast<float>(radii[j] * std::cos(angles[j] + start));
      *out++ = static_cast<float>(radii[j] * std::sin(angles[j] + start));
    }
  }
  return result;
}

Tensor epi_trajectory(const EpiOptions& o) {
  constexpr const char* kWho = "epi_trajectory";
  expect_positive(kWho, "lines", static_cast<double>(o.lines));
  expect_positive(kWho, "echo_train", static_cast<double>(o.echo_train));
  expect_positive(kWho, "samples", static_cast<double>(o.samples));
  if (o.lines % o.echo_train != 0) {
    throw ValueError(fmt::format("[{}] echo_train: got {}, expected a divisor of {} lines", kWho,
                                 o.echo_train, o.lines));
  }
  if (!(o.ramp >= 0 && o.ramp <= 0.5)) {
    throw ValueError(fmt::format("[{}] ramp: got {}, expected a number in [0, 0.5]", kWho, o.ramp));
  }
  const index_t shots = o.lines / o.echo_train;
  Tensor result = Tensor::empty({o.lines, o.samples, 2}, DType::float32);
  auto* out = result.mutable_data<float>();
  const auto n = static_cast<double>(o.samples);
  for (index_t shot = 0; shot < shots; ++shot) {
    for (index_t echo = 0; echo < o.echo_train; ++echo) {
      for (index_t j = 0; j < o.samples; ++j) {
        // Without ramps sample j lies on the grid point j.
        const index_t at = echo % 2 == 0 ? j : o.samples - 1 - j;
        const double t = (static_cast<double>(at) + 0.5) / n;
        const double x = trapezoid(t, o.ramp) * n - 0.5 - std::floor(n / 2);
        *out++ = static_cast<float>(x);
        *out++ = static_cast<float>(echo * shots + shot - o.lines / 2);
      }
    }
  }
  return result;
}

std::string unit_warning(const Tensor& trajectory, const Extents& image) {
  constexpr double kSmallestReach = 0.25, kLargestReach = 1.5;
  const float* k = trajectory.data<float>();
  const auto d = static_cast<std::size_t>(trajectory.shape(-1));
  double reach = 0, largest = 0;
  for (std::size_t i = 0, end = static_cast<std::size_t>(trajectory.numel()); i < end; ++i) {
    const auto n = static_cast<double>(image[d - 1 - i % d]);
    reach = std::max(reach, 2 * std::abs(static_cast<double>(k[i])) / n);
    largest = std::max(largest, std::abs(static_cast<double>(k[i])));
  }
  if (reach >= kSmallestReach && reach <= kLargestReach) return "";
  const bool is_angle = std::abs(largest / std::numbers::pi - 1) < 0.05;
  return fmt::format(
      "warning: units? The trajectory reaches {:.3g} times the k-space of {}, expected cycles per "
      "field of view{}",
      reach, to_string(image), is_angle ? ": radians per pixel reach pi" : "");
}

Tensor coordinates_of_grid(const Tensor& trajectory) {
  const std::vector<index_t> last = {static_cast<index_t>(trajectory.rank()) - 1};
  return trajectory.flip(last).contiguous();
}

}  // namespace palimpsest
