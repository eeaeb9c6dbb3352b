// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "palimpsest/imaging/recon/image_solver.hpp"

namespace palimpsest {

Dims ImageItem::series() const {
  if (basis) return Dims("B");
  return frames > 0 ? Dims("T") : Dims();
}

Dims ImageItem::image_dims() const { return series() + (sets > 1 ? Dims("M") : Dims()) + dims; }

Extents ImageItem::image_shape() const {
  Extents extents = shape;
  if (sets > 1) extents.insert(0, sets);
  if (frames > 0) extents.insert(0, basis ? basis->shape(1) : frames);
  return extents;
}

Extents ImageItem::kspace_shape() const {
  Extents extents = shape;
  if (has_trajectory()) {
    const Tensor& first = path().trajectories[0];
    extents = Extents{first.shape(0), first.shape(1)};
  }
  extents.insert(0, n_coils);
  if (frames > 0) extents.insert(0, frames);
  return extents;
}

Extents ImageItem::maps_shape() const {
  Extents extents = shape;
  extents.insert(0, n_coils);
  if (sets > 1) extents.insert(0, sets);
  return extents;
}

Extents ImageItem::weights_shape() const {
  if (basis && !has_trajectory()) {
    Extents extents = shape;
    extents.insert(0, basis->shape(1));
    extents.insert(0, basis->shape(1));
    return extents;
  }
  Extents extents = kspace_shape();
  extents.erase(frames > 0 ? 1 : 0);
  if (const GridSampling* const grid = std::get_if<GridSampling>(&sampling)) {
    std::copy(grid->mask_extents.begin(), grid->mask_extents.end(),
              extents.end() - static_cast<std::ptrdiff_t>(grid->mask_extents.size()));
  }
  return extents;
}

}  // namespace palimpsest
