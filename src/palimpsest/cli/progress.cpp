// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace palimpsest::cli {
namespace {

constexpr index_t kBarWidth = 30;

}  // namespace

Progress::Progress(std::string label, index_t total)
    : label_(std::move(label)),
      total_(std::max<index_t>(1, total)),
      is_terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (is_drawn_) std::fputs("\r\x1b[K", stderr);
}

void Progress::update(index_t done, const std::string& note) {
  if (!is_terminal_) return;
  const index_t filled = std::clamp<index_t>(done * kBarWidth / total_, 0, kBarWidth);
  const std::string bar(static_cast<std::size_t>(filled), '#');
  std::fprintf(stderr, "\r%s [%-*s] %lld/%lld %s\x1b[K", label_.c_str(),
               static_cast<int>(kBarWidth), bar.c_str(), static_cast<long long>(done),
               static_cast<long long>(total_), note.c_str());
  std::fflush(stderr);
  is_drawn_ = true;
}

}  // namespace palimpsest::cli
