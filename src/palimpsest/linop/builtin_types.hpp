// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/linop/linop_type.hpp"

// The types of the operators of this library; functions, so that they are made before first use.
namespace palimpsest::linop_types {

const LinopType& add();
const LinopType& chain();
const LinopType& crop();
const LinopType& dense();
const LinopType& diagonal();
const LinopType& fft();
const LinopType& identity();
const LinopType& interpolate();
const LinopType& normal();
const LinopType& nufft();
const LinopType& pad();
const LinopType& repeat();
const LinopType& sampling();
const LinopType& scalar();
const LinopType& sum_reduce();
const LinopType& zero();

}  // namespace palimpsest::linop_types
