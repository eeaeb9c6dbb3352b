// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "palimpsest/linop/named_linop.hpp"
#include "palimpsest/solve/solve.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest::cli {

/// From an image to the measured samples of all coils: maps, Fourier transform, sampling.
///
/// Math     y[c, k] = (F (s_c x))[k] at the points k of the mask; F centred, unitary
/// Shapes   (Ny, Nx) -> (C, K); maps (C, Ny, Nx) complex64, mask (Ny, Nx) bool
NamedLinop sense_operator(const Tensor& maps, const Tensor& mask);

/// k-space of every coil: F (s_c x), on the whole grid.
///
/// Shapes   image (Ny, Nx), maps (C, Ny, Nx) -> (C, Ny, Nx), complex64
Tensor coil_kspace(const Tensor& image, const Tensor& maps);

/// The values of k-space (C, Ny, Nx) at the points of the mask, (C, K).
Tensor sampled(const Tensor& kspace, const Tensor& mask);

struct SenseOptions {
  /// Conjugate gradients on A^H A + lambda; else the adjoint alone.
  bool is_iterative = true;
  index_t iterations = 30;
  double lambda = 0.015;
  double tolerance = 1e-6;
  /// Gets the bytes that the plan of the solve needs, before it runs.
  std::function<void(index_t bytes)> announce;
  std::function<void(index_t iteration, double residual)> progress;
};

struct SenseResult {
  /// complex64 (Ny, Nx)
  Tensor image;
  std::string status;
  index_t iterations = 0;
  /// |r| / |b| after each iteration.
  std::vector<double> residuals;
  index_t announced_peak_bytes = 0, measured_peak_bytes = 0;
  double seconds = 0;
  /// Of one iteration, or of the adjoint.
  Plan plan;
};

/// Enters what the solver found.
/// Errors   UsageError: it diverged
void take_over(const SolveResult& solution, SenseResult& result);

/// The image of one plane: the minimizer of |A x - y|^2 + lambda |x|^2, or A^H y.
///
/// Errors   UsageError: the iteration diverged
SenseResult reconstruct_plane(const Tensor& kspace, const Tensor& maps, const Tensor& mask,
                              const SenseOptions& options);

}  // namespace palimpsest::cli
