// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/reconstruct.hpp"

#include <array>

#include "palimpsest/compile/tensor_math.hpp"
#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/imaging/recon/image_solver.hpp"
#include "palimpsest/imaging/recon/mask_extents.hpp"
#include "palimpsest/imaging/recon/partial_images.hpp"
#include "palimpsest/imaging/recon/preconditioner.hpp"
#include "palimpsest/imaging/recon/subspace.hpp"
#include "palimpsest/imaging/recon/value_checks.hpp"
#include "palimpsest/kernels/reduce/reduce_all.hpp"
#include "palimpsest/linop/split/cache_tiles.hpp"
#include "palimpsest/ops/elementwise/elementwise.hpp"
#include "palimpsest/ops/reduce/reduce.hpp"
#include "palimpsest/solve/spectrum.hpp"

namespace palimpsest {
namespace {

// The most iterations unless a number is given. Outside of a ball the objective is infinite, and
// random shifts move it in every iteration: such solves may do them all.
constexpr int kIterations = 300, kIterationsUnsettled = 30;
// Default of ReconstructOptions.tolerance. Smaller residuals of cg fit noise and errors of the
// model: of 96 x 96 along 100 spokes the error grows from 0.22 at 1e-4 to 0.37 at 1e-6.
constexpr double kTolerance = 1e-4;

// k-space and where it was measured, fit for the model.
struct Data {
  Tensor kspace;
  KspaceSampling sampling;
  Dims image;
  bool has_frames = false;
};

// The number of frames of a series.
index_t n_frames_of(const KspaceSampling& sampling) {
  return (sampling.mask ? *sampling.mask : *sampling.trajectory).shape(0);
}

Data data_of(const Tensor& kspace, const Tensor& maps, const KspaceSampling& sampling) {
  if (kspace.dtype() != DType::complex64) {
    throw DTypeError(
        fmt::format("[reconstruct] k-space: got {}, expected complex64", name_of(kspace.dtype())));
  }
  if (kspace.rank() < 3) {
    throw ShapeError(fmt::format("[reconstruct] k-space: got the shape {}, expected (C, ..)",
                                 to_string(kspace.shape())));
  }
  expect_finite("reconstruct", "k-space", kspace);
  Data data{kspace, sampling, {}, false};
  if (sampling.mask) data.sampling.mask = factors_of_mask(*sampling.mask);
  if (!sampling.mask && !sampling.trajectory) {
    // (T, C, y, x) or (C, z, y, x): the coils of the maps tell.
    const index_t spatial = kspace.rank() >= 5 ? 3 : kspace.rank() == 3 ? 2 : 0;
    const bool is_plane_series = kspace.rank() == 4 && kspace.shape(1) == maps.shape(-3) &&
                                 (maps.rank() == 3 || kspace.shape(0) != maps.shape(-4));
    const bool is_series = spatial == 3 || is_plane_series || (sampling.basis && spatial == 0);
    data.sampling.mask = measured_points(kspace, is_series);
  }
  data.image = image_dimensions(maps, data.sampling);
  expect_finite("reconstruct", "the array of maps", maps);
  data.has_frames = data.image.contains(ND("T")) || data.image.contains(ND("B"));
  const index_t frames = data.has_frames ? n_frames_of(data.sampling) : 1;
  if (frames == 1 && data.has_frames && kspace.shape(0) != 1) {
    throw ShapeError("[reconstruct] k-space and mask differ in their frames");
  }
  return data;
}

// (C, ..) of a series: the mean over the frames that measured each point.
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

double scale_of_data(const Data& data, const NamedLinop& A, const ReconstructOptions& options) {
  if (options.scale) return *options.scale;
  if (!needs_scale(options.regularizers, options.keep_scale)) return 1;
  if (data.sampling.trajectory) {
    const Tensor image = A.H()(data.kspace).contiguous();
    return brightness(image.unsqueeze(0)).scale();
  }
  const Tensor kspace =
      data.has_frames ? mean_of_frames(data.kspace, *data.sampling.mask) : data.kspace;
  const CalibrationArea area = brightness_area(kspace);
  // Without a calibration area the whole grid is used for the scale.
  if (area.extent[0] * area.extent[1] * area.extent[2] == 0) {
    return brightness(A.H()(data.kspace).contiguous().unsqueeze(0)).scale();
  }
  return brightness_of(kspace, area).scale();
}

ImageItem item_from(const Data& data, const Tensor& maps, const ReconstructOptions& options) {
  ImageItem item;
  for (const ND& d : data.image) {
    if (d != ND("T") && d != ND("B") && d != ND("M")) item.dims.push_back(d);
  }
  const auto axes = item.dims.size();
  item.shape = Extents(maps.shape().end() - static_cast<std::ptrdiff_t>(axes), maps.shape().end());
  item.n_coils = maps.shape(-1 - static_cast<index_t>(axes));
  item.sets = data.image.contains(ND("M")) ? maps.shape(0) : 1;
  item.has_phase = options.phase.has_value();
  if (data.has_frames) item.frames = n_frames_of(data.sampling);
  if (data.sampling.basis) item.basis = checked_basis("[basis]", *data.sampling.basis, item.frames);
  if (!data.sampling.trajectory) {
    GridSampling grid;
    if (!item.basis) grid.mask_extents = Extents(axes, index_t{1});
    if (!item.basis) note_changes(*data.sampling.mask, grid.mask_extents);
    item.sampling = grid;
    return item;
  }
  const Tensor& trajectory = *data.sampling.trajectory;
  PathSampling path;
  for (index_t t = 0; t < std::max<index_t>(item.frames, 1); ++t) {
    path.trajectories.push_back(data.has_frames ? trajectory.select(0, t).contiguous()
                                                : trajectory);
  }
  item.sampling = std::move(path);
  return item;
}

Tensor without_single_set(const Tensor& maps, const ImageItem& item) {
  return maps.view(item.maps_shape());
}

// `is_linear`: conjugate gradients or the adjoint, which take no steps of fixed length.
ImageSolverOptions options_of_solver(const ReconstructOptions& options, const Tensor& maps,
                                     const ImageItem& item, bool is_linear) {
  ImageSolverOptions result{.regularizers = options.regularizers,
                            .method = options.method,
                            .tolerance = options.tolerance,
                            .has_start = options.start.has_value(),
                            .callback_takes_x = static_cast<bool>(options.callback)};
  Extents four{item.sets * item.n_coils, 1, 1, 1};
  for (std::size_t k = 0; k < item.shape.size(); ++k) {
    four[4 - item.shape.size() + k] = item.shape[k];
  }
  if (!is_linear) result.maps_norm2 = largest_norm2(maps.view(four));
  result.solve.max_iterations = iterations_of(options.iterations, options.regularizers);
  result.solve.cancel = options.cancel;
  result.solve.seed = options.seed;
  result.solve.callback = options.callback;
  result.solve.time_limit_s = options.time_limit_s;
  return result;
}

ImageSolver solver_of(const Data& data, const ImageItem& item, const Tensor& maps,
                      const ReconstructOptions& options) {
  const ReconstructMethod method =
      method_for(options.regularizers, item.image_dims(), options.method);
  const bool is_linear = method == ReconstructMethod::cg || method == ReconstructMethod::adjoint;
  ImageSolverOptions how = options_of_solver(options, maps, item, is_linear);
  if (!is_linear && item.has_trajectory()) {
    const NamedLinop A = sense_model(maps, data.sampling);
    how.norm2 = operator_norm2(A, {DType::complex64, item.image_shape(), {}}).value;
  }
  const index_t budget = options.budget_bytes.value_or(kNoLimit);
  try {
    return {item, how, {budget, budget}};
  } catch (const BudgetError&) {
    const ImageSolver::Budgets least = ImageSolver::smallest(item, how);
    throw BudgetError(fmt::format(
        "[reconstruct] nothing fits into the budget: got {} bytes, the smallest that "
        "is found is {} bytes. Try a budget of {}",
        budget, std::max(least.adjoint, least.solve), std::max(least.adjoint, least.solve)));
  }
}

// a w != a, for complex a and real w.
ElementwiseProgram product_differs() {
  ElementwiseProgram program;
  const int a = program.input(DType::complex64), w = program.input(DType::float32);
  program.output(program.apply(ScalarOp::ne, {program.apply(ScalarOp::mul, {a, w}), a}));
  return program;
}

// Weights of a mask that is not 0 or 1 count in the data and, squared, in the normal operator. Data
// that they do not change are not copied.
Tensor masked(const Tensor& kspace, const Tensor& weights, const ImageItem& item) {
  if (kspace.shape() != item.kspace_shape()) {
    throw ShapeError(
        fmt::format("[reconstruct] k-space: got the shape {}, expected {} as in maps "
                    "and mask",
                    to_string(kspace.shape()), to_string(item.kspace_shape())));
  }
  Tensor result = kspace.contiguous();
  const index_t frames = std::max<index_t>(item.frames, 1), points = weights.numel() / frames;
  const index_t planes = frames * item.n_coils;
  const auto weights_of = [&](index_t plane) {
    return weights.data<float>() + plane / item.n_coils * points;
  };
  const ElementwiseProgram differs = product_differs();
  const index_t step = 1;
  const auto changes = [&](index_t plane) {
    const std::array inputs{
        ConstView{
            result.data<Sample>() + plane * points, DType::complex64, {&points, 1}, {&step, 1}},
        ConstView{weights_of(plane), DType::float32, {&points, 1}, {&step, 1}}};
    return reduce_all<bool>(ReduceOp::any, differs, inputs);
  };
  index_t plane = 0;
  while (plane < planes && !changes(plane)) ++plane;
  if (plane == planes) return result;
  result = result.clone();
  for (; plane < planes; ++plane) {
    Sample* const v = result.mutable_data<Sample>() + plane * points;
    const float* const w = weights_of(plane);
    for (index_t i = 0; i < points; ++i) {
      if (w[i] == 0 && v[i] != Sample(0)) {
        throw ValueError(fmt::format(
            "[reconstruct] k-space and mask differ at {}: got {:g}{:+g}i, expected 0 where the "
            "mask is 0. Try kspace * mask",
            to_string(index_of(plane * points + i, kspace.shape())), v[i].real(), v[i].imag()));
      }
      v[i] *= w[i];
    }
  }
  return result;
}

void check_options(const KspaceSampling& sampling, const ReconstructOptions& options) {
  const Regularizer* const ball = ball_of(options.regularizers);
  if (sampling.basis && ball != nullptr) {
    throw wrong_term(*ball, "got a basis too, expected one of the two");
  }
  if (options.iterations && *options.iterations < 1) {
    throw ValueError(
        fmt::format("[reconstruct] iterations: got {}, expected at least 1", *options.iterations));
  }
  if (options.scale && !(*options.scale > 0 && std::isfinite(*options.scale))) {
    throw ValueError(
        fmt::format("[reconstruct] scale: got {}, expected a positive number", *options.scale));
  }
}

Tensor phase_factors(const Tensor& phase, const Extents& grid) {
  if (phase.shape() != grid) {
    throw ShapeError(fmt::format("[reconstruct] phase: got the shape {}, expected {}",
                                 to_string(phase.shape()), to_string(grid)));
  }
  Tensor factors = Tensor::empty(grid, DType::complex64);
  set_phase_factors(factors, phase);
  if (const NotFinite bad = count_not_finite(factors); bad.count > 0) {
    throw ValueError(fmt::format(
        "[reconstruct] phase: NaN or infinite values, the first is element {}", bad.first));
  }
  return factors;
}

void divide(Tensor& image, double by) {
  auto* v = image.mutable_data<Sample>();
  for (index_t i = 0, end = image.numel(); i < end; ++i) v[i] /= static_cast<float>(by);
}

}  // namespace

const char* name_of(ReconstructMethod method) {
  constexpr const char* kNames[] = {"automatic", "adjoint",     "cg",   "fista",
                                    "pogm",      "primal-dual", "admm", "pocs"};
  return kNames[static_cast<std::size_t>(method)];
}

int iterations_of(const std::optional<int>& wanted, const std::vector<Regularizer>& regularizers) {
  const bool may_settle = ball_of(regularizers) == nullptr && !draws_shifts(regularizers);
  return wanted.value_or(may_settle ? kIterations : kIterationsUnsettled);
}

double tolerance_of(const std::optional<double>& wanted) { return wanted.value_or(kTolerance); }

ReconstructMethod reconstruct_method(const Objective& f, ReconstructMethod wanted, bool has_ball) {
  const bool is_smooth = f.terms.empty() && !f.h && !has_ball;
  const auto best = is_smooth                      ? ReconstructMethod::cg
                    : f.terms.empty() && !has_ball ? ReconstructMethod::fista
                                                   : ReconstructMethod::primal_dual;
  if (wanted == ReconstructMethod::automatic) return best;
  const auto is_able = [&] {
    if (wanted == ReconstructMethod::primal_dual) return true;
    if (has_ball) return false;
    switch (wanted) {
      case ReconstructMethod::adjoint:
        return is_smooth && f.quadratics.empty();
      case ReconstructMethod::cg:
        return is_smooth;
      case ReconstructMethod::admm:
        return !is_smooth;
      default:
        return f.terms.empty();
    }
  };
  if (is_able()) return wanted;
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
  return tensor_detail::computed("measured_points", {&kspace, 1}, [&](auto x) {
    return ops::any(ops::ne(x[0], 0), {Axes{static_cast<index_t>(coil_axis)}});
  });
}

Reconstruction reconstruct(const Tensor& kspace, const Tensor& maps, const KspaceSampling& sampling,
                           const ReconstructOptions& options) {
  check_options(sampling, options);
  const Data data = data_of(kspace, maps, sampling);
  const NamedLinop A = sense_model(maps, data.sampling);
  const ImageItem item = item_from(data, maps, options);
  Reconstruction result;
  result.scale = scale_of_data(data, A, options);
  ImageSolver solver = solver_of(data, item, maps, options);
  result.method = solver.method();
  Tensor y = kspace;
  if (!item.has_trajectory()) {
    const Tensor weights = data.sampling.mask->to(DType::float32).contiguous();
    if (sampling.mask) y = masked(kspace, weights, item);
    // A ball is one of A x - y itself. Squares of 0 and 1 are the same.
    const bool is_squared =
        ball_of(options.regularizers) == nullptr && data.sampling.mask->dtype() != DType::bool_;
    const Tensor squares = is_squared ? square(weights) : weights;
    solver.set_weights(
        item.basis ? subspace_weights(*item.basis, item.shape,
                                      [&](index_t t) { return squares.select(0, t); })
                   : shortened_mask(squares, std::get<GridSampling>(item.sampling).mask_extents)
                         .contiguous());
  }
  solver.set_scale(result.scale);
  if (options.phase) solver.set_phase(phase_factors(*options.phase, item.shape));
  if (options.start) {
    expect_finite("reconstruct", "the start", *options.start);
    solver.set_start(*options.start);
  }
  MemoryLedger ledger;
  result.solve = solver.run(y, without_single_set(maps.contiguous(), item), ledger);
  result.image = std::exchange(result.solve.x, Tensor()).contiguous();
  if (options.keep_scale) divide(result.image, result.scale);
  return result;
}

SolvePlan plan_reconstruct(const Tensor& kspace, const Tensor& maps, const KspaceSampling& sampling,
                           const ReconstructOptions& options) {
  check_options(sampling, options);
  const Data data = data_of(kspace, maps, sampling);
  const ImageSolver solver = solver_of(data, item_from(data, maps, options), maps, options);
  if (!solver.is_iterative()) {
    throw ValueError("[plan_reconstruct] the adjoint has no solve to plan");
  }
  return solver.solve();
}

}  // namespace palimpsest
