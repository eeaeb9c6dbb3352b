// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/results/report.hpp"

#include <cctype>

#include "palimpsest/imaging/prelude.hpp"
#include "palimpsest/imaging/results/image.hpp"
#include "palimpsest/imaging/results/montage.hpp"
#include "palimpsest/io/png.hpp"

namespace palimpsest {
namespace {

constexpr std::size_t kMostBytes = 2000000;
constexpr index_t kMostPoints = 512, kLeastPoints = 32;

constexpr const char* kStyle =
    "body{font-family:sans-serif;margin:2em auto;max-width:72em;color:#111}"
    "table{border-collapse:collapse}td{padding:.15em 1em .15em 0;vertical-align:top}"
    "td:first-child{color:#555}figure{display:inline-block;margin:0 1em 1em 0}"
    "figcaption{font-size:.9em;color:#555}img{image-rendering:pixelated;min-width:22em;max-width:"
    "100%}"
    "pre{background:#f4f4f4;padding:.6em;overflow:auto}";

Tensor plane_of(const Tensor& image) {
  if (image.rank() < 2 || image.numel() == 0) {
    throw ShapeError(fmt::format("[report] got an image of the shape {}, expected (.., y, x)",
                                 to_string(image.shape())));
  }
  Tensor plane = image;
  while (plane.rank() > 2) plane = plane.select(0, plane.shape(0) / 2);
  return magnitude(plane);
}

std::string figure(const std::string& caption, const Tensor& plane, double white, index_t most) {
  const std::string png =
      png_bytes(reduced(plane, most), {.window_low = 0.0, .window_high = white});
  return fmt::format(
      "<figure><img alt=\"{0}\" src=\"data:image/png;base64,{1}\"/><figcaption>{0}</figcaption>"
      "</figure>\n",
      xml_text(caption), base64(png));
}

std::string images_text(const ReportContents& contents, index_t most) {
  if (contents.images.empty() && !contents.error) return {};
  double white = 0;
  for (const auto& [name, image] : contents.images) {
    white = std::max(white, white_level(plane_of(image)));
  }
  std::string text = "<h2>Images</h2>\n<div>\n";
  for (const auto& [name, image] : contents.images) {
    text += figure(name, plane_of(image), white, most);
  }
  if (contents.error) {
    const Tensor plane = plane_of(*contents.error);
    text += figure("error, window of its own", plane, white_level(plane), most);
  }
  return text + "</div>\n";
}

std::string table_text(const ReportContents& contents) {
  if (contents.facts.empty()) return {};
  std::string text = "<h2>Facts</h2>\n<table>\n";
  for (const auto& [name, value] : contents.facts) {
    text += fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", xml_text(name), xml_text(value));
  }
  return text + "</table>\n";
}

std::string convergence_text(const ReportContents& contents) {
  std::vector<ChartLine> lines;
  for (const ChartLine& line : contents.convergence) {
    const bool has_values = std::any_of(line.values.begin(), line.values.end(),
                                        [](double v) { return std::isfinite(v); });
    if (has_values) lines.push_back(line);
  }
  if (lines.empty()) return {};
  return "<h2>Convergence</h2>\n" +
         line_chart(lines, {.title = lines.size() == 1 ? lines.front().name : "",
                            .x_label = "iteration",
                            .log_y = true});
}

std::string stages_text(const ReportContents& contents) {
  if (contents.stages.empty()) return {};
  std::vector<ChartBar> bars;
  for (const ReportStage& stage : contents.stages) {
    std::string text = fmt::format("{} bytes", stage.bytes);
    if (stage.seconds) text += fmt::format(", {:.2f} s", *stage.seconds);
    bars.push_back({stage.name, static_cast<double>(stage.bytes), text});
  }
  return "<h2>Memory</h2>\n" + bar_chart(bars, {.title = "most bytes held in each stage"});
}

// The element alone: a declaration or a document type cannot stand inside a page.
std::string svg_element(const std::string& svg) {
  const std::size_t from = svg.find("<svg"), to = svg.rfind("</svg>");
  if (from == std::string::npos || to == std::string::npos) return {};
  return svg.substr(from, to + 6 - from) + "\n";
}

// A word as a shell reads it.
std::string shell_word(const std::string& word) {
  const bool is_plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("-_./:=,+@%").find(char(c)) != std::string_view::npos;
  });
  if (is_plain) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string command_text(const ReportContents& contents) {
  if (contents.command_line.empty()) return {};
  std::string line;
  for (const std::string& word : contents.command_line) {
    line += (line.empty() ? "" : " ") + shell_word(word);
  }
  return "<h2>Command</h2>\n<pre>" + xml_text(line) + "</pre>\n";
}

std::string page(const ReportContents& contents, index_t most_points, bool has_memory) {
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n"
      "<meta charset=\"utf-8\"/>\n<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n"
      "<h1>{0}</h1>\n",
      xml_text(contents.title), kStyle);
  text += images_text(contents, most_points) + table_text(contents) + convergence_text(contents);
  text += stages_text(contents);
  if (!contents.memory_svg.empty()) {
    text += "<h2>Memory over one iteration</h2>\n";
    text +=
        has_memory
            ? svg_element(contents.memory_svg)
            : "<p>The picture is too large for this page: see the plan in a file of its own.</p>\n";
  }
  if (!contents.operator_tree.empty()) {
    text += "<h2>Operator</h2>\n<pre>" + xml_text(contents.operator_tree) + "</pre>\n";
  }
  return text + command_text(contents) + "</body>\n</html>\n";
}

}  // namespace

Tensor reduced(const Tensor& image, index_t most) {
  const index_t ny = image.shape(-2), nx = image.shape(-1);
  const index_t step = (std::max(ny, nx) + most - 1) / most;
  const Tensor values = image.to(DType::float32).contiguous();
  if (step <= 1) return values;
  const index_t to_y = (ny + step - 1) / step, to_x = (nx + step - 1) / step;
  Tensor result = Tensor::zeros({to_y, to_x}, DType::float32);
  float* out = result.mutable_data<float>();
  for (index_t y = 0; y < to_y; ++y) {
    for (index_t x = 0; x < to_x; ++x) {
      double sum = 0;
      index_t count = 0;
      for (index_t v = y * step; v < std::min(ny, (y + 1) * step); ++v) {
        for (index_t u = x * step; u < std::min(nx, (x + 1) * step); ++u, ++count) {
          sum += double{values.data<float>()[v * nx + u]};
        }
      }
      out[y * to_x + x] = static_cast<float>(sum / static_cast<double>(count));
    }
  }
  return result;
}

std::string base64(const std::string& bytes) {
  constexpr const char* kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      const std::size_t at = i + k;
      group = group << 8 | (at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      const bool is_padding = i + k > bytes.size();
      text += is_padding ? '=' : kLetters[group >> (18 - 6 * k) & 63];
    }
  }
  return text;
}

std::string html_report(const ReportContents& contents) {
  std::string text;
  bool has_memory = contents.memory_svg.size() < kMostBytes / 2;
  for (index_t most = kMostPoints; most >= kLeastPoints; most /= 2) {
    text = page(contents, most, has_memory);
    if (text.size() <= kMostBytes) return text;
  }
  // The large rest is text: the operator tree or the facts.
  ReportContents shorter = contents;
  constexpr std::size_t kLongest = 100000;
  if (shorter.operator_tree.size() > kLongest) shorter.operator_tree.resize(kLongest);
  shorter.memory_svg.clear();
  if (shorter.facts.size() > 1000) shorter.facts.resize(1000);
  if (shorter.images.size() > 100) shorter.images.resize(100);
  return page(shorter, kLeastPoints, false);
}

}  // namespace palimpsest
