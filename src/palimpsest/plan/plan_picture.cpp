// SPDX-License-Identifier: Apache-2.0
// A plan as a picture: steps from left to right, the bytes of the arena from the bottom up.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "palimpsest/plan/plan.hpp"

namespace palimpsest {
namespace {

constexpr double kWidth = 960, kHeight = 420, kLeft = 90, kTop = 40, kBottom = 150;
constexpr std::size_t kLongestName = 28;
// From light to dark, distinguishable with colour blindness.
constexpr const char* kColours[] = {"#a6cee3", "#b2df8a", "#fdbf6f", "#cab2d6",
                                    "#ffff99", "#fb9a99", "#c7e9c0", "#d9d9d9"};

std::string escaped(std::string_view text) {
  std::string result;
  for (char c : text.substr(0, kLongestName)) {
    switch (c) {
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '&':
        result += "&amp;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return text.size() > kLongestName ? result + "..." : result;
}

std::string bytes_text(index_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 10240 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return fmt::format("{:.0f} {}", value, kUnits[unit]);
}

class Picture {
 public:
  explicit Picture(const Plan& plan)
      : plan_(plan),
        step_width_((kWidth - kLeft - 20) /
                    static_cast<double>(std::max<std::size_t>(plan.steps.size(), 1))),
        top_bytes_(static_cast<double>(std::max<index_t>(plan.arena_bytes, 1))) {}

  std::string draw() {
    text_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
        "{1}\" font-family=\"sans-serif\" font-size=\"11\">\n"
        "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n"
        "<text x=\"{2}\" y=\"20\" font-size=\"13\">arena {3}, results {4}, updates {5}; lower "
        "bound "
        "of the arena {6}, without reuse {7}</text>\n",
        kWidth, kTop + kHeight + kBottom, kLeft, bytes_text(plan_.arena_bytes),
        bytes_text(plan_.output_bytes), bytes_text(plan_.update_bytes),
        bytes_text(plan_.lower_bound_bytes), bytes_text(plan_.no_reuse_bytes));
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      if (plan_.buffers[b].kind == BufferKind::arena) add_buffer(b);
    }
    add_axes();
    return std::move(text_) + "</svg>\n";
  }

 private:
  double x_of(int step) const { return kLeft + static_cast<double>(step) * step_width_; }
  double y_of(index_t bytes) const {
    return kTop + kHeight * (1 - static_cast<double>(bytes) / top_bytes_);
  }

  void add_buffer(std::size_t number) {
    const PlannedBuffer& b = plan_.buffers[number];
    const double x = x_of(b.first_step), width = x_of(b.last_step + 1) - x;
    const double y = y_of(b.offset + b.bytes), height = y_of(b.offset) - y;
    text_ += fmt::format(
        "<g><title>{}: {} bytes at {}, steps {} to {}</title><rect x=\"{:.2f}\" y=\"{:.2f}\" "
        "width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\" stroke=\"#444\" stroke-width=\"0.6\"/>",
        escaped(b.name), b.bytes, b.offset, b.first_step, b.last_step, x, y, width, height,
        kColours[number % std::size(kColours)]);
    if (height >= 13 && width >= 40) {
      const auto fits = static_cast<std::size_t>(width / 7);
      text_ += fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\">{}</text>", x + 3, y + height / 2 + 4,
                           escaped(b.name.substr(0, fits)));
    }
    text_ += "</g>\n";
  }

  void add_axes() {
    for (int tick = 0; tick <= 4; ++tick) {
      const index_t bytes = plan_.arena_bytes * tick / 4;
      text_ += fmt::format(
          "<text x=\"{0}\" y=\"{1:.2f}\" text-anchor=\"end\">{2}</text><line x1=\"{3}\" "
          "y1=\"{4:.2f}\" "
          "x2=\"{5}\" y2=\"{4:.2f}\" stroke=\"#bbb\" stroke-width=\"0.5\"/>\n",
          kLeft - 6, y_of(bytes) + 4, bytes_text(bytes), kLeft, y_of(bytes), kWidth - 20);
    }
    // Shows as many names of steps as there is room for.
    const int every = std::max(1, static_cast<int>(13 / step_width_) + (step_width_ < 13 ? 1 : 0));
    for (int i = 0; i < static_cast<int>(plan_.steps.size()); i += every) {
      const double x = x_of(i) + step_width_ / 2 + 4, y = kTop + kHeight + 8;
      text_ += fmt::format(
          "<text x=\"{0:.2f}\" y=\"{1:.2f}\" transform=\"rotate(-60 {0:.2f} {1:.2f})\" "
          "text-anchor=\"end\">{2} {3}</text>\n",
          x, y + 4, i, escaped(plan_.steps[static_cast<std::size_t>(i)].node.op().name()));
    }
  }

  const Plan& plan_;
  double step_width_, top_bytes_;
  std::string text_;
};

}  // namespace

std::string Plan::to_svg() const { return Picture(*this).draw(); }

int Plan::peak_step() const {
  // By how much the live bytes change before each step.
  std::vector<index_t> change(steps.size() + 1);
  for (const PlannedBuffer& b : buffers) {
    const int first = std::max(b.first_step, 0);
    const int last = std::min(b.last_step, static_cast<int>(steps.size()) - 1);
    if (b.kind != BufferKind::arena || first > last) continue;
    change[static_cast<std::size_t>(first)] += b.bytes;
    change[static_cast<std::size_t>(last) + 1] -= b.bytes;
  }
  index_t live = 0, highest = -1;
  int where = -1;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    live += change[i];
    if (live <= highest) continue;
    highest = live;
    where = static_cast<int>(i);
  }
  return where;
}

}  // namespace palimpsest
