// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "palimpsest/io/report.hpp"

namespace palimpsest::cli {
namespace {

constexpr index_t kBarWidth = 30;
constexpr std::size_t kIterations = 8;  // whose median counts
constexpr double kSecondsBetweenLines = 1;

}  // namespace

Progress::Progress(bool as_json, std::string label, index_t total, index_t announced_bytes)
    : as_json_(as_json),
      is_terminal_(isatty(STDERR_FILENO) == 1),
      label_(std::move(label)),
      total_(std::max<index_t>(1, total)),
      announced_bytes_(announced_bytes) {}

Progress::~Progress() {
  if (!is_printed_) print_json();
  if (is_drawn_) std::fputs("\r\x1b[K", stderr);
}

double Progress::seconds_left() const {
  if (seconds_.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> sorted = seconds_;
  const auto middle = sorted.begin() + std::ssize(sorted) / 2;
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle * static_cast<double>(std::max<index_t>(total_ - done_, 0));
}

void Progress::update(index_t done, double residual, index_t peak_bytes) {
  const double seconds = iteration_.lap();
  // The first one follows reading and coil maps.
  if (std::exchange(done_, done) > 0) seconds_.push_back(seconds);
  if (seconds_.size() > kIterations) seconds_.erase(seconds_.begin());
  residual_ = residual;
  peak_bytes_ = peak_bytes;
  if (!as_json_) {
    if (is_terminal_) draw();
    return;
  }
  is_printed_ = false;
  if (done_ == 1 || since_line_.seconds() >= kSecondsBetweenLines) print_json();
}

void Progress::draw() {
  const index_t filled = std::clamp<index_t>(done_ * kBarWidth / total_, 0, kBarWidth);
  const double left = seconds_left();
  fmt::print(stderr, "\r{} [{:<{}}] {}/{} residual {:.1e}{}, {:.0f} of {:.0f} MB\x1b[K", label_,
             std::string(static_cast<std::size_t>(filled), '#'), kBarWidth, done_, total_,
             residual_, std::isnan(left) ? "" : fmt::format(", {:.0f} s left", left),
             1e-6 * static_cast<double>(peak_bytes_), 1e-6 * static_cast<double>(announced_bytes_));
  std::fflush(stderr);
  is_drawn_ = true;
}

void Progress::print_json() {
  fmt::print(stderr, "{}",
             JsonReport()
                 .set("stage", "solve")
                 .set("iteration", done_)
                 .set("iterations", total_)
                 .set("residual", residual_)
                 .set("seconds_left", seconds_left())
                 .set("peak_bytes", peak_bytes_)
                 .set("announced_peak_bytes", announced_bytes_)
                 .line());
  std::fflush(stderr);
  is_printed_ = true;
  since_line_.lap();
}

}  // namespace palimpsest::cli
