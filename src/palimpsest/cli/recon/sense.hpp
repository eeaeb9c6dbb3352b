// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "palimpsest/cli/recon/memory_ledger.hpp"
#include "palimpsest/linop/split/budget.hpp"
#include "palimpsest/solve/conjugate_gradients.hpp"

namespace palimpsest::cli {

/// k-space of every coil: F (s_c x), on the whole grid; F centred, unitary.
///
/// Shapes   image (Ny, Nx), maps (C, Ny, Nx) -> (C, Ny, Nx), complex64
Tensor coil_kspace(const Tensor& image, const Tensor& maps);

struct SenseOptions {
  /// Conjugate gradients on A^H A + lambda; else the adjoint alone.
  bool is_iterative = true;
  index_t iterations = 30;
  double lambda = 0.015;
  double tolerance = 1e-6;
  /// Called after each iteration.
  std::function<void(index_t iteration, double residual)> progress;
};

struct SenseResult {
  /// complex64, the extents of an item.
  Tensor image;
  std::string status;
  index_t iterations = 0;
  /// |r| / |b| after each iteration.
  std::vector<double> residuals;
};

/// What the arrays of one item are: extents, and whether they will lie in mapped files.
struct SenseItem {
  index_t n_coils = 1;
  Extents shape;
  bool maps_in_file = false, kspace_in_file = false;
};

/// The minimizer of |M F S x - y|^2 + lambda |x|^2, or A^H y, for any number of items of one kind:
/// planned, cut for a budget and compiled once.
///
/// Errors   BudgetError: nothing fits; UsageError: the iteration diverged at its
///          first step; later, the last finite iterate is the image
class SenseSolver {
 public:
  /// Bytes for each of the two stages. They count maps and weights, but those in mapped files as
  /// far as one step reads them; y does not count unless it is in one.
  struct Budgets {
    index_t adjoint, solve;
  };
  SenseSolver(const SenseItem& item, const SenseOptions& options, const Budgets& budgets);
  ~SenseSolver();

  index_t adjoint_bytes() const;
  /// The right-hand side included; 0 for the adjoint alone.
  index_t solve_bytes() const;
  const BudgetSplit& adjoint() const;
  /// Undefined for the adjoint alone.
  const SolvePlan& solve() const;
  /// The plan of one iteration, or of the adjoint.
  const Plan& step() const;

  /// float32, 1 where k-space was measured, else 0. Not for the adjoint alone.
  void set_weights(const Tensor& weights);
  SenseResult run(const Tensor& kspace, const Tensor& maps, MemoryLedger& ledger);

  /// The smallest budgets for which a solver is found.
  static Budgets smallest(const SenseItem& item, const SenseOptions& options);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace palimpsest::cli
