// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/forward_model.hpp"

#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/imaging/recon/mask_extents.hpp"
#include "palimpsest/imaging/recon/subspace.hpp"
#include "palimpsest/imaging/trajectories.hpp"
#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/containers/stack.hpp"
#include "palimpsest/linop/operators/dense.hpp"
#include "palimpsest/linop/operators/diagonal.hpp"
#include "palimpsest/linop/transforms/nufft.hpp"

namespace palimpsest {
namespace {

constexpr double kNufftAccuracy = 1e-4;

// The roles of the axes of maps.
struct ModelAxes {
  bool has_sets = false, has_frames = false;
  Tensor maps;                  // without the axis of a single set
  std::optional<Tensor> basis;  // complex64
  std::size_t spatial = 2;

  Dims grid(const char* names) const { return Dims(names).slice(3 - spatial, 3); }
  Dims sets() const { return has_sets ? Dims("M") : Dims(); }
  Dims frames() const { return has_frames ? Dims("T") : Dims(); }
  // Dimensions of the image.
  Dims series() const { return basis ? Dims("B") : frames(); }
  Dims image() const { return series() + sets() + grid("Nz Ny Nx"); }
};

[[noreturn]] void refuse_for_model(const char* what, const Tensor& array, const char* expected) {
  throw ShapeError(fmt::format("[sense_model] {}: got {} {}, expected {}", what,
                               name_of(array.dtype()), to_string(array.shape()), expected));
}

// The number of spatial axes. The sizes of mask or trajectory tell whether four axes are sets or a
// volume.
std::size_t spatial_axes(const Tensor& maps, const KspaceSampling& sampling) {
  if (sampling.trajectory) return static_cast<std::size_t>(sampling.trajectory->shape(-1));
  if (maps.rank() == 3) return 2;
  if (maps.rank() == 5) return 3;
  if (!sampling.mask) return maps.shape(0) == 1 ? 2 : 3;
  const auto& mask = sampling.mask->shape();
  const auto& n = maps.shape();
  const bool is_volume = mask.size() >= 3 && mask[mask.size() - 3] == n[1] &&
                         mask[mask.size() - 2] == n[2] && mask.back() == n[3];
  return is_volume && (mask.size() == 4 || n[0] != 1) ? 3 : 2;
}

void check_trajectory(const Tensor& given) {
  const bool is_array = given.rank() == 3 || given.rank() == 4;
  const bool is_empty = given.numel() == 0;
  if (is_array && !is_empty && given.dtype() == DType::float32 && given.shape(-1) >= 2 &&
      given.shape(-1) <= 3) {
    return;
  }
  refuse_for_model("trajectory", given, "float32 (readouts, samples, 2 or 3), or frames of it");
}

// The axes of maps and mask or trajectory.
ModelAxes sampled_axes(const Tensor& maps, const KspaceSampling& sampling) {
  if (maps.dtype() != DType::complex64 || maps.rank() < 3 || maps.rank() > 5) {
    refuse_for_model("maps", maps, "complex64 (C, y, x), (C, z, y, x) or (M, C, ..)");
  }
  if (sampling.mask && sampling.trajectory) {
    throw ValueError("[sense_model] got a mask and a trajectory, expected one of them");
  }
  if (sampling.trajectory) check_trajectory(*sampling.trajectory);
  ModelAxes axes;
  axes.spatial = spatial_axes(maps, sampling);
  axes.maps = maps;
  if (maps.rank() == axes.spatial + 2) {
    axes.has_sets = maps.shape(0) != 1;
    if (!axes.has_sets) axes.maps = maps.select(0, 0);
  } else if (maps.rank() != axes.spatial + 1) {
    refuse_for_model(
        "maps", maps,
        axes.spatial == 2 ? "(C, y, x) or (M, C, y, x)" : "(C, z, y, x) or (M, C, z, y, x)");
  }
  axes.has_frames = sampling.trajectory && sampling.trajectory->rank() == 4;
  if (!sampling.mask) return axes;
  const Extents& mask = sampling.mask->shape();
  axes.has_frames = mask.size() == axes.spatial + 1;
  bool fits = axes.has_frames || mask.size() == axes.spatial;
  for (std::size_t k = 1; fits && k <= axes.spatial; ++k) {
    fits = mask[mask.size() - k] == maps.shape()[maps.rank() - k];
  }
  if (!fits) refuse_for_model("mask", *sampling.mask, "the grid of the maps, or frames of it");
  return axes;
}

ModelAxes axes_of(const Tensor& maps, const KspaceSampling& sampling) {
  ModelAxes axes = sampled_axes(maps, sampling);
  if (!sampling.basis) return axes;
  if (!axes.has_frames) {
    throw ValueError(
        "[basis] there are no frames: expected a mask (T, y, x) or (T, z, y, x), or a trajectory "
        "(T, readouts, samples, D)");
  }
  const Tensor& frames = sampling.mask ? *sampling.mask : *sampling.trajectory;
  axes.basis = checked_basis("[basis]", *sampling.basis, frames.shape(0));
  return axes;
}

NamedLinop along_trajectory(const ModelAxes& axes, const Tensor& trajectory, bool toeplitz) {
  const Dims grid = axes.grid("Nz Ny Nx");
  Extents extents;
  for (std::size_t k = axes.maps.rank() - axes.spatial; k < axes.maps.rank(); ++k) {
    extents.push_back(axes.maps.shape()[k]);
  }
  const NamedLinop S =
      Dense(axes.maps, axes.sets() + Dims("C") + grid, axes.sets() + grid, Dims("C") + grid);
  const NamedLinop F = Nufft(coordinates_of_grid(trajectory), extents, "Sp Ro",
                             {.input = grid,
                              .kspace = axes.grid("Kz Ky Kx"),
                              .batch = "C",
                              .eps = kNufftAccuracy,
                              .toeplitz = toeplitz ? Toeplitz::yes : Toeplitz::no});
  return Chain(S, F);
}

// Each frame along its own trajectory.
NamedLinop along_trajectories(const ModelAxes& axes, const KspaceSampling& sampling) {
  const Tensor& trajectory = *sampling.trajectory;
  if (!axes.has_frames) return along_trajectory(axes, trajectory, sampling.toeplitz);
  std::vector<NamedLinop> parts;
  for (index_t t = 0; t < trajectory.shape(0); ++t) {
    const NamedLinop part =
        along_trajectory(axes, trajectory.select(0, t).contiguous(), sampling.toeplitz);
    const Dims image = axes.sets() + axes.grid("Nz Ny Nx");
    parts.push_back(axes.basis ? Chain(frame_of_coefficients(*axes.basis, t, image), part) : part);
  }
  const StackAxis frames(ND("T"), 0);
  return Stack(parts, {.in = axes.basis ? StackAxis() : frames, .out = frames, .threaded = false});
}

}  // namespace

Dims image_dimensions(const Tensor& maps, const KspaceSampling& sampling) {
  return axes_of(maps, sampling).image();
}

NamedLinop sense_model(const Tensor& maps, const KspaceSampling& sampling) {
  const ModelAxes axes = axes_of(maps, sampling);
  if (sampling.trajectory) return along_trajectories(axes, sampling);
  const Dims grid = axes.grid("Nz Ny Nx"), frames = axes.frames(), k = axes.grid("Kz Ky Kx");
  const Dims coils = axes.series() + Dims("C");
  const NamedLinop S = Dense(axes.maps, axes.sets() + Dims("C") + grid, axes.image(), coils + grid);
  const auto d = static_cast<int>(axes.spatial);
  const NamedLinop F = Fft(d, {.batch = coils, .grid = Grid{grid, k}, .centered = true});
  if (!sampling.mask) return Chain(S, F);
  const Dims measured = frames + Dims("C") + k;
  const NamedLinop P = Diagonal(factors_of_mask(*sampling.mask).to(DType::float32), measured,
                                {.weight_shape = frames + k});
  if (!axes.basis) return Chain(S, F, P);
  return Chain(S, F, frames_of_coefficients(*axes.basis, Dims("C") + k), P);
}

}  // namespace palimpsest
