// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/recon/sense.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "palimpsest/base/config.hpp"
#include "palimpsest/cli/failure.hpp"
#include "palimpsest/io/scratch_array.hpp"
#include "palimpsest/linop/containers/add.hpp"
#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/diagonal.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/linop/transforms/fft.hpp"
#include "palimpsest/memory/allocator.hpp"

namespace palimpsest::cli {
namespace {

Dims image_dims(std::size_t n) { return Dims("Nz Ny Nx").slice(3 - n, 3); }
Dims grid_dims(std::size_t n) { return Dims("Kz Ky Kx").slice(3 - n, 3); }

// y[c] = F (s_c x).
NamedLinop coil_operator(const Parameter& maps) {
  const std::size_t n = maps.shape().size() - 1;
  const Dims image = image_dims(n), coils = Dims("C") + image;
  return Chain(Dense(maps, coils, image, coils),
               Fft(static_cast<int>(n), {.batch = "C",
                                         .grid = Grid{image, grid_dims(n)},
                                         .norm = FftNorm::ortho,
                                         .centered = true}));
}

// Stands for an array that comes later: has no memory.
Tensor stand_in(DType dtype, const Extents& shape, bool in_file) {
  alignas(64) static std::byte anchor[64];
  if (in_file) return ScratchArray::unwritten(shape, dtype).map();
  return Tensor::from_blob(anchor, dtype, shape, contiguous_strides(shape), {}, true);
}

SharedVariable variable_of(const Tensor& value) {
  return SharedVariable({value.dtype(), value.shape(), {}}, value, {.borrow = true, .shape = {}});
}

// Steps side by side need memory of their own, and mapped files are read a step at a time.
ConfigOverrides one_by_one() {
  ConfigOverrides overrides;
  overrides.budget = std::numeric_limits<index_t>::max();
  overrides.parallel_grain = std::numeric_limits<index_t>::max();
  overrides.allow_gc = true;
  return overrides;
}

CgOptions cg_options(const SenseOptions& options, index_t budget) {
  CgOptions cg;
  cg.tolerance = options.tolerance;
  cg.max_iterations = static_cast<int>(options.iterations);
  cg.budget_bytes = budget;
  if (options.progress) {
    cg.callback = [progress = options.progress](const CgInfo& info) {
      progress(info.iteration(), info.residual());
      return true;
    };
  }
  return cg;
}

// The operators of an item, on variables.
struct Model {
  Model(const SenseItem& item, const SenseOptions& options) {
    Extents coils = item.shape;
    coils.insert(0, item.n_coils);
    no_maps = stand_in(DType::complex64, coils, item.maps_in_file);
    maps = variable_of(no_maps);
    kspace = {DType::complex64, coils, {}};
    image = {DType::complex64, item.shape, {}};
    const NamedLinop A = coil_operator(Parameter(maps));
    // y is 0 where nothing was measured.
    adjoint = A.H();
    if (!options.is_iterative) return;
    const std::size_t n = item.shape.size();
    weights = variable_of(stand_in(DType::float32, item.shape, false));
    // Weights are 0 or 1: their squares are themselves.
    normal = A.normal(Diagonal(Parameter(weights), Dims("C") + grid_dims(n)));
    if (options.lambda > 0) normal = normal + options.lambda * Identity(image_dims(n));
  }

  Tensor no_maps;
  SharedVariable maps, weights;
  TensorType kspace, image;
  NamedLinop adjoint, normal;
};

BudgetOptions budget_options(const SenseItem& item) {
  return {.candidates = {}, .streamed_input = item.kspace_in_file};
}

void take_over(const SolveResult& solution, SenseResult& result) {
  // What was reached before is an image; nothing is none.
  if (solution.status == Status::diverged && solution.iterations == 0) {
    throw UsageError(
        "[cg-sense] the iteration diverged at its first step: numbers leave the range of single "
        "precision. Try coil maps of magnitude 1, or a larger --lambda");
  }
  result.image = solution.x;
  result.status = name_of(solution.status);
  result.iterations = solution.iterations;
  for (const Record& record : solution.history) result.residuals.push_back(record.residual);
}

}  // namespace

Tensor coil_kspace(const Tensor& image, const Tensor& maps) {
  return coil_operator(Parameter(maps))(image).contiguous();
}

struct SenseSolver::Impl {
  Impl(const SenseItem& item, const SenseOptions& options, const Budgets& budgets)
      : model(item, options) {
    {
      const ConfigScope scope(one_by_one());
      adjoint = split_to_budget(model.adjoint, model.kspace, budgets.adjoint, budget_options(item));
    }
    if (!options.is_iterative) return;
    right_hand_side_bytes = byte_count(model.image.shape, model.image.dtype);
    solve.emplace(model.normal, model.image,
                  cg_options(options, std::max<index_t>(budgets.solve - right_hand_side_bytes, 0)));
  }

  Model model;
  BudgetSplit adjoint;
  std::optional<ConjugateGradients> solve;
  index_t right_hand_side_bytes = 0;
};

SenseSolver::SenseSolver(const SenseItem& item, const SenseOptions& options, const Budgets& budgets)
    : impl_(std::make_unique<Impl>(item, options, budgets)) {}
SenseSolver::~SenseSolver() = default;

index_t SenseSolver::adjoint_bytes() const { return impl_->adjoint.peak_bytes; }

index_t SenseSolver::solve_bytes() const {
  return impl_->solve ? impl_->right_hand_side_bytes + solve().total_bytes() : 0;
}

const BudgetSplit& SenseSolver::adjoint() const { return impl_->adjoint; }
const SolvePlan& SenseSolver::solve() const { return impl_->solve->plan(); }

const Plan& SenseSolver::step() const { return impl_->solve ? solve().step : impl_->adjoint.plan; }

void SenseSolver::set_weights(const Tensor& weights) { impl_->model.weights.set_value(weights); }

SenseResult SenseSolver::run(const Tensor& kspace, const Tensor& maps, MemoryLedger& ledger) {
  SenseResult result;
  impl_->model.maps.set_value(maps);
  Tensor b;
  {
    const auto streamed = ledger.charge(impl_->adjoint.streamed_bytes);
    const ConfigScope scope(one_by_one());
    b = impl_->adjoint.op(kspace);
  }
  if (impl_->solve) {
    const auto streamed = ledger.charge(solve().streamed_bytes);
    take_over(impl_->solve->run(b), result);
  } else {
    result.image = b;
    result.status = "done";
  }
  impl_->model.maps.set_value(impl_->model.no_maps, {.borrow = true});
  return result;
}

SenseSolver::Budgets SenseSolver::smallest(const SenseItem& item, const SenseOptions& options) {
  const Model model(item, options);
  Budgets budgets{};
  {
    const ConfigScope scope(one_by_one());
    budgets.adjoint = smallest_budget(model.adjoint, model.kspace, budget_options(item));
  }
  if (options.is_iterative) {
    budgets.solve = byte_count(model.image.shape, model.image.dtype) +
                    smallest_cg_budget(model.normal, model.image, cg_options(options, 0));
  }
  return budgets;
}

}  // namespace palimpsest::cli
