// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/fft/chirp_transform.hpp"

#include <algorithm>
#include <limits>

#include "palimpsest/kernels/fft/line_products.hpp"
#include "palimpsest/kernels/fft/panel_weights.hpp"
#include "palimpsest/kernels/fft/wide.hpp"

namespace palimpsest {
namespace {

// The smallest 2^k, 3 2^k, 5 2^k or 7 2^k from 64 on that is long enough.
index_t padded_length(index_t n) {
  index_t best = std::numeric_limits<index_t>::max();
  for (const index_t odd : {1, 3, 5, 7}) {
    index_t m = 64 * odd;
    while (m < 2 * n - 1) m *= 2;
    best = std::min(best, m);
  }
  return best;
}

}  // namespace

template <class T>
ChirpTransform<T>::ChirpTransform(index_t n)
    : LineTransform<T>(n), inner_(LineTransform<T>::find_or_make(padded_length(n))) {
  const index_t m = inner_->size();
  // In double precision for every T.
  const auto transform = LineTransform<double>::find_or_make(m);
  const AlignedMemory memory(static_cast<std::size_t>(m) * sizeof(std::complex<double>));
  const AlignedMemory scratch(transform->scratch_bytes(LineLayout::dense, 1));
  auto* const b = reinterpret_cast<std::complex<double>*>(memory.data());
  std::fill_n(b, m, 0.0);
  index_t square = 0;  // j^2 mod 2 n
  for (index_t j = 0; j < n; square = (square + 2 * j + 1) % (2 * n), ++j) {
    const WideComplex w = root_of_unity(square, 2 * n, true);
    chirp_re_.push_back(static_cast<T>(w.re));
    chirp_im_.push_back(static_cast<T>(w.im));
    b[j] = b[(m - j) % m] = {static_cast<double>(w.re), static_cast<double>(-w.im)};
  }
  transform->execute({b, b, m, 1, m, 1, 1, m, m}, scratch.data());
  for (index_t k = 0; k < m; ++k) {
    spectrum_re_.push_back(static_cast<T>(b[k].real() / static_cast<double>(m)));
    spectrum_im_.push_back(static_cast<T>(b[k].imag() / static_cast<double>(m)));
  }
}

template <class T>
std::size_t ChirpTransform<T>::bytes() const {
  return 2 * (chirp_re_.size() + spectrum_re_.size()) * sizeof(T) + inner_->bytes();
}

template <class T>
index_t ChirpTransform<T>::distance() const {
  return scratch_distance<T>(inner_->size());
}

template <class T>
index_t ChirpTransform<T>::lines_together(LineLayout layout) const {
  return inner_->lines_together(layout);
}

template <class T>
std::size_t ChirpTransform<T>::scratch_bytes(LineLayout layout, index_t lines) const {
  const index_t some = std::min(lines, lines_together(layout));
  const index_t numbers =
      layout == LineLayout::rows ? inner_->size() * row_width(lines) : distance() * some;
  return static_cast<std::size_t>((numbers * index_t{sizeof(std::complex<T>)} + 63) / 64 * 64) +
         inner_->scratch_bytes(layout, layout == LineLayout::rows ? lines : some);
}

template <class T>
void ChirpTransform<T>::execute_rows(const TransformLines<T>& all, std::complex<T>* padded,
                                     std::byte* scratch) const {
  const index_t m = inner_->size(), lines = all.lines, width = row_width(lines);
  const T *const re = chirp_re_.data(), *const im = chirp_im_.data();
  const bool back = !all.forward;
  multiply(RowProduct<T>{{all.x, padded, re, im, all.given, back}, all.x_step, width, lines});
  const TransformLines<T> inner{padded, padded, 1, width, 1, width, lines, all.given, m, true};
  inner_->execute(inner, scratch);
  multiply(RowProduct<T>{
      {padded, padded, spectrum_re_.data(), spectrum_im_.data(), m, back}, width, width, lines});
  TransformLines<T> outer = inner;
  outer.given = m;
  outer.taken = all.taken;
  outer.forward = false;
  inner_->execute(outer, scratch);
  multiply(RowProduct<T>{{padded, all.y, re, im, all.taken, back}, width, all.y_step, lines});
}

template <class T>
void ChirpTransform<T>::execute_dense(const TransformLines<T>& all, std::complex<T>* padded,
                                      std::byte* scratch) const {
  const index_t n = this->size(), m = inner_->size(), far = distance();
  const T *const re = chirp_re_.data(), *const im = chirp_im_.data();
  const bool back = !all.forward;
  for (index_t c = 0; c < all.lines; ++c) {
    std::complex<T>* const line = padded + c * far;
    multiply(LineProduct<T>{all.x + c * all.x_line, line, re, im, n, back});
    std::fill(line + n, line + m, std::complex<T>(0));
  }
  TransformLines<T> inner{padded, padded, far, 1, far, 1, all.lines, m, m, true};
  inner_->execute(inner, scratch);
  for (index_t c = 0; c < all.lines; ++c) {
    std::complex<T>* const line = padded + c * far;
    multiply(LineProduct<T>{line, line, spectrum_re_.data(), spectrum_im_.data(), m, back});
  }
  inner.forward = false;
  inner_->execute(inner, scratch);
  for (index_t c = 0; c < all.lines; ++c) {
    multiply(LineProduct<T>{padded + c * far, all.y + c * all.y_line, re, im, n, back});
  }
}

template <class T>
void ChirpTransform<T>::execute(const TransformLines<T>& all, std::byte* scratch) const {
  auto* const padded = reinterpret_cast<std::complex<T>*>(scratch);
  const LineLayout layout = all.x_step == 1 ? LineLayout::dense : LineLayout::rows;
  std::byte* const inner =
      scratch + scratch_bytes(layout, all.lines) - inner_->scratch_bytes(layout, all.lines);
  if (layout == LineLayout::rows) return execute_rows(all, padded, inner);
  const index_t together = lines_together(layout);
  for (index_t c = 0; c < all.lines; c += together) {
    TransformLines<T> some = all;
    some.x += c * all.x_line;
    some.y += c * all.y_line;
    some.lines = std::min(together, all.lines - c);
    execute_dense(some, padded, inner);
  }
}

template class ChirpTransform<float>;
template class ChirpTransform<double>;

}  // namespace palimpsest
