// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/reconstruct.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <utility>

#include "palimpsest/base/error.hpp"

namespace palimpsest {
namespace {

using Sample = std::complex<float>;

void check_finite(const Tensor& kspace) {
  const Tensor dense = kspace.contiguous();
  const auto* v = dense.data<Sample>();
  for (index_t i = 0; i < dense.numel(); ++i) {
    if (std::isfinite(v[i].real()) && std::isfinite(v[i].imag())) continue;
    throw ValueError(
        fmt::format("[reconstruct] NaN or infinite values in k-space: the first is "
                    "element {} of {}",
                    i, dense.numel()));
  }
}

// k-space and where it was measured, fit for the model.
struct Data {
  Tensor kspace;
  KspaceSampling sampling;
  Dims image;
  bool has_frames = false;
};

Data data_of(const Tensor& kspace, const Tensor& maps, const KspaceSampling& sampling) {
  if (kspace.dtype() != DType::complex64) {
    throw DTypeError(
        fmt::format("[reconstruct] k-space: got {}, expected complex64", name_of(kspace.dtype())));
  }
  if (kspace.rank() < 3) {
    throw ShapeError(fmt::format("[reconstruct] k-space: got the shape {}, expected (C, ..)",
                                 to_string(kspace.shape())));
  }
  check_finite(kspace);
  Data data{kspace, sampling, {}, false};
  if (!sampling.mask && !sampling.trajectory) {
    // (T, C, y, x) or (C, z, y, x): the coils of the maps tell.
    const index_t spatial = kspace.rank() >= 5 ? 3 : kspace.rank() == 3 ? 2 : 0;
    const bool is_plane_series = kspace.rank() == 4 && kspace.shape(1) == maps.shape(-3) &&
                                 (maps.rank() == 3 || kspace.shape(0) != maps.shape(-4));
    data.sampling.mask = measured_points(kspace, spatial == 3 || is_plane_series);
  }
  data.image = image_dimensions(maps, data.sampling);
  data.has_frames = data.image.contains(ND("T"));
  const index_t frames = data.has_frames ? data.sampling.mask->shape(0) : 1;
  if (frames == 1 && data.has_frames && kspace.shape(0) != 1) {
    throw ShapeError("[reconstruct] k-space and mask differ in their frames");
  }
  return data;
}

// (C, ..) of a series: what each point measured on average.
Tensor mean_of_frames(const Tensor& kspace, const Tensor& mask) {
  const Tensor dense = kspace.contiguous(), taken = mask.to(DType::bool_).contiguous();
  const index_t frames = kspace.shape(0), coils = kspace.shape(1);
  const index_t points = taken.numel() / frames;
  Tensor mean =
      Tensor::zeros(Extents(kspace.shape().begin() + 1, kspace.shape().end()), DType::complex64);
  auto* out = mean.mutable_data<Sample>();
  const auto* in = dense.data<Sample>();
  const bool* is_taken = taken.data<bool>();
  for (index_t p = 0; p < points; ++p) {
    index_t n = 0;
    for (index_t t = 0; t < frames; ++t) n += is_taken[t * points + p] ? 1 : 0;
    if (n == 0) continue;
    for (index_t c = 0; c < coils; ++c) {
      std::complex<double> sum = 0;
      for (index_t t = 0; t < frames; ++t) {
        sum += std::complex<double>(in[(t * coils + c) * points + p]);
      }
      out[c * points + p] = Sample(sum / static_cast<double>(n));
    }
  }
  return mean;
}

bool needs_scale(const ReconstructOptions& options) {
  return options.keep_scale || !are_quadratic(options.regularizers);
}

double scale_of(const Data& data, const NamedLinop& A, const ReconstructOptions& options) {
  if (options.scale) return *options.scale;
  if (!needs_scale(options)) return 1;
  if (data.sampling.trajectory) {
    const Tensor image = A.H()(data.kspace).contiguous();
    return brightness(image.unsqueeze(0)).scale();
  }
  const Tensor kspace =
      data.has_frames ? mean_of_frames(data.kspace, *data.sampling.mask) : data.kspace;
  const CalibrationArea area = brightness_area(kspace);
  // Without a middle there is nothing to compare with: the whole grid is used.
  if (area.extent[0] * area.extent[1] * area.extent[2] == 0) {
    return brightness(A.H()(data.kspace).contiguous().unsqueeze(0)).scale();
  }
  return brightness_of(kspace, area).scale();
}

Objective objective_of(const NamedLinop& A, const Dims& image, const ReconstructOptions& options,
                       double scale) {
  Objective f{.A = A};
  add_regularizers(f, options.regularizers, image,
                   [scale](const Regularizer& r) { return Weight(r.lambda * scale); });
  return f;
}

MinimizeOptions minimize_options(ReconstructMethod method, const ReconstructOptions& options) {
  MinimizeOptions result;
  switch (method) {
    case ReconstructMethod::cg:
      result.method = Method::cg;
      break;
    case ReconstructMethod::fista:
      result.method = Method::fista;
      break;
    case ReconstructMethod::admm:
      result.method = Method::admm;
      break;
    default:
      result.method = Method::condat_vu;
  }
  result.tolerance = options.tolerance;
  result.max_iterations = options.iterations;
  result.x0 = options.start;
  result.callback = options.callback;
  result.budget_bytes = options.budget_bytes;
  result.time_limit_s = options.time_limit_s;
  result.cancel = options.cancel;
  result.seed = options.seed;
  return result;
}

void check_options(const ReconstructOptions& options) {
  if (options.iterations < 1) {
    throw ValueError(
        fmt::format("[reconstruct] iterations: got {}, expected at least 1", options.iterations));
  }
  if (options.scale && !(*options.scale > 0 && std::isfinite(*options.scale))) {
    throw ValueError(
        fmt::format("[reconstruct] scale: got {}, expected a positive number", *options.scale));
  }
}

void divide(Tensor& image, double by) {
  auto* v = image.mutable_data<Sample>();
  for (index_t i = 0; i < image.numel(); ++i) v[i] /= static_cast<float>(by);
}

}  // namespace

const char* name_of(ReconstructMethod method) {
  constexpr const char* kNames[] = {"automatic", "adjoint", "cg", "fista", "primal-dual", "admm"};
  return kNames[static_cast<std::size_t>(method)];
}

ReconstructMethod reconstruct_method(const Objective& f, ReconstructMethod wanted) {
  const bool is_smooth = f.terms.empty() && !f.h;
  const auto best = is_smooth         ? ReconstructMethod::cg
                    : f.terms.empty() ? ReconstructMethod::fista
                                      : ReconstructMethod::primal_dual;
  if (wanted == ReconstructMethod::automatic) return best;
  const bool has_no_term = f.terms.empty();
  const bool is_able = wanted == ReconstructMethod::adjoint ? is_smooth && f.quadratics.empty()
                       : wanted == ReconstructMethod::cg    ? is_smooth
                       : wanted == ReconstructMethod::fista ? has_no_term
                       : wanted == ReconstructMethod::admm  ? !is_smooth
                                                            : true;
  if (is_able) return wanted;
  throw ValueError(fmt::format("[method] {} cannot do these regularizers. Try {}", name_of(wanted),
                               name_of(best)));
}

Tensor measured_points(const Tensor& kspace, bool is_series) {
  const std::size_t coil_axis = is_series ? 1 : 0;
  if (kspace.rank() < coil_axis + 2 || kspace.dtype() != DType::complex64) {
    throw ShapeError(fmt::format("[measured_points] got {} {}, expected complex64 {}",
                                 name_of(kspace.dtype()), to_string(kspace.shape()),
                                 is_series ? "(T, C, ..)" : "(C, ..)"));
  }
  const Tensor dense = kspace.contiguous();
  const auto* in = dense.data<Sample>();
  const index_t frames = is_series ? kspace.shape(0) : 1;
  const index_t coils = kspace.shape(static_cast<index_t>(coil_axis));
  Extents shape = kspace.shape();
  shape.erase(coil_axis);
  Tensor mask = Tensor::zeros(shape, DType::bool_);
  bool* out = mask.mutable_data<bool>();
  const index_t points = frames > 0 ? mask.numel() / frames : 0;
  for (index_t t = 0; t < frames; ++t) {
    for (index_t c = 0; c < coils; ++c) {
      for (index_t p = 0; p < points; ++p) {
        out[t * points + p] |= in[(t * coils + c) * points + p] != Sample(0);
      }
    }
  }
  return mask;
}

Reconstruction reconstruct(const Tensor& kspace, const Tensor& maps, const KspaceSampling& sampling,
                           const ReconstructOptions& options) {
  check_options(options);
  const Data data = data_of(kspace, maps, sampling);
  const NamedLinop A = sense_model(maps, data.sampling);
  Reconstruction result;
  result.method = reconstruct_method(objective_of(A, data.image, options, 1), options.method);
  result.scale = scale_of(data, A, options);
  if (result.method == ReconstructMethod::adjoint) {
    result.image = A.H()(kspace).contiguous();
    result.solve.status = Status::converged;
  } else {
    const Objective f = objective_of(A, data.image, options, result.scale);
    result.solve = minimize(f, kspace, minimize_options(result.method, options));
    result.image = std::exchange(result.solve.x, Tensor());
  }
  if (options.keep_scale) divide(result.image, result.scale);
  return result;
}

SolvePlan plan_reconstruct(const Tensor& kspace, const Tensor& maps, const KspaceSampling& sampling,
                           const ReconstructOptions& options) {
  check_options(options);
  const Data data = data_of(kspace, maps, sampling);
  const NamedLinop A = sense_model(maps, data.sampling);
  const Objective f = objective_of(A, data.image, options, 1);
  const ReconstructMethod method = reconstruct_method(f, options.method);
  if (method == ReconstructMethod::adjoint) {
    throw ValueError("[plan_reconstruct] the adjoint has no solve to plan");
  }
  return plan_minimize(f, {kspace.dtype(), kspace.shape(), kspace.device()},
                       minimize_options(method, options));
}

}  // namespace palimpsest
