// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "palimpsest/cli/raw_kspace.hpp"
#include "palimpsest/cli/sense.hpp"
#include "palimpsest/io/report.hpp"
#include "palimpsest/linop/budget.hpp"
#include "palimpsest/solve/conjugate_gradients.hpp"

namespace palimpsest::cli {

/// A whole scan and its coil maps in mapped files: nothing is read before it is needed, and nothing
/// stays in memory that the files still have.
struct Volume {
  /// complex64 (coil, y, x) or (coil, z, y, x), zero where nothing was measured.
  Tensor kspace, maps;
  /// Extents of the wanted part of the image, in its middle.
  Extents wanted;
  /// Held while a raw scan was sorted.
  index_t sorting_bytes = 0;
  index_t n_coils() const { return kspace.shape(0); }
  /// Extents of the image.
  Extents image_shape() const;
};

/// Maps k-space and maps, from NPY or CFL; the readouts of a raw scan (ISMRMRD) are sorted into a file
/// first, a part at a time.
///
/// Errors   UsageError: another format, rank or dtype, maps that do not fit; --prewhiten of an array
Volume map_volume(const std::string& kspace, const std::string& maps,
                  const RawKspaceOptions& raw = {});

/// What a reconstruction will take, and where the bytes go. Made without touching data.
struct VolumePlan {
  std::optional<index_t> budget;
  index_t peak_bytes = 0;     ///< of both stages, everything counted
  index_t sorting_bytes = 0;  ///< of a raw scan, before
  BudgetSplit adjoint;        ///< the first stage: A^H y
  index_t weights_bytes = 0;  ///< of the sampled points
  index_t right_hand_side_bytes = 0;
  SolvePlan solve;  ///< the second stage; empty for the adjoint alone
  bool is_iterative = true;

  std::string text(const Volume& volume) const;
  JsonReport report() const;
};

/// Errors   BudgetError naming the smallest budget found
VolumePlan plan_volume(const Volume& volume, const SenseOptions& options,
                       std::optional<index_t> budget);

/// The minimizer of |M F S x - y|^2 + lambda |x|^2 over the whole volume, or the adjoint, within a
/// budget: coils are taken in as many tiles as it asks for.
///
/// Shapes   -> complex64 (y, x) or (z, y, x), the wanted part
/// Errors   UsageError: values that are not finite, nothing measured, divergence; BudgetError
SenseResult reconstruct_volume(const Volume& volume, const SenseOptions& options,
                               const VolumePlan& plan);

}  // namespace palimpsest::cli
