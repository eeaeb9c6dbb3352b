// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/recon/image_solver.hpp"

#include "palimpsest/base/config.hpp"
#include "palimpsest/distributed/distribute.hpp"
#include "palimpsest/distributed/distributed_leaves.hpp"
#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/imaging/recon/data_norm.hpp"
#include "palimpsest/imaging/recon/preconditioner.hpp"
#include "palimpsest/imaging/recon/subspace.hpp"
#include "palimpsest/imaging/trajectories.hpp"
#include "palimpsest/io/scratch_array.hpp"
#include "palimpsest/kernels/reduce/reduce_leaves.hpp"
#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/containers/stack.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/diagonal.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/linop/split/batch.hpp"
#include "palimpsest/linop/split/cache_tiles.hpp"
#include "palimpsest/linop/transforms/nufft.hpp"
#include "palimpsest/memory/allocator.hpp"
#include "palimpsest/solve/frame/solver.hpp"
#include "palimpsest/solve/prox/composed.hpp"
#include "palimpsest/solve/prox/constraints.hpp"
#include "palimpsest/solve/scaling.hpp"
#include "palimpsest/solve/solvers/objective_problem.hpp"
#include "palimpsest/solve/spectrum.hpp"
#include "palimpsest/tensor/placeholder.hpp"

namespace palimpsest {
namespace {

constexpr double kSolverNufftAccuracy = 1e-4;
// The sum of sigma_i |K_i|^2 over L in condat_vu.
constexpr double kBalance = 2.4;
// Ratio of step sizes of pdhg with a ball, for weights of 1. After 100 iterations of wavelets on a
// phantom of 64^2 the error left is 2.8e-2 with 1, 2.7e-3 with 100, 1.2e-4 with 1000, 5.0e-4 with
// 10000; of total variation 4.6e-2, 9.4e-3, 8.2e-3, 2.0e-2.
constexpr double kBallRatio = 1000;
// Solves that are not linear work on data times a power of two, if their largest part is not within
// 2^-32 to 2^32: products of small parts would leave the range of single precision. With a
// callback, which may look at the iterate, data stay as they are, up to the second exponent.
constexpr int kFarExponent = 32, kFarExponentOfCallback = 50;
// With a ball the data, which may be in a file, stay as they are.
constexpr double kSmallestInBall = 1e-15, kLargestInBall = 1e15;
// Iterates in the mean of a solve with random shifts.
constexpr index_t kAveraged = 16;

// Stands for an array that comes later: has no memory.
Tensor stand_in(DType dtype, const Extents& shape, bool in_file) {
  return in_file ? ScratchArray::unwritten(shape, dtype).map() : placeholder(dtype, shape);
}

SharedVariable variable_of(const Tensor& value) {
  return SharedVariable({value.dtype(), value.shape(), {}}, value, {.borrow = true, .shape = {}});
}

Tensor scalar_tensor(double value) {
  Tensor t = Tensor::empty({}, DType::float32);
  t.fill(value);
  return t;
}

// Steps side by side need memory of their own, and mapped files are read a step at a time.
ConfigOverrides one_by_one(index_t budget) {
  ConfigOverrides overrides = config_of_budget(budget);
  overrides.allow_gc = true;
  return overrides;
}

// Moves lambda / 2 |x|^2 to the other functions; for data that are a constraint.
void move_quadratics(Objective& f, const std::optional<NamedLinop>& image_of_unknown) {
  double lambda = 0;
  for (const Quadratic& q : f.quadratics) lambda += q.lambda;
  f.quadratics.clear();
  if (lambda == 0) return;
  if (image_of_unknown) {
    f.terms.push_back({.g = SquaredL2(lambda), .K = image_of_unknown});
  } else {
    f.h = f.h ? plus_quadratic(*f.h, lambda) : SquaredL2(lambda);
  }
}

// The weights only choose among points within the ball, so a common factor changes no result. It
// does not change the course of the iteration either, because the step of the dual variables grows
// with its square.
double ratio_of_steps(const std::vector<Regularizer>& regularizers) {
  double largest = 0;
  for (const Regularizer& r : regularizers) {
    if (r.term != "ball") largest = std::max(largest, r.lambda);
  }
  return kBallRatio * (largest > 0 ? largest * largest : 1);
}

void add_derived(const NamedLinop& A, std::vector<Parameter>& found) {
  for (const auto& [name, p] : A.params()) {
    if (p.present() && p.is_derived()) found.push_back(p);
  }
  for (const NamedLinop& part : A.linops()) add_derived(part, found);
}

// Values derived from the locations of a frame: the order of the points, and the kernel of the
// convolution F^H F.
std::vector<Parameter> derived_of(const NamedLinop& F) {
  std::vector<Parameter> found;
  add_derived(F, found);
  add_derived(F.N(), found);
  return found;
}

void set_derived(const Parameter& p, const Tensor& value) {
  SharedVariable variable = p.variable();
  variable.set_value(value, {.borrow = true});
}

bool has_random_shifts(const Objective& f) { return f.h && f.h->has_state(); }

}  // namespace

// -- the model -----------------------------------------------------------------------------------

namespace {

// The operators of an item, on variables.
class Model {
 public:
  Model(const ImageItem& item, const ImageSolverOptions& options) : item_(item) {
    kspace = {DType::complex64, item.kspace_shape(), {}};
    image = {DType::complex64, item.image_shape(), {}};
    set_objective(options);
    is_preconditioned = may_precondition(options.regularizers);
    if (is_preconditioned) objective = h_as_term(std::move(objective));
    make_variables();
    norm2 = options.norm2.value_or(options.maps_norm2);
    finds_norm = !options.norm2 && is_solved() && method != ReconstructMethod::cg;
    if (item.has_trajectory()) {
      build_along_trajectory();
    } else {
      build_on_grid();
    }
    if (ball && image_of_unknown) forward = Chain(*image_of_unknown, forward);
    if (is_solved() && !ball) add_quadratics(options.maps_norm2);
  }

  // Steps for each frequency, or where the maps vary so much that these might be too long, one.
  Tensor steps_for(const Tensor& coil_maps) const {
    const double spread = mean_square_frequency(coil_maps, item_.dims.size());
    if (spread <= double{kDilation * kDilation}) return spectral_steps(bound, maps_norm2, rest);
    return Tensor::full<float>(bound.q.shape(), static_cast<float>(0.99 / (norm2 / 2 + rest)));
  }

  Tensor no_maps, no_weights, no_phase;
  SharedVariable maps, weights, phase;
  bool has_weights = false, finds_norm = false, is_preconditioned = false;
  // P and its steps, if is_preconditioned; the condition on a step; and L, from which the steps of
  // the dual variables follow.
  NamedLinop P;
  SharedVariable steps;
  Tensor no_steps;
  SpectralBound bound;
  double maps_norm2 = 1, rest = 0, L = 0;
  std::vector<std::pair<SharedVariable, Regularizer>> lambdas;  // that of a ball last
  TensorType kspace, image, unknown;
  // The map from the unknown to the image, if the unknown is more than the image.
  std::optional<NamedLinop> image_of_unknown;
  Objective objective;  // its A stands for the unknown itself
  ReconstructMethod method = ReconstructMethod::automatic;
  // The data are a constraint: |forward x - y| lies in the ball.
  std::optional<Prox> ball;
  std::vector<NamedLinop> with_kernels_in_file;
  NamedLinop adjoint, normal, forward;
  double norm2 = 1;  // a bound of the largest eigenvalue of the normal operator

  const ImageItem& item() const { return item_; }
  // |y|^2 of all coils, with the weights of a trajectory. Points of a grid that were not measured
  // are 0 in y.
  double norm2_of_data(const Tensor& y) const {
    const bool is_weighted = has_trajectory() && has_weights;
    const Tensor w = is_weighted ? weights.get_value({.borrow = true}) : Tensor();
    return data_norm2(y, w, item_.n_coils, item_.team);
  }

  bool has_trajectory() const { return item_.has_trajectory(); }
  bool has_basis() const { return item_.basis.has_value(); }
  // The bytes of the values that are set for each item.
  index_t bytes_of_item() const {
    const index_t of_maps = operator_bytes(coil_images(Dims()));
    return of_maps + (item_.has_phase ? operator_bytes(phase_operator()) : 0);
  }

 private:
  // The functions and the unknown. Of a ball the data term is left out.
  void set_objective(const ImageSolverOptions& options) {
    const Dims dims = item_.image_dims();
    objective.A = Identity(dims);
    const auto weight = [this](const Regularizer& r) {
      lambdas.emplace_back(variable_of(scalar_tensor(r.lambda)), r);
      return Weight(Parameter(lambdas.back().first));
    };
    add_regularizers(objective, options.regularizers, dims, weight);
    const Regularizer* const bound_of_data = ball_of(options.regularizers);
    if (bound_of_data != nullptr) ball = Ball(weight(*bound_of_data));
    method = reconstruct_method(objective, options.method, ball.has_value());
    unknown = image;
    if (const index_t parts = parts_of_unknown(options.regularizers, dims); parts > 1) {
      image_of_unknown = objective.A;
      unknown.shape.insert(0, parts);
      objective.A = Identity(image_of_unknown->ishape());
    }
    if (ball) move_quadratics(objective, image_of_unknown);
    objective = simplified(objective);
  }

  // True if steps may differ between frequencies: all functions are or become terms, constraints
  // stay. Ranks that have a part of the coils cannot agree on the frequencies of all maps.
  bool may_precondition(const std::vector<Regularizer>& regularizers) const {
    const bool has_constraint =
        std::any_of(regularizers.begin(), regularizers.end(), is_constraint);
    return item_.has_trajectory() && method == ReconstructMethod::primal_dual &&
           !item_.has_density() && !ball && item_.has_all_coils() && !image_of_unknown &&
           !item_.basis && !(objective.h && has_constraint) &&
           (objective.h || !objective.terms.empty());
  }

  // The arrays that are set for each item; they stand in until then.
  void make_variables() {
    no_maps = stand_in(DType::complex64, item_.maps_shape(), item_.maps_in_file);
    maps = variable_of(no_maps);
    if (item_.has_phase) {
      no_phase = stand_in(DType::complex64, item_.shape, false);
      phase = variable_of(no_phase);
    }
    has_weights = has_trajectory() ? item_.has_density() : is_solved();
    if (!has_weights) return;
    // Kernels are made of the weights of a trajectory at once.
    no_weights =
        stand_in(item_.basis ? DType::complex64 : DType::float32, item_.weights_shape(), false);
    weights = variable_of(has_trajectory() ? *item_.path().density : no_weights);
  }

  void add_quadratics(double largest_of_maps) {
    double quadratic = 0;
    for (const Quadratic& q : objective.quadratics) quadratic += q.lambda;
    if (quadratic > 0) normal = normal + quadratic * Identity(item_.image_dims());
    norm2 += quadratic;
    if (image_of_unknown) normal = Chain(*image_of_unknown, normal, image_of_unknown->H());
    if (!is_preconditioned) return;
    maps_norm2 = largest_of_maps;
    L = maps_norm2 * bound.mean + quadratic;
    rest = quadratic / 2 + kBalance * L;
  }

  bool is_solved() const { return method != ReconstructMethod::adjoint; }
  Dims sets() const { return item_.sets > 1 ? Dims("M") : Dims(); }
  Dims frames() const { return item_.frames > 0 ? Dims("T") : Dims(); }
  NamedLinop coil_images(const Dims& frames) const {
    const Dims& grid = item_.dims;
    return Dense(Parameter(maps), sets() + Dims("C") + grid, frames + sets() + grid,
                 frames + Dims("C") + grid);
  }

  NamedLinop joined(const NamedLinop& own_coils) const {
    if (item_.has_all_coils()) return own_coils;
    if (item_.leaves > 0) {
      return distributed_detail::joined_leaves(own_coils, item_.leaves, item_.team, "C", "coil");
    }
    return join_parts(own_coils, item_.team, {{"C", "coil"}});
  }

  NamedLinop phase_operator() const {
    return Diagonal(Parameter(phase), item_.image_dims(), {.weight_shape = item_.dims});
  }
  NamedLinop with_phase(const NamedLinop& A) const {
    return item_.has_phase ? Chain(phase_operator(), A) : A;
  }

  // y is 0 where nothing was measured. Coefficients become frames behind maps and transform, so
  // that only theirs are transformed.
  void build_on_grid() {
    const Dims k = grid_of(item_.dims), coils = item_.series() + Dims("C");
    const auto n = static_cast<int>(item_.dims.size());
    const NamedLinop F = Fft(
        n, {.batch = coils, .grid = Grid{item_.dims, k}, .norm = FftNorm::ortho, .centered = true});
    const NamedLinop A = with_phase(joined(Chain(coil_images(item_.series()), F)));
    if (item_.basis) {
      const NamedLinop to_frames = frames_of_coefficients(*item_.basis, Dims("C") + k);
      adjoint = Chain(A, to_frames).H();
      if (!is_solved()) return;
      norm2 *= largest_of_basis();
      normal = A.normal(subspace_weighting(Parameter(weights), k));
      return;
    }
    adjoint = A.H();
    if (!is_solved()) return;
    if (ball) {
      forward = Chain(A, Diagonal(Parameter(weights), coils + k, {.weight_shape = frames() + k}));
      return;
    }
    // Weights are 0 or 1: their squares are themselves.
    normal = A.normal(Diagonal(Parameter(weights), coils + k, {.weight_shape = frames() + k}));
  }

  NamedLinop along(const Tensor& trajectory) const {
    return Nufft(coordinates_of_grid(trajectory), item_.shape, "Sp Ro",
                 {.input = item_.dims,
                  .kspace = grid_of(item_.dims),
                  .batch = "C",
                  .eps = kSolverNufftAccuracy,
                  .toeplitz = Toeplitz::yes});
  }

  NamedLinop frame(std::size_t t, const Dims& dims) const {
    return frame_of_coefficients(*item_.basis, static_cast<index_t>(t), dims);
  }

  // Frames of k-space, each of its own frame of the image, or all of the coefficients.
  NamedLinop side_by_side(const std::vector<NamedLinop>& parts) const {
    const StackAxis frames(ND("T"), 0);
    return Stack(parts,
                 {.in = item_.basis ? StackAxis() : frames, .out = frames, .threaded = false});
  }

  // The largest eigenvalue of the normal operator of one coil and one frame.
  double largest_of(const NamedLinop& F) const {
    Extents coil = item_.shape;
    coil.insert(0, 1);
    return operator_norm2(F, {DType::complex64, coil, {}}).value;
  }

  // The squared norm of the basis, from coefficients to frames; 1 without a basis.
  double largest_of_basis() const {
    if (!item_.basis) return 1;
    const TensorType coefficients{DType::complex64, {item_.basis->shape(1)}, {}};
    return operator_norm2(Dense(*item_.basis, "T B", "B", "T"), coefficients).value;
  }

  // Into files, where the values come later.
  static void leave_out_kernel(const NamedLinop& F) {
    for (const Parameter& p : derived_of(F)) {
      set_derived(p, ScratchArray::unwritten(p.shape(), p.dtype()).map());
    }
  }

  void build_along_trajectory() {
    std::vector<NamedLinop> parts, transforms;
    const bool leaves_out = is_solved() && item_.path().kernels_in_file;
    double largest = 0;
    for (const Tensor& trajectory : item_.path().trajectories) {
      transforms.push_back(along(trajectory));
      if (finds_norm) largest = std::max(largest, largest_of(transforms.back()));
      if (leaves_out && !is_preconditioned) leave_out_kernel(transforms.back());
      const NamedLinop part = Chain(coil_images(Dims()), transforms.back());
      parts.push_back(item_.basis ? Chain(frame(parts.size(), sets() + item_.dims), part) : part);
    }
    if (finds_norm) norm2 *= largest_of_basis() * (largest > 0 ? largest : 1);
    if (is_preconditioned) {
      build_preconditioner(transforms);
      for (const NamedLinop& F : transforms) {
        if (leaves_out) leave_out_kernel(F);
      }
    }
    if (leaves_out) with_kernels_in_file = transforms;
    const NamedLinop A = with_phase(joined(item_.frames > 0 ? side_by_side(parts) : parts.at(0)));
    if (!item_.has_density()) {
      adjoint = A.H();
      if (ball) {
        forward = A;
      } else if (is_solved()) {
        normal = A.N();
      }
      return;
    }
    const NamedLinop W = Diagonal(Parameter(weights), frames() + Dims("C Sp Ro"),
                                  {.weight_shape = frames() + Dims("Sp Ro")});
    adjoint = Chain(W, A.H());
    if (is_solved()) normal = A.normal(W);
  }

  void build_preconditioner(const std::vector<NamedLinop>& transforms) {
    bound = spectral_bound(transforms, item_.dims, item_.shape, item_.frames > 0);
    no_steps = stand_in(DType::float32, bound.q.shape(), false);
    steps = variable_of(no_steps);
    const Dims k = grid_of(item_.dims), others = frames() + sets();
    const NamedLinop D = Fft(
        static_cast<int>(k.size()),
        {.batch = others, .grid = Grid{item_.dims, k}, .norm = FftNorm::ortho, .centered = true});
    P = Chain(D, Diagonal(Parameter(steps), others + k, {.weight_shape = frames() + k}), D.H());
    // The coils see the image times its phase, so the frequencies are those of that product.
    if (item_.has_phase) P = Chain(with_phase(P), phase_operator().H());
  }

  const ImageItem item_;
};

// The dimensions to cut. Along trajectories the coils take the memory; frames run one after the
// other. Cuts of the samples would need a point order for each piece of each frame.
Dims cuts_of(const ImageItem& item) { return item.has_trajectory() ? Dims("C") : Dims(); }

BudgetOptions budget_options(const ImageItem& item) {
  return {.candidates = cuts_of(item), .streamed_input = item.kspace_in_file};
}

SolveOptions solve_options(const ImageSolverOptions& options, const Model& model, index_t budget) {
  SolveOptions result = options.solve;
  const double tolerance = tolerance_of(options.tolerance);
  const bool is_cg = model.method == ReconstructMethod::cg;
  result.tolerance = is_cg ? tolerance : 0;
  if (!is_cg) result.progress_tolerance = tolerance;
  if (options.has_start) result.x0 = stand_in(DType::complex64, model.unknown.shape, false);
  result.budget_bytes = budget;
  return result;
}

// The data are A^H y: "A" is the identity, and "N" the normal operator of the model. With a ball
// they are y.
Problem problem_of(const ImageItem& item, const Model& model, const ImageSolverOptions& options) {
  if (model.method == ReconstructMethod::cg) {
    Problem p = cg_problem(model.normal, model.image, {});
    return p.set("cuts", cuts_of(item));
  }
  const bool is_admm = model.method == ReconstructMethod::admm;
  const Objective f = is_admm ? h_as_term(model.objective) : model.objective;
  Problem p(model.ball ? model.kspace : model.unknown);
  if (model.ball) {
    p.set("A", model.forward).set("f", *model.ball);
    p.set("ratio", ratio_of_steps(options.regularizers));
  } else {
    p.set("A", f.A).set("N", model.normal);
  }
  p.set("cuts", cuts_of(item));
  p.set("data_in_memory", !model.ball || !item.kspace_in_file);
  add_terms(p, f);
  p.set("L", model.is_preconditioned ? model.L : model.norm2).set("restart", true);
  if (model.is_preconditioned) p.set("P", model.P).set("balance", kBalance);
  p.set("max_iterations", static_cast<index_t>(options.solve.max_iterations));
  const bool takes_mean =
      model.method == ReconstructMethod::fista || model.method == ReconstructMethod::pocs;
  if (takes_mean && has_random_shifts(f) && options.solve.max_iterations > kAveraged) {
    p.set("average", kAveraged);
  }
  return p;
}

// Bytes of A^H y beside the state of the solver. A state that keeps A^H y unchanged shares the
// array. With a ball there is no right side.
index_t bytes_of_right_hand_side(const Model& model) {
  const bool is_shared =
      model.method == ReconstructMethod::fista || model.method == ReconstructMethod::pogm ||
      model.method == ReconstructMethod::pocs || model.method == ReconstructMethod::admm;
  return is_shared || model.ball ? 0 : byte_count(model.unknown.shape, model.unknown.dtype);
}

// The unknown with this image; its other parts are 0.
Tensor unknown_of(const Model& model, Tensor image) {
  if (!model.image_of_unknown) return image;
  Tensor result = Tensor::zeros(model.unknown.shape, model.unknown.dtype);
  result.select(0, 0).copy_from(image);
  return result;
}

bool is_linear(ReconstructMethod method) {
  return method == ReconstructMethod::cg || method == ReconstructMethod::adjoint;
}

void check_data_of_ball(const Regularizer& ball, const Tensor& kspace) {
  const double largest = largest_part(kspace);
  if (largest == 0 || (largest >= kSmallestInBall && largest <= kLargestInBall)) return;
  throw wrong_term(
      ball, fmt::format("the largest real or imaginary part of k-space is {:g}, expected {:g} to "
                        "{:g}. Try to scale it",
                        largest, kSmallestInBall, kLargestInBall));
}

const SolverType& type_of(const Model& model) {
  // By ReconstructMethod.
  constexpr const char* kNames[] = {
      "", "", "conjugate_gradients", "fista", "pogm", "condat_vu", "admm", "ista"};
  return *find_solver(model.ball ? "pdhg" : kNames[static_cast<std::size_t>(model.method)]);
}

}  // namespace

ReconstructMethod method_for(const std::vector<Regularizer>& regularizers, const Dims& image,
                             ReconstructMethod wanted) {
  Objective f{.A = Identity(image)};
  add_regularizers(f, regularizers, image);
  return reconstruct_method(f, wanted, ball_of(regularizers) != nullptr);
}

// -- the solver ----------------------------------------------------------------------------------

struct ImageSolver::Impl {
  Impl(const ImageItem& item, const ImageSolverOptions& options, const Budgets& budgets)
      : model(item, options),
        adjoint_budget(budgets.adjoint),
        callback_takes_x(options.callback_takes_x) {
    adjoint = planned_adjoint(model.adjoint, item);
    if (model.method == ReconstructMethod::adjoint) return;
    plan_solve(item, options, budgets.solve);
  }

  BudgetSplit planned_adjoint(const NamedLinop& op, const ImageItem& item) const {
    const ConfigScope scope(one_by_one(adjoint_budget));
    return split_to_budget(op, model.kspace, adjoint_budget, budget_options(item));
  }
  void plan_solve(const ImageItem& item, const ImageSolverOptions& options, index_t budget) {
    right_hand_side_bytes = bytes_of_right_hand_side(model);
    const index_t left =
        budget == kNoLimit ? kNoLimit : std::max<index_t>(budget - right_hand_side_bytes, 0);
    solve.emplace(type_of(model), problem_of(item, model, options),
                  solve_options(options, model, left));
  }
  // Of a grid: along trajectories all coils are gridded together. Of up to kLeafRows coils, since
  // then the sum of single ones has the order, and the bits, of the sum of all. Of one rank: those
  // that ranks share cannot be cut further.
  bool can_take_single_coils() const {
    if (!model.item().has_all_coils() || model.has_trajectory() ||
        !model.adjoint.dims().contains("C")) {
      return false;
    }
    const index_t coils = model.adjoint.size("C").value_or(kNoLimit);
    return coils > 1 && coils <= kLeafRows;
  }
  void take_single_coils() {
    BudgetSplit singles =
        planned_adjoint(create_batched_linop(model.adjoint, BatchSpec{{{"C", 1}}}), model.item());
    if (singles.peak_bytes >= adjoint.peak_bytes) return;
    singles.sizes = {{"C", 1}};
    singles.tiles = *model.adjoint.size("C");
    adjoint = std::move(singles);
  }
  index_t solve_bytes() const {
    return solve ? right_hand_side_bytes + solve->plan().total_bytes() : 0;
  }

  // The power of two of a solve with this right-hand side. Brings its start to it.
  int take_exponent(Tensor& b) {
    if (is_linear(model.method)) return 0;
    if (model.ball) {
      check_data_of_ball(model.lambdas.back().second, b);
      return 0;
    }
    const double largest = largest_part(b), of_start = start.defined() ? largest_part(start) : 0;
    if (!(largest > 0) || std::abs(std::ilogb(largest)) <= kFarExponent) return 0;
    if (callback_takes_x) {
      if (std::abs(std::ilogb(largest)) <= kFarExponentOfCallback) return 0;
      throw ValueError(
          fmt::format("[callback] the adjoint image has parts up to {:g}, out of the range of "
                      "single precision. "
                      "Try to scale k-space, or without a callback",
                      largest));
    }
    const int exponent = scale_exponent(largest, of_start, b.dtype());
    multiply_by_power_of_two(b, exponent);
    if (start.defined()) {
      multiply_by_power_of_two(start, exponent);
      solve->set_x0(unknown_of(model, start));
    }
    return exponent;
  }
  void set_lambdas(int exponent) {
    for (auto& [variable, r] : model.lambdas) {
      const double value = std::ldexp(r.lambda * scale, exponent);
      if (!std::isfinite(static_cast<float>(value))) {
        throw wrong_term(r, fmt::format("its weight times the scale, {:g}, is {:g}, out of the "
                                        "range of single precision. Try a smaller weight",
                                        scale, value));
      }
      variable.set_value(scalar_tensor(value), {.borrow = true});
    }
  }

  Model model;
  index_t adjoint_budget;
  BudgetSplit adjoint;
  std::optional<Solver> solve;
  index_t right_hand_side_bytes = 0;
  bool callback_takes_x;
  double scale = 1;
  Tensor start;
};

ImageSolver::ImageSolver(const ImageItem& item, const ImageSolverOptions& options,
                         const Budgets& budgets)
    : impl_(std::make_unique<Impl>(item, options, budgets)) {}
ImageSolver::~ImageSolver() = default;

void ImageSolver::lower_adjoint_peak(index_t more_beside_adjoint) {
  if (!is_iterative() || impl_->adjoint_budget != kNoLimit) return;
  if (adjoint_bytes() + more_beside_adjoint <= solve_bytes()) return;
  if (impl_->can_take_single_coils()) impl_->take_single_coils();
}

ReconstructMethod ImageSolver::method() const { return impl_->model.method; }
index_t ImageSolver::adjoint_bytes() const { return impl_->adjoint.peak_bytes; }

index_t ImageSolver::solve_bytes() const { return impl_->solve_bytes(); }

const BudgetSplit& ImageSolver::adjoint() const { return impl_->adjoint; }
const SolvePlan& ImageSolver::solve() const { return impl_->solve->plan(); }
const Plan& ImageSolver::step() const { return impl_->solve ? solve().step : impl_->adjoint.plan; }

bool ImageSolver::uses_adjoint() const {
  return !impl_->model.ball || impl_->model.has_trajectory();
}

std::string ImageSolver::operator_text() const {
  const Model& model = impl_->model;
  return (model.ball ? model.forward : impl_->solve ? model.normal : model.adjoint).str();
}

void ImageSolver::set_weights(const Tensor& weights) {
  if (impl_->model.has_weights) impl_->model.weights.set_value(weights);
}

void ImageSolver::drop_weights() {
  Model& model = impl_->model;
  if (model.has_weights && !model.has_trajectory()) {
    model.weights.set_value(model.no_weights, {.borrow = true});
  }
}

index_t ImageSolver::kernel_bytes() const {
  index_t bytes = 0;
  for (const NamedLinop& F : impl_->model.with_kernels_in_file) {
    for (const Parameter& p : derived_of(F)) bytes += byte_count(p.shape(), p.dtype());
  }
  return bytes;
}

void ImageSolver::write_kernels(const std::string& folder) {
  for (const NamedLinop& F : impl_->model.with_kernels_in_file) {
    for (const Parameter& p : derived_of(F)) {
      const Tensor value = Parameter::derived(p.expression()).value().contiguous();
      ScratchArray file(folder, p.shape(), p.dtype());
      file.write(0, value.raw_data(), value.numel());
      set_derived(p, file.map());
    }
  }
}

void ImageSolver::set_phase(const Tensor& factors) { impl_->model.phase.set_value(factors); }

void ImageSolver::drop_phase() {
  if (impl_->model.phase.defined()) {
    impl_->model.phase.set_value(impl_->model.no_phase, {.borrow = true});
  }
}

void ImageSolver::set_scale(double scale) { impl_->scale = scale; }

void ImageSolver::set_start(Tensor image) {
  impl_->start = image;
  impl_->solve->set_x0(unknown_of(impl_->model, std::move(image)));
}

index_t ImageSolver::start_bytes(const ImageItem& item, const ImageSolverOptions& options) {
  const index_t parts = parts_of_unknown(options.regularizers, item.image_dims());
  return (parts > 1 ? parts + 1 : 1) * byte_count(item.image_shape(), DType::complex64);
}

ImageSolver::Budgets ImageSolver::fixed_bytes() const {
  const Model& model = impl_->model;
  const index_t of_item = model.bytes_of_item();
  if (!model.has_trajectory() && !model.has_basis()) return {0, 0};
  // The basis alone, which an iteration has in its weights.
  if (!model.has_trajectory()) return {operator_bytes(model.adjoint) - of_item, 0};
  return {operator_bytes(model.adjoint) - of_item,
          impl_->solve ? operator_bytes(model.ball ? model.forward : model.normal) - of_item : 0};
}

SolveResult ImageSolver::run(const Tensor& kspace, const Tensor& maps, MemoryLedger& ledger,
                             const ScaleOf& scale_of) {
  Model& model = impl_->model;
  SolveResult result;
  model.maps.set_value(maps);
  Tensor b;
  if (uses_adjoint()) {
    const auto streamed = ledger.charge(impl_->adjoint.streamed_bytes);
    const ConfigScope scope(one_by_one(impl_->adjoint_budget));
    b = impl_->adjoint.op(kspace);
  }
  if (scale_of) set_scale(scale_of(b));
  if (impl_->solve) {
    const auto streamed = ledger.charge(solve().streamed_bytes);
    if (model.is_preconditioned) model.steps.set_value(model.steps_for(maps), {.borrow = true});
    if (model.ball) b = kspace;
    const int exponent = impl_->take_exponent(b);
    impl_->set_lambdas(exponent);
    if (!is_linear(model.method) && !model.ball) {
      impl_->solve->set_data_norm2(std::ldexp(model.norm2_of_data(kspace), 2 * exponent));
    }
    if (!model.ball) b = unknown_of(model, std::move(b));
    result = impl_->solve->run(b);
    if (!multiply_by_power_of_two(result.x, -exponent)) result.status = Status::diverged;
    for (Record& record : result.history) {
      record.objective = std::ldexp(record.objective, -2 * exponent);
    }
    if (model.image_of_unknown) {
      b = Tensor();
      result.x = result.x.select(0, 0).clone();
    }
    if (model.is_preconditioned) model.steps.set_value(model.no_steps, {.borrow = true});
    // After a first step there is an image from before the divergence; at the first there is none.
    if (result.status == Status::diverged && result.iterations == 0) {
      throw ValueError(fmt::format(
          "[{}] the iteration diverged at its first step: numbers leave the range of single "
          "precision. Try coil maps of magnitude 1, or a larger weight of l2",
          name_of(model.method)));
    }
  } else {
    result.x = b;
    result.status = Status::converged;
    result.reason = "no iteration";
  }
  model.maps.set_value(model.no_maps, {.borrow = true});
  return result;
}

ImageSolver::Budgets ImageSolver::smallest(const ImageItem& item,
                                           const ImageSolverOptions& options) {
  const Model model(item, options);
  Budgets budgets{};
  {
    const ConfigScope scope(one_by_one(0));
    budgets.adjoint = smallest_budget(model.adjoint, model.kspace, budget_options(item));
  }
  if (model.method == ReconstructMethod::adjoint) return budgets;
  budgets.solve = bytes_of_right_hand_side(model);
  budgets.solve += smallest_solve_budget(type_of(model), problem_of(item, model, options),
                                         solve_options(options, model, 0));
  return budgets;
}

}  // namespace palimpsest
