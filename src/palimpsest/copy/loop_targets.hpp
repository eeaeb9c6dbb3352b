// SPDX-License-Identifier: Apache-2.0
// Internal: instruction sets for which files are not compiled: for HWY_DISABLED_TARGETS. What is
// left, beside the baseline, differs in the width of vectors; each further set costs build time.
// PALIMPSEST_ONE_VECTOR_WIDTH: the bits of the only width to compile beside the baseline, if any.
#pragma once

#if PALIMPSEST_ONE_VECTOR_WIDTH == 512
#define PALIMPSEST_NO_TILES_FOR \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX2 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_RVV)
#elif PALIMPSEST_ONE_VECTOR_WIDTH == 256
#define PALIMPSEST_NO_TILES_FOR (HWY_SSSE3 | HWY_AVX3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_RVV)
#else
#define PALIMPSEST_NO_TILES_FOR (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_RVV)
#endif
// Loops have the baseline where tile machines have SSE4.
#define PALIMPSEST_NO_LOOPS_FOR (PALIMPSEST_NO_TILES_FOR | HWY_SSE4)
