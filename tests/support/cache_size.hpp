// SPDX-License-Identifier: Apache-2.0
// The sizes of caches that loops over memory go by, for the tests of all layers.
#pragma once

#include "palimpsest/base/cache_size.hpp"
