// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/imaging/results/svg_chart.hpp"
#include "palimpsest/tensor/tensor.hpp"

namespace PALIMPSEST_API palimpsest {

/// A step of a run: its peak bytes and its seconds.
struct ReportStage {
  std::string name;
  index_t bytes = 0;
  std::optional<double> seconds = {};
};

/// Contents of a report. Empty parts are left out.
struct ReportContents {
  std::string title;
  /// To repeat the run, word by word.
  std::vector<std::string> command_line;
  /// Names and values.
  std::vector<std::pair<std::string, std::string>> facts;
  /// Images (.., y, x), real or complex: of more than two axes the plane in the middle is shown.
  /// All of them, but an error, with one window.
  std::vector<std::pair<std::string, Tensor>> images;
  /// (y, x), shown with a window of its own.
  std::optional<Tensor> error;
  /// Lines over the iterations: objective, residual.
  std::vector<ChartLine> convergence;
  std::vector<ReportStage> stages;
  /// SVG of the memory over the time of one iteration, as Plan::to_svg() makes it.
  std::string memory_svg;
  /// NamedLinop::str() of the model.
  std::string operator_tree;
};

/// A page of one file: no scripts, nothing that is loaded; well-formed XML, at most 2 MB.
///
/// Images are PNG in base64, reduced to at most 512 points along an axis, and further while the
/// page is too large. A memory_svg that leaves no room is replaced by a note.
///
/// Errors   ShapeError: an image of fewer than two axes or without points
std::string html_report(const ReportContents& contents);

/// The image with at most `most` points along the last two axes: means of blocks.
Tensor reduced(const Tensor& image, index_t most);

/// Bytes as text of 64 characters, RFC 4648.
std::string base64(const std::string& bytes);

}  // namespace palimpsest
