// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/inspect/debug/patterns.hpp"

#include <algorithm>

namespace palimpsest {
namespace {

constexpr std::string_view kAll = "ALL";

bool is_wanted(const DebugOptions& options, std::string_view name) {
  return std::any_of(options.preallocated.begin(), options.preallocated.end(),
                     [&](const std::string& word) { return word == name || word == kAll; });
}

Destination dense_place(const Layout& layout) { return {layout, 0}; }

Destination column_major(const Layout& layout) {
  Destination result = dense_place(layout);
  index_t stride = 1;
  for (std::size_t k = 0; k < layout.extents.size(); ++k) {
    result.layout.strides[k] = stride;
    stride *= std::max<index_t>(layout.extents[k], 1);
  }
  return result;
}

Destination shifted(const Layout& layout) {
  return {layout, static_cast<index_t>(item_size(layout.dtype))};
}

// Axis -1 - k of the result has step 2 if bit 2k of `choice` is set, and is reversed if bit 2k + 1
// is.
Destination strided(const Layout& layout, unsigned choice, std::size_t axes) {
  Destination result = dense_place(layout);
  index_t stride = 1;
  for (std::size_t k = 0; k < layout.extents.size(); ++k) {
    const std::size_t axis = layout.extents.size() - 1 - k;
    const unsigned bits = k < axes ? choice >> (2 * k) & 3U : 0U;
    const index_t step = (bits & 1U) != 0 ? 2 : 1;
    result.layout.strides[axis] = (bits & 2U) != 0 ? -stride * step : stride * step;
    stride *= step * std::max<index_t>(layout.extents[axis], 1);
  }
  return result;
}

std::string strided_name(unsigned choice, std::size_t axes) {
  std::string steps;
  for (std::size_t k = axes; k-- > 0;) {
    const unsigned bits = choice >> (2 * k) & 3U;
    steps += std::string((bits & 2U) != 0 ? "-" : "") + ((bits & 1U) != 0 ? "2" : "1") +
             (k > 0 ? ", " : "");
  }
  return "strided (" + steps + ")";
}

Destination resized(const Layout& layout, index_t by) {
  Layout other = layout;
  for (index_t& extent : other.extents) extent = std::max<index_t>(extent + by, 0);
  return {Layout::dense(other.dtype, other.extents), 0};
}

}  // namespace

std::vector<Pattern> patterns_for(const DebugOptions& options, std::span<const Layout> layouts) {
  std::vector<Pattern> patterns;
  const auto add = [&](std::string name, auto make) {
    Pattern pattern;
    pattern.name = std::move(name);
    for (const Layout& layout : layouts) pattern.destinations.push_back(make(layout));
    patterns.push_back(std::move(pattern));
  };
  std::size_t rank = 0;
  for (const Layout& layout : layouts) rank = std::max(rank, layout.extents.size());
  for (const char* const name : {"initial", "previous", "c_contiguous"}) {
    if (!is_wanted(options, name)) continue;
    add(name, dense_place);
    patterns.back().keeps_previous = patterns.back().name == "previous";
  }
  if (is_wanted(options, "f_contiguous") && rank > 1) add("f_contiguous", column_major);
  if (is_wanted(options, "strided")) {
    const std::size_t axes =
        std::min(rank, static_cast<std::size_t>(std::max(options.preallocated_ndim, 0)));
    for (unsigned choice = 1; choice < 1U << (2 * axes); ++choice) {
      add(strided_name(choice, axes),
          [&](const Layout& layout) { return strided(layout, choice, axes); });
    }
  }
  if (is_wanted(options, "unaligned")) add("unaligned", shifted);
  if (is_wanted(options, "wrong_size") && rank > 0) {
    for (const index_t by : {1, -1}) {
      add(by > 0 ? "wrong_size (longer)" : "wrong_size (shorter)",
          [&](const Layout& layout) { return resized(layout, by); });
      patterns.back().is_wrong_size = true;
    }
  }
  return patterns;
}

void check_pattern_names(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (name == kAll) continue;
    if (std::find(kAllPatterns.begin(), kAllPatterns.end(), name) != kAllPatterns.end()) continue;
    std::string list;
    for (const std::string_view known : kAllPatterns) list += std::string(known) + ", ";
    throw ValueError("[DebugMode] preallocated: got '" + name + "', expected " + list + "or ALL");
  }
}

}  // namespace palimpsest
