// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "palimpsest/base/api.hpp"
#include "palimpsest/imaging/regularizers.hpp"
#include "palimpsest/linop/core/named_linop.hpp"
#include "palimpsest/ops/transforms/fft.hpp"

namespace PALIMPSEST_API palimpsest {

struct TransformOptions {
  /// From k-space to the image.
  bool inverse = false;
  FftNorm norm = FftNorm::ortho;
  /// Element floor(n / 2) of each axis is the origin on both sides.
  bool centered = true;
};
/// Fourier transform along some axes of an array.
///
/// Math     per axis y_k = c sum_j x_j exp(-+2 pi i j k / n), - forward, c of the norm
/// Shapes   x (..) -> the same; axes from 0
/// DTypes   complex64, complex128
/// Errors   ValueError "axes": none, repeated or out of range; DTypeError: real
Tensor transform(const Tensor& x, const std::vector<index_t>& axes,
                 const TransformOptions& options = {});
/// Peak bytes of transform() beside x, its result included.
index_t plan_transform(const TensorType& x, const std::vector<index_t>& axes,
                       const TransformOptions& options = {});

/// Images of the coils: the centred unitary inverse transform along all axes but the first.
///
/// Shapes   kspace (C, y, x) or (C, z, y, x)
Tensor coil_images(const Tensor& kspace);
index_t plan_coil_images(const Extents& kspace);

/// The transform of images along a trajectory: Nufft of accuracy 1e-4, unitary.
///
/// Shapes   trajectory (readouts, samples, D), x first, in cycles per field of view; image extents
///          (y, x) or (z, y, x); the operator maps (.., y, x) to (.., readouts, samples)
/// Errors   ShapeError: they do not fit
NamedLinop trajectory_transform(const Tensor& trajectory, const Extents& image,
                                bool toeplitz = false);

struct InverseTransformOptions {
  int iterations = 20;
  /// Weight of |x|^2 / 2, relative to the largest eigenvalue of the normal operator.
  double lambda = 0;
  /// In place of lambda: added to the misfit of each image, as reconstruct() does for one coil. The
  /// weights are relative to the brightness of that image.
  std::vector<Regularizer> regularizers = {};
};
/// The images with the transform along a trajectory that comes nearest to the samples, by conjugate
/// gradients, or with regularizers by reconstruct(); one after the other.
///
/// Shapes   kspace (.., readouts, samples) -> (.., y, x)
/// Errors   those of trajectory_transform and reconstruct; ValueError: numbers out of range,
///          lambda beside regularizers
Tensor inverse_trajectory_transform(const Tensor& kspace, const Tensor& trajectory,
                                    const Extents& image, const InverseTransformOptions& options);

/// The adjoint of a model: zeros where nothing was measured. `weights` multiply the samples first.
///
/// Errors   ShapeError: k-space or weights do not fit the model
Tensor adjoint_image(const NamedLinop& model, const Tensor& kspace,
                     const std::optional<Tensor>& weights = {});

/// The k-space that a model gives of an image. Samples of `replace` that are not 0 replace those of
/// the model.
///
/// Errors   ShapeError: the image does not fit the model, or `replace` the result
Tensor fake_kspace(const NamedLinop& model, const Tensor& image,
                   const std::optional<Tensor>& replace = {});

}  // namespace palimpsest
