// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/recon/image.hpp"

#include <fmt/format.h>

#include "palimpsest/cli/failure.hpp"
#include "palimpsest/imaging/inputs.hpp"
#include "palimpsest/io/format.hpp"
#include "palimpsest/io/nifti.hpp"
#include "palimpsest/io/npy.hpp"

namespace palimpsest::cli {
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
