// SPDX-License-Identifier: Apache-2.0
// The passes of SplitTransform in single precision, once per instruction set.
#include "palimpsest/copy/loop_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "palimpsest/kernels/fft/split_single.cpp"
#define HWY_DISABLED_TARGETS PALIMPSEST_NO_TILES_FOR
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "palimpsest/kernels/fft/split_passes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace palimpsest {
namespace HWY_NAMESPACE {

void split_single(const SplitTransform<float>& transform, const TransformLines<float>& lines,
                  float* rows) {
  run_split(transform, lines, rows);
}

}  // namespace HWY_NAMESPACE
}  // namespace palimpsest
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace palimpsest {

HWY_EXPORT(split_single);

template <>
void SplitTransform<float>::run(const TransformLines<float>& lines, std::byte* scratch) const {
  HWY_DYNAMIC_DISPATCH(split_single)(*this, lines, reinterpret_cast<float*>(scratch));
}

}  // namespace palimpsest
#endif
