// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest::bench {

/// Makes kspace and maps of a phantom, as .npy and as .cfl with .hdr, unless they exist: n^3
/// points, smooth coil maps whose squares add up to 1, noise, two phase encodings that are
/// undersampled fourfold except in their centre, complete readouts along x.
void make_scan_files(const std::string& folder, index_t n, index_t coils);

}  // namespace palimpsest::bench
