// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/lower/lower.hpp"

#include <algorithm>

namespace palimpsest {

namespace {

bool uses_float64(const DeviceStep& step) {
  return std::ranges::any_of(step.launches, [](const PlannedLaunch& launch) {
    const std::string& text = launch.text->text;
    return text.find("f64") != std::string::npos || text.find("c64") != std::string::npos;
  });
}

}  // namespace

std::optional<DeviceStep> lower_step(const LowerRequest& request) {
  for (const auto family :
       {lower::lower_program, lower::lower_moves, lower::lower_sums, lower::lower_indexed,
        lower::lower_products, lower::lower_filters, lower::lower_generators}) {
    auto step = family(request);
    if (!step) continue;
    if (!request.facts.has_float64 && uses_float64(*step)) return std::nullopt;
    return step;
  }
  return std::nullopt;
}

}  // namespace palimpsest
