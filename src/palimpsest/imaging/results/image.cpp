// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/results/image.hpp"

#include "palimpsest/compile/tensor_math.hpp"
#include "palimpsest/imaging/prelude.hpp"

namespace palimpsest {
namespace {

// The extents with the last two replaced.
Extents with_plane(const Extents& extents, index_t ny, index_t nx) {
  Extents result = extents;
  result[result.size() - 2] = ny;
  result[result.size() - 1] = nx;
  return result;
}

template <class F>
Tensor of_each(const Tensor& x, F&& f) {
  const Tensor dense = x.to(DType::complex64).contiguous();
  Tensor result = Tensor::empty(dense.shape(), DType::float32);
  const auto* values = dense.data<std::complex<float>>();
  std::transform(values, values + dense.numel(), result.mutable_data<float>(), f);
  return result;
}

}  // namespace

Tensor magnitude(const Tensor& x) { return part_of(x, ImagePart::magnitude); }

ImagePart parse_image_part(const std::string& name) {
  if (name == "magnitude") return ImagePart::magnitude;
  if (name == "phase") return ImagePart::phase;
  if (name == "real") return ImagePart::real;
  if (name == "imag") return ImagePart::imag;
  throw ValueError(fmt::format(
      "[part] got '{}', expected magnitude, phase, real or imag. Try 'magnitude'", name));
}

Tensor part_of(const Tensor& x, ImagePart part) {
  if (!is_complex(x.dtype()) && part == ImagePart::magnitude) return abs(x.to(DType::float32));
  if (!is_complex(x.dtype()) && part == ImagePart::real) return x.to(DType::float32).clone();
  switch (part) {
    case ImagePart::magnitude:
      return of_each(x, [](Sample v) { return std::abs(v); });
    case ImagePart::phase:
      return of_each(x, [](Sample v) { return std::arg(v); });
    case ImagePart::real:
      return of_each(x, [](Sample v) { return v.real(); });
    case ImagePart::imag:
      break;
  }
  return of_each(x, [](Sample v) { return v.imag(); });
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

// -- place in space ---------------------------------------------------------------------------

AffineMatrix lps_affine(const Orientation& orientation, const std::array<double, 3>& voxel_mm,
                        const std::array<index_t, 3>& extents) {
  AffineMatrix affine{};
  for (std::size_t row = 0; row < 3; ++row) {
    affine[row][3] = orientation.position_mm[row];
    for (std::size_t d = 0; d < 3; ++d) {
      affine[row][d] = orientation.directions[d][row] * voxel_mm[d];
      affine[row][3] -= affine[row][d] * static_cast<double>(extents[d] / 2);
    }
  }
  return affine;
}

Orientation orientation_of(const AffineMatrix& affine, const std::array<index_t, 3>& extents) {
  Orientation result;
  std::array<double, 3> length{};
  for (std::size_t d = 0; d < 3; ++d) {
    length[d] = std::hypot(affine[0][d], affine[1][d], affine[2][d]);
    for (std::size_t row = 0; row < 3; ++row) {
      if (length[d] > 0) result.directions[d][row] = affine[row][d] / length[d];
    }
  }
  for (std::size_t d = 0; d < 3; ++d) {
    if (length[d] > 0) continue;
    const auto& a = result.directions[(d + 1) % 3];
    const auto& b = result.directions[(d + 2) % 3];
    for (std::size_t row = 0; row < 3; ++row) {
      const std::size_t i = (row + 1) % 3, j = (row + 2) % 3;
      result.directions[d][row] = a[i] * b[j] - a[j] * b[i];
    }
  }
  for (std::size_t row = 0; row < 3; ++row) {
    result.position_mm[row] = affine[row][3];
    for (std::size_t d = 0; d < 3; ++d) {
      result.position_mm[row] += affine[row][d] * static_cast<double>(extents[d] / 2);
    }
  }
  return result;
}

AffineMatrix lps_to_ras(const AffineMatrix& affine) {
  AffineMatrix result = affine;
  for (std::size_t row = 0; row < 2; ++row) {
    for (double& value : result[row]) value = value == 0 ? 0.0 : -value;
  }
  return result;
}

namespace {

// The axis of a spatial dimension, from 0.
std::optional<index_t> axis_of(const Image& image, const char* name) {
  const auto at = image.names.index_of(name);
  if (!at) return std::nullopt;
  return static_cast<index_t>(*at);
}

std::optional<index_t> plane_axis_of(const Image& image) {
  const auto z = axis_of(image, "Nz");
  return z ? z : axis_of(image, "S");
}

}  // namespace

std::array<index_t, 3> spatial_extents(const Image& image) {
  std::array<index_t, 3> extents = {1, 1, 1};
  const std::optional<index_t> axes[3] = {axis_of(image, "Nx"), axis_of(image, "Ny"),
                                          plane_axis_of(image)};
  for (std::size_t d = 0; d < 3; ++d) {
    if (axes[d]) extents[d] = image.data.shape(*axes[d]);
  }
  return extents;
}

namespace {

// The distance of elements along an axis, mm; 0: not known.
double spacing_along(const NamedDimension& name, const std::array<double, 3>& voxel_mm) {
  const std::string text = name.str();
  const std::size_t d = text == "Nx" ? 0 : text == "Ny" ? 1 : text == "Nz" || text == "S" ? 2 : 3;
  return d < 3 && std::isfinite(voxel_mm[d]) ? voxel_mm[d] : 0;
}

// `n` numbers become `m`, `step` elements apart.
void stretch_line(const float* from, index_t n, float* to, index_t m, index_t step, bool nearest) {
  for (index_t i = 0; i < m; ++i) {
    const double at =
        (static_cast<double>(i) + 0.5) * static_cast<double>(n) / static_cast<double>(m) - 0.5;
    const double x = std::clamp(nearest ? std::round(at) : at, 0.0, static_cast<double>(n - 1));
    const auto before = std::min(static_cast<index_t>(x), std::max<index_t>(n - 2, 0));
    const index_t after = std::min(before + 1, n - 1);
    const auto part = static_cast<float>(x - static_cast<double>(before));
    to[i * step] = (1 - part) * from[before * step] + part * from[after * step];
  }
}

}  // namespace

Extents square_extents(const Dims& names, const Extents& extents,
                       const std::array<double, 3>& voxel_mm) {
  constexpr double kSame = 1.01, kMost = 16;
  Extents result = extents;
  if (names.size() < 2 || names.size() != extents.size()) return result;
  const std::size_t row = names.size() - 2, column = row + 1;
  const double of_row = spacing_along(names[row], voxel_mm);
  const double of_column = spacing_along(names[column], voxel_mm);
  if (!(of_row > 0 && of_column > 0)) return result;
  const double ratio = std::max(of_row, of_column) / std::min(of_row, of_column);
  if (ratio < kSame || ratio > kMost) return result;
  index_t& longer = result[of_row > of_column ? row : column];
  longer = std::llround(ratio * static_cast<double>(longer));
  return result;
}

Image with_square_pixels(const Image& image, bool nearest) {
  const Extents& given = image.data.shape();
  const Extents wanted = square_extents(image.names, given, image.voxel_mm);
  Image result = image;
  result.data = image.data.contiguous();
  if (wanted == given || image.data.numel() == 0) return result;
  const std::size_t rank = given.size();
  const bool is_row = wanted[rank - 2] != given[rank - 2];
  const index_t width = given[rank - 1];
  const index_t n = is_row ? given[rank - 2] : width, step = is_row ? width : 1;
  const index_t m = is_row ? wanted[rank - 2] : wanted[rank - 1];
  const float* from = result.data.data<float>();
  Tensor stretched = Tensor::empty(wanted, DType::float32);
  auto* to = stretched.mutable_data<float>();
  // Lines along the axis: one for each column of a plane, or for each row.
  const index_t blocks = image.data.numel() / (n * step);
  for (index_t k = 0; k < blocks; ++k) {
    for (index_t i = 0; i < step; ++i) {
      stretch_line(from + k * n * step + i, n, to + k * m * step + i, m, step, nearest);
    }
  }
  result.data = std::move(stretched);
  for (std::size_t d = 0; d < 3; ++d) {
    const NamedDimension& name = image.names[is_row ? rank - 2 : rank - 1];
    const char* const names[] = {"Nx", "Ny", name.str() == "S" ? "S" : "Nz"};
    if (name == NamedDimension(names[d])) {
      result.voxel_mm[d] *= static_cast<double>(n) / static_cast<double>(m);
    }
  }
  return result;
}

index_t slices_of(const Image& image) {
  const auto axis = axis_of(image, "S");
  return axis ? image.data.shape(*axis) : 1;
}

index_t frames_of(const Image& image) {
  const auto axis = axis_of(image, "T");
  return axis ? image.data.shape(*axis) : 1;
}

const ImageFacts* facts_at(const Image& image, index_t slice, index_t frame) {
  const index_t n_frames = frames_of(image);
  if (std::ssize(image.facts) != slices_of(image) * n_frames) return nullptr;
  return &image.facts[static_cast<std::size_t>(slice * n_frames + frame)];
}

void take_place_of_facts(Image& image) {
  const index_t n_slices = slices_of(image);
  const ImageFacts* const first = facts_at(image, 0, 0);
  if (first == nullptr) return;
  std::vector<ImageFacts> slices;
  for (index_t s = 0; s < n_slices; ++s) slices.push_back(*facts_at(image, s, 0));
  std::array<index_t, 3> extents = spatial_extents(image);
  if (axis_of(image, "S")) extents[2] = 1;
  if (first->thickness_mm > 0) image.voxel_mm[2] = first->thickness_mm;
  AffineMatrix affine = lps_affine(first->place, image.voxel_mm, extents);
  std::array<std::array<double, 3>, 3> directions = first->place.directions;
  const auto step = step_of_slices(slices);
  if (n_slices > 1 && step && *step != std::array<double, 3>{0, 0, 0}) {
    image.voxel_mm[2] = std::hypot((*step)[0], (*step)[1], (*step)[2]);
    directions[2] = *step;
    for (std::size_t row = 0; row < 3; ++row) affine[row][2] = (*step)[row];
  }
  image.affine_lps.reset();
  if (are_directions(directions)) image.affine_lps = affine;
}

std::vector<Image> volumes_of(const Image& image) {
  const index_t n_slices = slices_of(image), n_frames = frames_of(image);
  if (facts_at(image, 0, 0) == nullptr || are_one_volume(image.facts, n_slices)) return {image};
  std::vector<Image> volumes;
  const auto axis = *axis_of(image, "S");
  for (index_t s = 0; s < n_slices; ++s) {
    Image& one = volumes.emplace_back(image);
    one.data = image.data.select(axis, s);
    one.names = image.names.without(NamedDimension("S"));
    const auto first = image.facts.begin() + s * n_frames;
    one.facts.assign(first, first + n_frames);
    take_place_of_facts(one);
  }
  return volumes;
}

Dims usual_names(std::size_t rank) {
  static const char* const kNames[] = {"Nx", "Ny", "Nz", "T", "B5", "B6", "B7", "B8"};
  if (rank > std::size(kNames)) {
    throw ShapeError(fmt::format(
        "[names] got an array of {} axes, expected at most {}. Try Image.names of your own", rank,
        std::size(kNames)));
  }
  Dims names;
  for (std::size_t i = rank; i-- > 0;) names.push_back(NamedDimension(kNames[i]));
  return names;
}

Image radiological(const Image& image) {
  const auto x = axis_of(image, "Nx"), y = axis_of(image, "Ny");
  if (!image.affine_lps || !x || !y) return image;
  const AffineMatrix& affine = *image.affine_lps;
  // The patient's axis that an axis of the image runs along most: L, P or S; and whether upwards.
  const auto main_axis = [&](std::size_t d) {
    std::size_t most = 0;
    for (std::size_t row = 1; row < 3; ++row) {
      if (std::abs(affine[row][d]) > std::abs(affine[most][d])) most = row;
    }
    return std::pair{most, affine[most][d] >= 0};
  };
  const auto [along_x, x_up] = main_axis(0);
  const auto [along_y, y_up] = main_axis(1);
  Image result = image;
  std::vector<index_t> order(image.data.rank());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<index_t>(i);
  // Across: L before P before S. Superior is at the top, so it runs against the rows.
  std::vector<index_t> flipped;
  if (x_up == (along_x == 2)) flipped.push_back(*x);
  if (y_up == (along_y == 2)) flipped.push_back(*y);
  if (!flipped.empty()) result.data = result.data.flip(flipped);
  if (along_y < along_x) {
    std::swap(order[static_cast<std::size_t>(*x)], order[static_cast<std::size_t>(*y)]);
    result.data = result.data.permute(order);
  }
  // The places of voxels are those of the image that was given.
  result.affine_lps.reset();
  return result;
}

}  // namespace palimpsest
