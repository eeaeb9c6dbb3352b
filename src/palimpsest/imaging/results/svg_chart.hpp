// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/base/dtype.hpp"

namespace PALIMPSEST_API palimpsest {

/// A line of a chart: values over 1, 2, 3, ...
struct ChartLine {
  std::string name;
  std::vector<double> values;
};

struct ChartOptions {
  std::string title = {}, x_label = {}, y_label = {};
  /// Values on a logarithmic axis; those that are not positive are left out.
  bool log_y = false;
  index_t width = 640, height = 320;
};

/// Lines with axes, ticks and a legend as an SVG element: no fonts, no scripts, no references.
///
/// Lines differ by dashes and by grays. Values that are not finite are left out; more than 2000
/// points of a line are thinned.
///
/// Errors   ValueError: a width or height below 100
std::string line_chart(const std::vector<ChartLine>& lines, const ChartOptions& options = {});

/// A bar of a chart, from the left.
struct ChartBar {
  std::string name;
  double value = 0;
  /// Stands behind the bar.
  std::string text = {};
};
/// Bars under each other as an SVG element; the largest takes the whole width.
std::string bar_chart(const std::vector<ChartBar>& bars, const ChartOptions& options = {});

/// A text with the characters that XML reserves replaced; bytes that it does not allow are left
/// out, and those beyond ASCII are shown as numbers.
std::string xml_text(const std::string& text);

}  // namespace palimpsest
