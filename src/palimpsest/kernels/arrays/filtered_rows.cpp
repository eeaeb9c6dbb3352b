// SPDX-License-Identifier: Apache-2.0
// Terms are added in the order of stencil.cpp: tap by tap along the last axis, else element by
// element of the line.
#include "palimpsest/kernels/arrays/filtered_rows.hpp"

#include "palimpsest/kernels/arrays/real_of.hpp"

namespace palimpsest {
namespace {

// n adjacent results as sums of terms. The first two terms are added in one pass.
template <class T>
class Stretch {
 public:
  Stretch(T* to, index_t n) : to_(to), n_(n) {}
  // Adds the tap times the elements at x, `step` bytes apart.
  void add(double tap, const std::byte* x, index_t step) {
    const Term term{static_cast<Real>(tap), x, step};
    if (n_terms_++ == 0) {
      waiting_ = term;
    } else if (n_terms_ == 2) {
      two(waiting_, term);
    } else {
      for_elements(term, [&](index_t l, T value) { to_[l] += term.tap * value; });
    }
  }
  // Called after the last term.
  void close() {
    if (n_terms_ == 0) std::fill_n(to_, n_, T(0));
    if (n_terms_ == 1) {
      for_elements(waiting_, [&](index_t l, T value) { to_[l] = T(0) + waiting_.tap * value; });
    }
  }

 private:
  using Real = typename RealOf<T>::type;
  struct Term {
    Real tap;
    const std::byte* x;
    index_t step;
  };

  static T at(const std::byte* x) { return *reinterpret_cast<const T*>(x); }

  template <class Body>
  void for_elements(const Term& term, Body&& body) const {
    if (term.step == sizeof(T)) {
      const T* const x = reinterpret_cast<const T*>(term.x);
      for (index_t l = 0; l < n_; ++l) body(l, x[l]);
    } else {
      for (index_t l = 0; l < n_; ++l) body(l, at(term.x + l * term.step));
    }
  }

  void two(const Term& a, const Term& b) {
    if (a.step == sizeof(T) && b.step == sizeof(T)) {
      const T *const x = reinterpret_cast<const T*>(a.x), *const y =
                                                              reinterpret_cast<const T*>(b.x);
      const Real s = a.tap, t = b.tap;
      T* const to = to_;
      for (index_t l = 0; l < n_; ++l) to[l] = (T(0) + s * x[l]) + t * y[l];
    } else {
      for (index_t l = 0; l < n_; ++l) {
        to_[l] = (T(0) + a.tap * at(a.x + l * a.step)) + b.tap * at(b.x + l * b.step);
      }
    }
  }

  T* to_;
  index_t n_;
  int n_terms_ = 0;
  Term waiting_ = {};
};

}  // namespace

FilteredRows::FilteredRows(const Stencil& stencil, bool is_adjoint, const ConstView& x)
    : line_(stencil, x.extents[stencil.axis], x.extents[stencil.axis], 0),
      is_adjoint_(is_adjoint),
      dtype_(x.dtype),
      plain_begin_(line_.inner_begin()),
      plain_end_(line_.inner_end()) {
  assert(stencil.step == 1);
  loop_.add_operand(x.data, {}, item_size(x.dtype));
  for (std::size_t k = 0; k < x.rank(); ++k) {
    if (k == stencil.axis) axis_ = loop_.rank;
    if (k != stencil.axis && x.extents[k] == 1) continue;
    LoopAxis<1>& axis = loop_.at(loop_.rank++);
    axis.extent = x.extents[k];
    axis.steps[0] = x.strides[k] * static_cast<index_t>(item_size(x.dtype));
  }
  axis_ = loop_.merge(0, axis_);
  loop_.merge(axis_ + 1, loop_.rank);
  if (!is_adjoint) return;
  plain_begin_ += line_.offset() + static_cast<index_t>(stencil.taps.size()) - 1;
  plain_end_ += line_.offset();
  const index_t middle = (plain_begin_ + plain_end_) / 2;
  for_ends([&](index_t i) {
    line_.for_taps(i, [&](std::size_t, index_t j) {
      if (j < middle) plain_begin_ = std::max(plain_begin_, j + 1);
      if (j >= middle) plain_end_ = std::min(plain_end_, j);
    });
  });
  plain_end_ = std::max(plain_begin_, plain_end_);
}

template <class Body>
void FilteredRows::for_ends(Body&& body) const {
  for (index_t i = 0; i < line_.inner_begin(); ++i) body(i);
  for (index_t i = line_.inner_end(); i < line_.count(); ++i) body(i);
}

// Calls body(m, j) for each term of result k: tap m times element j.
template <class Body>
void FilteredRows::for_terms(index_t k, Body&& body) const {
  if (!is_adjoint_) return line_.for_taps(k, body);
  const auto of_end = [&](index_t i) {
    line_.for_taps(i, [&](std::size_t m, index_t j) {
      if (j == k) body(m, i);
    });
  };
  const bool is_plain = k >= plain_begin_ && k < plain_end_;
  for (index_t i = 0; i < line_.inner_begin() && !is_plain; ++i) of_end(i);
  const auto n_taps = line_.stencil().taps.size();
  const bool is_along = axis_ == loop_.rank - 1;
  for (std::size_t t = 0; t < n_taps; ++t) {
    const std::size_t m = is_along ? t : n_taps - 1 - t;
    const index_t i = element_of(k, m);
    if (i >= line_.inner_begin() && i < line_.inner_end()) body(m, i);
  }
  for (index_t i = line_.inner_end(); i < line_.count() && !is_plain; ++i) of_end(i);
}

// Computes results first, first + 1, ... of the line at x.
template <class T>
void FilteredRows::along(const std::byte* x, index_t first, index_t n, T* to) const {
  const index_t step = loop_.step(0, axis_), end = first + n;
  const auto& taps = line_.stencil().taps;
  const index_t begin = std::clamp(plain_begin_, first, end);
  const index_t until = std::clamp(plain_end_, begin, end);
  const auto one = [&](index_t k) {
    Stretch<T> result(to + (k - first), 1);
    for_terms(k, [&](std::size_t m, index_t j) { result.add(taps[m], x + j * step, step); });
    result.close();
  };
  for (index_t k = first; k < begin; ++k) one(k);
  Stretch<T> between(to + (begin - first), until - begin);
  for (std::size_t m = 0; m < taps.size(); ++m) {
    between.add(taps[m], x + element_of(begin, m) * step, step);
  }
  between.close();
  for (index_t k = until; k < end; ++k) one(k);
}

// Computes result `here` of n lines side by side; x points to the first line.
template <class T>
void FilteredRows::across(const std::byte* x, index_t here, index_t n, T* to) const {
  const index_t step = loop_.step(0, axis_), aside = loop_.step(0, loop_.rank - 1);
  Stretch<T> result(to, n);
  for_terms(here, [&](std::size_t m, index_t j) {
    result.add(line_.stencil().taps[m], x + j * step, aside);
  });
  result.close();
}

template <class T>
void FilteredRows::read_as(index_t first, index_t n, T* to) const {
  const int last = loop_.rank - 1;
  for (index_t done = 0, length = 0; done < n; done += length) {
    index_t element = first + done, here = 0;
    const std::byte* x = loop_.data[0];
    length = n - done;
    for (int axis = last; axis >= 0; --axis) {
      const index_t position = element % loop_.at(axis).extent;
      element /= loop_.at(axis).extent;
      if (axis == last) length = std::min(length, loop_.at(axis).extent - position);
      if (axis == axis_) {
        here = position;
      } else {
        x += position * loop_.step(0, axis);
      }
    }
    if (axis_ == last) {
      along(x, here, length, to + done);
    } else {
      across(x, here, length, to + done);
    }
  }
}

void FilteredRows::read(index_t first, index_t n, std::byte* to) const {
  visit_inexact(dtype_, "stencil", [&](auto tag) {
    using T = typename decltype(tag)::type;
    read_as(first, n, reinterpret_cast<T*>(to));
  });
}

}  // namespace palimpsest
