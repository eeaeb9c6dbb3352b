// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/imaging/results/svg_chart.hpp"

#include "palimpsest/imaging/prelude.hpp"

namespace palimpsest {
namespace {

constexpr double kLeft = 64, kRight = 16, kTop = 32, kBottom = 44;
constexpr std::size_t kMostChartPoints = 2000;
constexpr const char* kStrokes[] = {"#000", "#777", "#444", "#999"};
constexpr const char* kDashes[] = {"", "6 3", "2 3", "10 3 2 3"};

struct Range {
  double low = 0, high = 1;
};

void check_size(const ChartOptions& options) {
  if (options.width >= 100 && options.height >= 100) return;
  throw ValueError(fmt::format("[chart] got {} x {} pixels, expected at least 100 x 100",
                               options.width, options.height));
}

bool is_shown(double v, bool log_y) { return std::isfinite(v) && (!log_y || v > 0); }

Range range_of(const std::vector<ChartLine>& lines, bool log_y) {
  Range range{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
  for (const ChartLine& line : lines) {
    for (const double v : line.values) {
      if (!is_shown(v, log_y)) continue;
      range.low = std::min(range.low, v);
      range.high = std::max(range.high, v);
    }
  }
  if (!(range.low <= range.high)) return log_y ? Range{0.1, 1} : Range{0, 1};
  if (log_y) {
    range = {std::pow(10, std::floor(std::log10(range.low))),
             std::pow(10, std::ceil(std::log10(range.high)))};
    if (!(range.low > 0)) range.low = std::numeric_limits<double>::min();
    if (!std::isfinite(range.high)) range.high = std::numeric_limits<double>::max();
    if (range.low == range.high) range.high *= 10;
    return range;
  }
  if (range.low > 0) range.low = 0;
  if (range.low == range.high) range.high = range.low + 1;
  return range;
}

// A step of 1, 2 or 5 times a power of ten that gives about `n` ticks.
double tick_step(double span, double n) {
  const double raw = span / n, power = std::pow(10, std::floor(std::log10(raw)));
  const double lead = raw / power;
  return power * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
}

std::vector<double> ticks_of(const Range& range, bool log_y) {
  std::vector<double> ticks;
  if (log_y) {
    const int low = static_cast<int>(std::lround(std::log10(range.low)));
    const int high = static_cast<int>(std::lround(std::log10(range.high)));
    const int step = std::max(1, (high - low) / 6);
    for (int e = low; e <= high; e += step) ticks.push_back(std::pow(10, e));
    return ticks;
  }
  const double step = tick_step(range.high - range.low, 5);
  if (!std::isfinite(step) || !(step > 0)) return {range.low, range.high};
  for (double v = std::ceil(range.low / step) * step; v <= range.high + step / 1000; v += step) {
    ticks.push_back(std::abs(v) < step / 1000 ? 0 : v);
  }
  return ticks;
}

std::string open_svg(const ChartOptions& o) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n"
      "<text x=\"{2}\" y=\"20\" font-size=\"14\">{3}</text>\n",
      o.width, o.height, kLeft, xml_text(o.title));
}

class ChartFrame {
 public:
  ChartFrame(const ChartOptions& o, Range y, double n_x) : o_(o), y_(y), n_x_(n_x) {}

  double x(double i) const {
    const double width = static_cast<double>(o_.width) - kLeft - kRight;
    return kLeft + width * (n_x_ > 1 ? (i - 1) / (n_x_ - 1) : 0.5);
  }
  double y(double v) const {
    const double height = static_cast<double>(o_.height) - kTop - kBottom;
    const double part =
        o_.log_y ? (std::log10(v) - std::log10(y_.low)) / (std::log10(y_.high) - std::log10(y_.low))
                 : (v / 2 - y_.low / 2) / (y_.high / 2 - y_.low / 2);
    return kTop + height * (1 - part);
  }
  std::string axes() const {
    std::string text;
    const double right = static_cast<double>(o_.width) - kRight, bottom = y(y_.low);
    for (const double v : ticks_of(y_, o_.log_y)) {
      text += fmt::format(
          "<line x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\" stroke=\"#ddd\"/>\n"
          "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:.3g}</text>\n",
          kLeft, y(v), right, y(v), kLeft - 6, y(v) + 4, v);
    }
    const double step = std::max(1.0, tick_step(std::max(n_x_ - 1, 1.0), 8));
    for (double i = 0; i <= n_x_; i += step) {
      const double at = std::max(i, 1.0);
      text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:g}</text>\n",
                          x(at), bottom + 16, at);
    }
    text += fmt::format(
        "<path d=\"M{0} {1} V{2:.1f} H{3}\" fill=\"none\" stroke=\"#000\"/>\n"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n"
        "<text x=\"8\" y=\"{6}\">{7}</text>\n",
        kLeft, kTop, bottom, right, bottom + 34, xml_text(o_.x_label), kTop - 2,
        xml_text(o_.y_label));
    return text;
  }

 private:
  const ChartOptions& o_;
  Range y_;
  double n_x_;
};

std::string polyline(const ChartLine& line, const ChartFrame& frame, bool log_y,
                     std::size_t style) {
  std::string points;
  const std::size_t step = line.values.size() / kMostChartPoints + 1;
  for (std::size_t i = 0; i < line.values.size(); i += step) {
    if (!is_shown(line.values[i], log_y)) continue;
    points +=
        fmt::format("{:.1f},{:.1f} ", frame.x(static_cast<double>(i + 1)), frame.y(line.values[i]));
  }
  return fmt::format(
      "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" "
      "stroke-dasharray=\"{}\"/>\n",
      points, kStrokes[style % std::size(kStrokes)], kDashes[style % std::size(kDashes)]);
}

std::string legend(const std::vector<ChartLine>& lines, const ChartOptions& o) {
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const double y = kTop + 14 * static_cast<double>(i) + 8;
    const double x = static_cast<double>(o.width) - 150;
    text += fmt::format(
        "<line x1=\"{0}\" y1=\"{1}\" x2=\"{2}\" y2=\"{1}\" stroke=\"{3}\" stroke-width=\"1.5\" "
        "stroke-dasharray=\"{4}\"/>\n<text x=\"{5}\" y=\"{6}\">{7}</text>\n",
        x, y, x + 30, kStrokes[i % std::size(kStrokes)], kDashes[i % std::size(kDashes)], x + 36,
        y + 4, xml_text(lines[i].name));
  }
  return text;
}

}  // namespace

std::string xml_text(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default: {
        const auto byte = static_cast<unsigned char>(c);
        const bool is_allowed = byte >= 0x20 || c == '\n' || c == '\t';
        // Bytes beyond ASCII may be no UTF-8: they are shown as numbers.
        if (byte >= 0x7f) {
          result += fmt::format("\\x{:02x}", byte);
        } else if (is_allowed) {
          result += c;
        }
      }
    }
  }
  return result;
}

std::string line_chart(const std::vector<ChartLine>& lines, const ChartOptions& options) {
  check_size(options);
  std::size_t longest = 0;
  for (const ChartLine& line : lines) longest = std::max(longest, line.values.size());
  const ChartFrame frame(options, range_of(lines, options.log_y), static_cast<double>(longest));
  std::string text = open_svg(options) + frame.axes();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    text += polyline(lines[i], frame, options.log_y, i);
  }
  if (lines.size() > 1) text += legend(lines, options);
  return text + "</svg>\n";
}

std::string bar_chart(const std::vector<ChartBar>& bars, const ChartOptions& options) {
  constexpr double kRow = 22, kNames = 180, kTexts = 150;
  ChartOptions o = options;
  o.height = static_cast<index_t>(kTop + kRow * static_cast<double>(bars.size()) + 8);
  o.height = std::max<index_t>(o.height, 100);
  check_size(o);
  double most = 0;
  for (const ChartBar& bar : bars) {
    if (std::isfinite(bar.value)) most = std::max(most, bar.value);
  }
  std::string text = open_svg(o);
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const double y = kTop + kRow * static_cast<double>(i);
    const double whole = static_cast<double>(o.width) - kNames - kTexts;
    const bool is_good = std::isfinite(bars[i].value) && bars[i].value > 0 && most > 0;
    const double width = is_good ? whole * bars[i].value / most : 0;
    text += fmt::format(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n"
        "<rect x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" fill=\"#888\"/>\n"
        "<text x=\"{:.1f}\" y=\"{}\">{}</text>\n",
        kNames - 8, y + 14, xml_text(bars[i].name), kNames, y + 2, width, kRow - 6,
        kNames + width + 6, y + 14, xml_text(bars[i].text));
  }
  return text + "</svg>\n";
}

}  // namespace palimpsest
