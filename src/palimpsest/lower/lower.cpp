// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/lower/lower.hpp"

#include <algorithm>

namespace palimpsest {

std::span<const LowerFamily> lower_families() {
  static constexpr LowerFamily kFamilies[] = {
      {"program", lower::lower_program},   {"moves", lower::lower_moves},
      {"sums", lower::lower_sums},         {"indexed", lower::lower_indexed},
      {"products", lower::lower_products},
  };
  return kFamilies;
}

namespace {

bool uses_float64(const DeviceStep& step) {
  return std::ranges::any_of(step.launches, [](const PlannedLaunch& launch) {
    const std::string& text = launch.text->text;
    return text.find("f64") != std::string::npos || text.find("c64") != std::string::npos;
  });
}

}  // namespace

std::optional<DeviceStep> lower_step(const LowerRequest& request) {
  for (const LowerFamily& family : lower_families()) {
    auto step = family.lower(request);
    if (!step) continue;
    if (!request.facts.has_float64 && uses_float64(*step)) return std::nullopt;
    return step;
  }
  return std::nullopt;
}

}  // namespace palimpsest
