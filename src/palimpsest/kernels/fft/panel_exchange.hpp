// SPDX-License-Identifier: Apache-2.0
// Internal: neighbouring lines of complex numbers, made dense and brought back.
#pragma once

#include <complex>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

/// A panel of complex64: `lines` lines of n elements. In the array the lines lie side by side: row
/// j has element j of all of them. In scratch they lie one after the other. Steps in elements.
struct PanelExchange {
  const std::complex<float>* from;
  std::complex<float>* to;
  index_t from_step, to_step;  // between rows in the array, between lines in scratch
  index_t lines, n;
  // Factors of the elements of a line; one of them, or none.
  const float* real = nullptr;
  const std::complex<float>* complex = nullptr;
};

/// to = factors * from. Rows that lie far apart are asked for in advance.
///
/// Aliases  disjoint
using ExchangePanel = void (*)(const PanelExchange& panel);

/// From rows to lines, and back; null where there are no vectors of four numbers. Their bits are
/// those of plain loops: products are rounded before they are added.
struct PanelExchanges {
  ExchangePanel gather = nullptr, scatter = nullptr;
};
PanelExchanges panel_exchanges();

}  // namespace palimpsest
