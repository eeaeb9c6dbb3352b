// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "palimpsest/tensor/tensor.hpp"

namespace palimpsest::cli {

/// Writes the magnitude of an image as PNG; of a volume or a series the middle along each axis
/// before the last two. White is a value that the brightest half percent exceeds.
void write_picture(const std::string& path, const Tensor& image, index_t bits);
/// Held meanwhile, besides the image.
index_t picture_bytes(const Extents& image);

}  // namespace palimpsest::cli
