// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/recon/image.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>

#include "palimpsest/cli/failure.hpp"
#include "palimpsest/imaging/inputs.hpp"
#include "palimpsest/io/format.hpp"
#include "palimpsest/io/nifti.hpp"
#include "palimpsest/io/npy.hpp"

namespace palimpsest::cli {
namespace {

constexpr float kGapGray = 0.35F;

// The extents with the last two replaced.
Extents with_plane(const Extents& extents, index_t ny, index_t nx) {
  Extents result = extents;
  result[result.size() - 2] = ny;
  result[result.size() - 1] = nx;
  return result;
}

}  // namespace

Tensor magnitude(const Tensor& x) {
  if (!is_complex(x.dtype())) {
    Tensor result = x.to(DType::float32).clone();
    float* values = result.mutable_data<float>();
    std::transform(values, values + result.numel(), values, [](float v) { return std::abs(v); });
    return result;
  }
  const Tensor dense = x.to(DType::complex64).contiguous();
  Tensor result = Tensor::empty(dense.shape(), DType::float32);
  const auto* values = dense.data<std::complex<float>>();
  std::transform(values, values + dense.numel(), result.mutable_data<float>(),
                 [](std::complex<float> v) { return std::abs(v); });
  return result;
}

Tensor center_crop(const Tensor& x, index_t ny, index_t nx) {
  const index_t old_y = x.shape(-2), old_x = x.shape(-1);
  const index_t to_y = std::min(ny, old_y), to_x = std::min(nx, old_x);
  return x.narrow(-2, old_y / 2 - to_y / 2, to_y).narrow(-1, old_x / 2 - to_x / 2, to_x);
}

Tensor center_pad(const Tensor& x, index_t ny, index_t nx) {
  Tensor result = Tensor::zeros(with_plane(x.shape(), ny, nx), x.dtype());
  center_crop(result, x.shape(-2), x.shape(-1)).copy_from(x);
  return result;
}

double quantile(const Tensor& x, double part) {
  std::vector<float> values = x.to_vector<float>();
  if (values.empty()) return 0;
  const auto last = static_cast<double>(values.size() - 1);
  const auto nth = values.begin() + static_cast<std::ptrdiff_t>(std::lround(part * last));
  std::nth_element(values.begin(), nth, values.end());
  return static_cast<double>(*nth);
}

Comparison compare_magnitudes(const Tensor& reference, const Tensor& image) {
  if (reference.shape() != image.shape()) {
    throw UsageError(
        fmt::format("[compare] the images differ in shape: got {}, expected {} like the "
                    "reference. Try images of one scan",
                    to_string(image.shape()), to_string(reference.shape())));
  }
  const Tensor a = magnitude(reference), b = magnitude(image);
  const float *r = a.data<float>(), *v = b.data<float>();
  double rr = 0, rv = 0, vv = 0;
  for (index_t i = 0; i < a.numel(); ++i) {
    rr += double{r[i]} * double{r[i]};
    rv += double{r[i]} * double{v[i]};
    vv += double{v[i]} * double{v[i]};
  }
  if (!(rr > 0)) throw UsageError("[compare] the reference is 0 everywhere. Try another image");
  Comparison result;
  result.scale = vv > 0 ? rv / vv : 1;
  double error = 0;
  for (index_t i = 0; i < a.numel(); ++i) {
    const double difference = result.scale * double{v[i]} - double{r[i]};
    error += difference * difference;
  }
  result.nrmse = std::sqrt(error / rr);
  return result;
}

Tensor panels_in_a_row(const std::vector<Tensor>& panels, index_t gap) {
  const index_t ny = panels.front().shape(0), nx = panels.front().shape(1);
  const auto n = static_cast<index_t>(panels.size());
  Tensor row = Tensor::full<float>({ny + 2 * gap, n * (nx + gap) + gap}, kGapGray);
  for (index_t i = 0; i < n; ++i) {
    Tensor place = row.narrow(0, gap, ny).narrow(1, gap + i * (nx + gap), nx);
    place.copy_from(panels[static_cast<std::size_t>(i)]);
  }
  Tensor gray = Tensor::empty(row.shape(), DType::uint8);
  const float* values = row.data<float>();
  std::transform(values, values + row.numel(), gray.mutable_data<std::uint8_t>(), [](float v) {
    return static_cast<std::uint8_t>(std::lround(std::clamp(v, 0.0F, 1.0F) * 255.0F));
  });
  return gray;
}

Tensor read_slice(const std::string& path, const std::string& axis, std::optional<index_t> slice) {
  const FileFormat format = read_input(path, [&] { return detect_format(path); });
  Tensor data;
  if (format == FileFormat::nifti) {
    data = read_input(path, [&] { return read_nifti(path).data; });
  } else if (format == FileFormat::npy) {
    data = read_input(path, [&] { return read_npy(path); });
  } else {
    throw UsageError(
        fmt::format("[{}] is {}, expected an image as NIfTI or NPY", path, name_of(format)));
  }
  while (data.rank() > 3 && data.shape(0) == 1) data = data.select(0, 0);
  if (data.rank() != 2 && data.rank() != 3) {
    throw UsageError(fmt::format("[{}] wrong rank: got the shape {}, expected (y, x) or (z, y, x)",
                                 path, to_string(data.shape())));
  }
  if (data.rank() == 3) {
    const index_t along = axis == "x" ? 2 : axis == "y" ? 1 : 0;
    const index_t n = data.shape(along), which = slice.value_or(n / 2);
    if (which < 0 || which >= n) {
      throw UsageError(fmt::format("[--slice] outside the image: got {}, expected 0 to {} along {}",
                                   which, n - 1, axis.empty() ? "z" : axis));
    }
    data = data.select(along, which);
  } else if (slice.value_or(0) != 0 || !axis.empty()) {
    throw UsageError(fmt::format("[{}] {} is one slice, not a volume. Try without {}",
                                 axis.empty() ? "--slice" : "--axis", path,
                                 axis.empty() ? "--slice" : "--axis"));
  }
  // In NIfTI y runs to anterior and z to superior; in pictures row 0 is the top.
  if (format == FileFormat::nifti) data = data.flip(Axes{0});
  Tensor image = is_complex(data.dtype()) ? data.to(DType::complex64).contiguous()
                                          : data.to(DType::float32).contiguous();
  check_finite(path, image, image_values());
  if (!(quantile(magnitude(image), 1) > 0)) {
    throw UsageError(fmt::format("[{}] the image is 0 everywhere. Try another --slice", path));
  }
  return image;
}

}  // namespace palimpsest::cli
