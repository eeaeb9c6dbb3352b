// SPDX-License-Identifier: Apache-2.0
// Internal: transposes panels of complex numbers between rows and dense lines.
#pragma once

#include <complex>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

/// A panel of complex64: `lines` lines of n elements. In the array, row j holds element j of all
/// lines. In scratch, lines are dense. Steps in elements.
struct PanelExchange {
  const std::complex<float>* from;
  std::complex<float>* to;
  index_t from_step, to_step;  // between rows in the array, between lines in scratch
  index_t lines, n;
  // Factors of the elements of a line: real, complex, or both null.
  const float* real = nullptr;
  const std::complex<float>* complex = nullptr;
};

/// Computes to = factors * from. Prefetches rows that lie far apart.
///
/// Aliases  disjoint
using ExchangePanel = void (*)(const PanelExchange& panel);

/// From rows to lines, and back; null without vectors of four numbers. The bits are those of plain
/// loops: products are rounded before they are added.
struct PanelExchanges {
  ExchangePanel gather = nullptr, scatter = nullptr;
};
PanelExchanges panel_exchanges();

}  // namespace palimpsest
