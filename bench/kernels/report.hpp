// SPDX-License-Identifier: Apache-2.0
// Sections of the report on kernels; each prints a table.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "pairs.hpp"

namespace palimpsest::bench {

struct Options {
  std::size_t smallest = 10'000, largest = 100'000'000;  // elements
  std::string python;                                    // with NumPy and numexpr; empty: none
  std::string script;                                    // run by `python`
  std::string filter;                                    // only sections whose name contains it
};

void report_limits(const Options& options);
void report_orders(const Options& options);
void report_elementwise(const Options& options);
void report_copies(const Options& options);
void report_sums(const Options& options);
void report_fused_sums(const Options& options);
void report_transforms(const Options& options);

/// 1 if processor time is counted, else 2.
inline int most_threads() { return use_processor_time ? 1 : 2; }

/// Runs body(begin, end) on `threads` threads, on pieces of at least `grain`.
void on_threads(int threads, std::size_t n, std::size_t grain,
                const std::function<void(std::size_t, std::size_t)>& body);
/// Runs f with `threads` threads for kernels.
void with_threads(int threads, const std::function<void()>& f);

}  // namespace palimpsest::bench
