// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/steps/array_files.hpp"

#include <charconv>
#include <complex>

#include "palimpsest/cli/steps/prelude.hpp"
#include "palimpsest/imaging/results/image_formats.hpp"
#include "palimpsest/io/cartesian.hpp"
#include "palimpsest/io/cfl.hpp"
#include "palimpsest/io/format.hpp"
#include "palimpsest/memory/file_pages.hpp"

namespace palimpsest::cli {
namespace {

Dims kspace_names(std::size_t rank) { return rank == 4 ? Dims("C Nz Ny Nx") : Dims("C Ny Nx"); }

Tensor read_array(const std::string& path) {
  switch (detect_format(path)) {
    case FileFormat::npy:
      return map_npy(path);
    case FileFormat::cfl: {
      Tensor array = map_cfl(path);
      const Image image = from_bart(array);
      // (coil, z, y, x) with z = 1 is a plane, and without coils there is one.
      if (image.names.contains("C")) return image.data;
      return array.rank() < 4 ? image.data.unsqueeze(0) : array;
    }
    case FileFormat::ismrmrd: {
      Tensor kspace = cartesian_kspace(read_ismrmrd(path)).kspace;
      return kspace.shape(1) == 1 ? kspace.squeeze(1) : kspace;
    }
    default:
      throw ValueError("is an image, expected k-space");
  }
}

bool is_zero(const Tensor& data) {
  const auto* values = data.data<std::complex<float>>();
  return std::all_of(values, values + data.numel(),
                     [](std::complex<float> v) { return v == std::complex<float>(0); });
}

}  // namespace

KspaceFile read_kspace(const std::string& path) {
  KspaceFile file;
  file.is_raw = read_input(path, [&] { return detect_format(path); }) == FileFormat::ismrmrd;
  Tensor data = read_input(path, [&] { return read_array(path); });
  if (!is_complex(data.dtype())) {
    throw UsageError(fmt::format("[{}] k-space must be complex: got {}, expected complex64", path,
                                 name_of(data.dtype())));
  }
  if ((data.rank() != 3 && data.rank() != 4) || data.numel() == 0) {
    throw UsageError(fmt::format(
        "[{}] wrong rank of k-space: got the shape {}, expected (coil, y, x) or (coil, z, y, x)",
        path, to_string(data.shape())));
  }
  const bool is_mapped = data.dtype() == DType::complex64 && data.is_contiguous() &&
                         is_file_mapped(data.raw_data(), 1);
  file.kspace = data.to(DType::complex64).contiguous();
  file.names = kspace_names(data.rank());
  file.held_bytes = is_mapped ? 0 : file.kspace.nbytes();
  check_finite(path, file.kspace, kspace_values());
  if (is_zero(file.kspace)) throw UsageError(fmt::format("[{}] no samples: k-space is 0", path));
  return file;
}

Tensor read_trajectory(const std::string& path) {
  Tensor data = read_input(path, [&] {
    const FileFormat format = detect_format(path);
    if (format == FileFormat::npy) return read_npy(path);
    if (format == FileFormat::cfl) return read_cfl(path);
    throw ValueError("holds no trajectory, expected NPY or CFL");
  });
  if (is_complex(data.dtype())) data = part_of(data, ImagePart::real);
  while (data.rank() > 3 && data.shape(0) == 1) data = data.squeeze(0);
  const bool fits = data.rank() == 3 && (data.shape(2) == 2 || data.shape(2) == 3);
  if (!fits || data.numel() == 0) {
    throw UsageError(
        fmt::format("[{}] got the shape {}, expected a trajectory (readouts, samples, 2 or 3)",
                    path, to_string(data.shape())));
  }
  data = data.to(DType::float32).contiguous();
  check_finite(path, data, {"the trajectory", "Try to leave these readouts out"});
  if (data.shape(2) == 3) {
    const Tensor z = data.narrow(2, 2, 1);
    const std::vector<float> values = z.to_vector<float>();
    const bool is_flat = std::all_of(values.begin(), values.end(), [](float v) { return v == 0; });
    if (is_flat) data = data.narrow(2, 0, 2).contiguous();
  }
  return data;
}

std::vector<index_t> parse_numbers(const std::string& option, const std::string& text,
                                   const std::vector<std::size_t>& counts, index_t least) {
  constexpr index_t kMost = index_t{1} << 31;
  std::vector<index_t> numbers;
  const char *at = text.data(), *const end = at + text.size();
  bool is_good = true;
  while (is_good) {
    index_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    is_good = error == std::errc() && value >= least && value <= kMost;
    numbers.push_back(value);
    at = next;
    if (at == end) break;
    is_good = is_good && *at++ == ',';
  }
  if (is_good && std::find(counts.begin(), counts.end(), numbers.size()) != counts.end()) {
    return numbers;
  }
  throw UsageError(fmt::format("[{}] got '{}', expected {} numbers of at least {}, such as {}",
                               option, text, fmt::join(counts, " or "), least,
                               counts.front() == 3 ? "64,64,64" : "128,96"));
}

}  // namespace palimpsest::cli
