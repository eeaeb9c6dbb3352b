// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace PALIMPSEST_API palimpsest {

struct PadOptions {
  Dims batch = "...";
  /// Names of the image axes; default Nx, Ny, Nz, or N1.. for more.
  std::optional<Dims> in = {};
  /// Names of the output axes; default the fresh names of `in`.
  std::optional<Dims> out = {};
};
/// Zeros around the last axes: the centre floor(I/2) goes to floor(P/2).
///
/// Math     N is Identity; the adjoint cuts the centre out
/// Errors   ValueError "size": lists of different lengths, or a size that shrinks
/// Cost     one write of the output
NamedLinop Pad(Extents im_size, Extents padded_size, PadOptions options = {});
/// The centre of the last axes: the adjoint of the Pad in the other direction.
///
/// Errors   ValueError "size": lists of different lengths, or a size that grows
NamedLinop Crop(Extents im_size, Extents cropped_size, PadOptions options = {});

}  // namespace palimpsest
