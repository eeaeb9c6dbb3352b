// SPDX-License-Identifier: Apache-2.0
// The passes of SplitTransform in double precision, once per instruction set.
#include "palimpsest/copy/loop_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "palimpsest/kernels/fft/split_double.cpp"
#define HWY_DISABLED_TARGETS PALIMPSEST_NO_TILES_FOR
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "palimpsest/kernels/fft/split_passes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {

void split_double(const SplitTransform<double>& transform, const TransformLines<double>& lines,
                  double* rows) {
  run_split(transform, lines, rows);
}

}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace palimpsest {

HWY_EXPORT(split_double);

template <>
void SplitTransform<double>::run(const TransformLines<double>& lines, std::byte* scratch) const {
  HWY_DYNAMIC_DISPATCH(split_double)(*this, lines, reinterpret_cast<double*>(scratch));
}

}  // namespace palimpsest
#endif
