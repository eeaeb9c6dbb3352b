// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/linop/linop_type.hpp"

// The types of the operators of this library; functions, so that they are made before first use.
namespace palimpsest::linop_types {

const LinopType& add();
const LinopType& array_to_blocks();
const LinopType& as_real();
const LinopType& breakpoint();
const LinopType& chain();
const LinopType& concat();
const LinopType& convolution();
const LinopType& crop();
const LinopType& dense();
const LinopType& diagonal();
const LinopType& fft();
const LinopType& finite_difference();
const LinopType& identity();
const LinopType& imag_part();
const LinopType& interpolate();
const LinopType& kronecker();
const LinopType& normal();
const LinopType& nufft();
const LinopType& pad();
const LinopType& pad_dim();
const LinopType& permute();
const LinopType& real_part();
const LinopType& rearrange();
const LinopType& repeat();
const LinopType& restrict_to();
const LinopType& sampling();
const LinopType& scalar();
const LinopType& shape_spec();
const LinopType& simple();
const LinopType& sleep();
const LinopType& sparse();
const LinopType& stack();
const LinopType& sum_reduce();
const LinopType& to_device();
const LinopType& truncate();
const LinopType& wavelet();
const LinopType& zero();

}  // namespace palimpsest::linop_types
