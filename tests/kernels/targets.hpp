// SPDX-License-Identifier: Apache-2.0
// Runs tests on each instruction set of both the library and this processor.
#pragma once

#include <hwy/highway.h>

#include <cstdint>
#include <string>
#include <vector>

namespace palimpsest::testing {

/// Kernels use this instruction set while the object lives; 0: none, scalar loops.
class TargetScope {
 public:
  explicit TargetScope(std::int64_t target) {
    hwy::SetSupportedTargetsForTest(target == 0 ? HWY_SCALAR : target);
    hwy::GetChosenTarget().Update(target);
  }
  TargetScope(const TargetScope&) = delete;
  TargetScope& operator=(const TargetScope&) = delete;
  ~TargetScope() {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
  }
};

inline std::vector<std::int64_t> vector_targets() {
  std::vector<std::int64_t> targets;
  for (const std::int64_t target : {HWY_SSE4, HWY_AVX2, HWY_AVX3, HWY_NEON}) {
    if ((hwy::SupportedTargets() & target) != 0) targets.push_back(target);
  }
  return targets;
}

}  // namespace palimpsest::testing
