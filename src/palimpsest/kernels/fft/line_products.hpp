// SPDX-License-Identifier: Apache-2.0
// Internal: products of the elements of lines with complex factors.
#pragma once

#include <complex>

#include "palimpsest/base/dtype.hpp"

namespace palimpsest {

/// y = f x for `count` elements of lines; element j has factor re[j] + i im[j] or, if conjugated,
/// re[j] - i im[j]. Products are rounded before they are added; bits are the same in both forms.
/// Aliases  y is x with the same strides, or disjoint
template <class T>
struct LineProduct {
  const std::complex<T>* x;
  std::complex<T>* y;
  const T *re, *im;
  index_t count;
  bool conjugates;
};
/// A dense line.
void multiply(const LineProduct<float>& p);
void multiply(const LineProduct<double>& p);

/// Rows of `width` elements of lines side by side.
template <class T>
struct RowProduct {
  LineProduct<T> line;
  index_t x_step, y_step, width;
};
void multiply(const RowProduct<float>& p);
void multiply(const RowProduct<double>& p);

}  // namespace palimpsest
