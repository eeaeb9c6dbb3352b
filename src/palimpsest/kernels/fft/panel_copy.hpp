// SPDX-License-Identifier: Apache-2.0
// Internal: copies panels of lines between arrays and dense scratch.
#pragma once

#include <complex>
#include <vector>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

/// Factors of the elements of a line: real, complex, or none.
template <class T>
struct LinePhases {
  std::vector<T> real;
  std::vector<std::complex<T>> complex;
};

/// A side of a panel: element j of line c lies at c * line + j * step.
struct PanelSide {
  index_t line, step;
};

/// to[c, j] = phases[j] * from[c, j] for `lines` lines of n elements. Rows that lie far apart are
/// prefetched.
///
/// Aliases  disjoint
template <class T>
void move_panel(const std::complex<T>* from, PanelSide in, std::complex<T>* to, PanelSide out,
                index_t lines, index_t n, const LinePhases<T>& phases);

}  // namespace palimpsest
