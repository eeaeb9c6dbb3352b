// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/transforms.hpp"

#include <functional>

#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/imaging/reconstruct.hpp"
#include "palimpsest/imaging/trajectories.hpp"
#include "palimpsest/imaging/weights.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/linop/transforms/nufft.hpp"
#include "palimpsest/solve/conjugate_gradients.hpp"
#include "palimpsest/solve/spectrum.hpp"

namespace palimpsest {
namespace {

// The order of axes that puts those that are transformed at the end, and back.
struct Order {
  std::vector<index_t> to_end, back;
};

Order order_of(std::size_t rank, const std::vector<index_t>& axes) {
  Order order;
  for (index_t axis = 0; axis < static_cast<index_t>(rank); ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) order.to_end.push_back(axis);
  }
  for (const index_t axis : axes) {
    const bool is_good = axis >= 0 && axis < static_cast<index_t>(rank) &&
                         std::count(axes.begin(), axes.end(), axis) == 1;
    if (!is_good) {
      throw ValueError(
          fmt::format("[transform] axes: got {} of an array of {} axes, expected each at most once",
                      fmt::join(axes, ", "), rank));
    }
    order.to_end.push_back(axis);
  }
  if (axes.empty()) throw ValueError("[transform] axes: got none, expected at least one");
  order.back.resize(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    order.back[static_cast<std::size_t>(order.to_end[i])] = static_cast<index_t>(i);
  }
  return order;
}

NamedLinop operator_for(std::size_t n_axes, const TransformOptions& options) {
  FftLinopOptions how = {.norm = options.norm, .centered = options.centered};
  if (!options.inverse) return Fft(static_cast<int>(n_axes), how);
  // The adjoint is the inverse where forward and backward have the same factor.
  if (options.norm == FftNorm::ortho) return Fft(static_cast<int>(n_axes), how).H();
  return Fft(static_cast<int>(n_axes), how).inverse();
}

void expect_complex(DType dtype) {
  if (is_complex(dtype)) return;
  throw DTypeError(fmt::format("[transform] got {}, expected complex values", name_of(dtype)));
}

}  // namespace

Tensor transform(const Tensor& x, const std::vector<index_t>& axes,
                 const TransformOptions& options) {
  expect_complex(x.dtype());
  const Order order = order_of(x.rank(), axes);
  return operator_for(axes.size(), options)(x.permute(order.to_end)).permute(order.back);
}

index_t plan_transform(const TensorType& x, const std::vector<index_t>& axes,
                       const TransformOptions& options) {
  expect_complex(x.dtype);
  const Order order = order_of(x.rank(), axes);
  Extents shape;
  for (const index_t axis : order.to_end) shape.push_back(x.shape[static_cast<std::size_t>(axis)]);
  return operator_for(axes.size(), options).plan({x.dtype, shape, {}}).peak_bytes;
}

Tensor coil_images(const Tensor& kspace) {
  const auto axes = static_cast<int>(kspace.rank()) - 1;
  return Fft(axes, {.centered = true}).H()(kspace);
}

index_t plan_coil_images(const Extents& kspace) {
  const auto axes = static_cast<int>(kspace.size()) - 1;
  return Fft(axes, {.centered = true}).H().plan({DType::complex64, kspace, {}}).peak_bytes;
}

NamedLinop trajectory_transform(const Tensor& trajectory, const Extents& image, bool toeplitz) {
  const std::size_t d = trajectory.rank() == 3 ? static_cast<std::size_t>(trajectory.shape(2)) : 0;
  if ((d != 2 && d != 3) || image.size() != d || trajectory.dtype() != DType::float32) {
    throw ShapeError(fmt::format(
        "[trajectory] got {} {} for images of {}, expected float32 (readouts, samples, 2) for (y, "
        "x), or 3 for (z, y, x)",
        name_of(trajectory.dtype()), to_string(trajectory.shape()), to_string(image)));
  }
  return Nufft(coordinates_of_grid(trajectory), image, "Sp Ro",
               {.eps = 1e-4, .toeplitz = toeplitz ? Toeplitz::yes : Toeplitz::no});
}

namespace {

// An image from its samples.
using ImageOf = std::function<Tensor(const Tensor& samples)>;

ImageOf least_squares_along(const Tensor& trajectory, const Extents& image,
                            const InverseTransformOptions& options) {
  const NamedLinop A = trajectory_transform(trajectory, image, /*toeplitz=*/true);
  NamedLinop N = A.N();
  if (options.lambda > 0) {
    const double weight = options.lambda * operator_norm2(A, {DType::complex64, image, {}}).value;
    N = N + weight * Identity(N.ishape());
  }
  return [A, N, n = options.iterations](const Tensor& samples) {
    return conjugate_gradients(N, A.H()(samples), {.tolerance = 0, .max_iterations = n}).x;
  };
}

// Image as a single coil sees it, whose map is 1.
ImageOf regularized_along(const Tensor& trajectory, const Extents& image,
                          const InverseTransformOptions& options) {
  Extents coil = image;
  coil.insert(0, 1);
  return [=, map = Tensor::full<Sample>(coil, Sample(1))](const Tensor& samples) {
    return reconstruct(samples.unsqueeze(0), map, {.trajectory = trajectory},
                       {.regularizers = options.regularizers,
                        .iterations = options.iterations,
                        .tolerance = 0})
        .image;
  };
}

}  // namespace

Tensor inverse_trajectory_transform(const Tensor& kspace, const Tensor& trajectory,
                                    const Extents& image, const InverseTransformOptions& options) {
  if (options.iterations < 1 || !(options.lambda >= 0) || !std::isfinite(options.lambda)) {
    throw ValueError(fmt::format(
        "[inverse transform] got {} iterations and a weight of {}, expected at least 1 and 0",
        options.iterations, options.lambda));
  }
  if (!options.regularizers.empty() && options.lambda > 0) {
    throw ValueError("[inverse transform] got lambda and regularizers, expected one of the two");
  }
  const auto image_of = options.regularizers.empty()
                            ? least_squares_along(trajectory, image, options)
                            : regularized_along(trajectory, image, options);
  const std::size_t n_batch = kspace.rank() < 2 ? 0 : kspace.rank() - 2;
  const bool fits = kspace.rank() >= 2 && kspace.shape(-2) == trajectory.shape(0) &&
                    kspace.shape(-1) == trajectory.shape(1);
  if (!fits) {
    throw ShapeError(fmt::format(
        "[inverse transform] got k-space {} for a trajectory of {} readouts of {} samples",
        to_string(kspace.shape()), trajectory.shape(0), trajectory.shape(1)));
  }
  Extents shape(kspace.shape().begin(), kspace.shape().begin() + std::ptrdiff_t(n_batch));
  index_t n_images = 1;
  for (const index_t n : shape) n_images *= n;
  for (const index_t n : image) shape.push_back(n);
  Extents flat = image;
  flat.insert(0, n_images);
  Tensor result = Tensor::empty(flat, DType::complex64);
  const Tensor samples = kspace.reshape({n_images, trajectory.shape(0), trajectory.shape(1)});
  for (index_t k = 0; k < n_images; ++k) {
    result.select(0, k).copy_from(image_of(samples.select(0, k)));
  }
  return result.view(shape);
}

Tensor adjoint_image(const NamedLinop& model, const Tensor& kspace,
                     const std::optional<Tensor>& weights) {
  if (!weights) return model.H()(kspace);
  Tensor weighted = kspace.clone();
  const Tensor factors = weights->to(DType::float32).contiguous();
  const index_t n = factors.numel();
  const bool fits = n > 0 && factors.rank() <= kspace.rank() &&
                    std::equal(factors.shape().begin(), factors.shape().end(),
                               kspace.shape().end() - std::ptrdiff_t(factors.rank()));
  if (!fits) {
    throw ShapeError(fmt::format("[weights] got the shape {}, expected the last axes of {}",
                                 to_string(weights->shape()), to_string(kspace.shape())));
  }
  check_weights("weights", factors);
  auto* values = weighted.mutable_data<Sample>();
  for (index_t i = 0, end = weighted.numel(); i < end; ++i)
    values[i] *= factors.data<float>()[i % n];
  return model.H()(weighted);
}

Tensor fake_kspace(const NamedLinop& model, const Tensor& image,
                   const std::optional<Tensor>& replace) {
  Tensor result = model(image);
  if (!replace) return result;
  if (replace->shape() != result.shape()) {
    throw ShapeError(fmt::format("[replace] got k-space {}, expected {}",
                                 to_string(replace->shape()), to_string(result.shape())));
  }
  const Tensor measured = replace->to(DType::complex64).contiguous();
  auto* values = result.mutable_data<Sample>();
  const auto* given = measured.data<Sample>();
  for (index_t i = 0, end = result.numel(); i < end; ++i) {
    if (given[i] != Sample(0)) values[i] = given[i];
  }
  return result;
}

}  // namespace palimpsest
