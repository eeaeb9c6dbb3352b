// SPDX-License-Identifier: Apache-2.0
// Internal: what the sources of file formats have in common.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "palimpsest/base/atomic_file.hpp"
#include "palimpsest/base/failure.hpp"
#include "palimpsest/io/bytes.hpp"
#include "palimpsest/io/elements.hpp"
#include "palimpsest/io/input_file.hpp"
