// SPDX-License-Identifier: Apache-2.0
// Internal: instruction sets for which tile machines are not compiled: for HWY_DISABLED_TARGETS.
#pragma once

#if defined(PALIMPSEST_ONE_VECTOR_WIDTH)
#define PALIMPSEST_NO_TILES_FOR (HWY_SSSE3 | HWY_AVX3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_RVV)
#else
#define PALIMPSEST_NO_TILES_FOR (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_RVV)
#endif
