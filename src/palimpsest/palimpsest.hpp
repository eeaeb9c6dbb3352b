// SPDX-License-Identifier: Apache-2.0
// Everything that Palimpsest offers, in one header.
#pragma once

#include "palimpsest/base/dtype.hpp"
#include "palimpsest/base/error.hpp"
#include "palimpsest/base/log.hpp"
#include "palimpsest/base/shape.hpp"
#include "palimpsest/base/small_vector.hpp"
