// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/kernels/fft/panel_copy.hpp"

#include <cstdlib>
#include <cstring>
#include <type_traits>

namespace palimpsest {
namespace {

constexpr index_t kPage = 4096, kLine = 64;
constexpr index_t kAhead = 16;  // prefetch distance in rows

template <class T>
using Complex = std::complex<T>;
template <class T>
constexpr index_t kItem = static_cast<index_t>(sizeof(Complex<T>));

template <class T>
Complex<T> times(Complex<T> a, Complex<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
template <class T>
Complex<T> times(Complex<T> a, T b) {
  return {a.real() * b, a.imag() * b};
}

// No phases.
struct None {
  None operator[](index_t) const { return {}; }
};
template <class T>
Complex<T> times(Complex<T> a, None) {
  return a;
}

// Prefetches rows that lie a page or more apart, which hardware prefetchers do not detect. Into the
// second level: rows a power of two apart would evict each other from the first.
template <class T>
void ask_for(const Complex<T>* row, index_t direction, index_t lines) {
  if (direction < 0) row -= lines - 1;
  for (index_t b = 0; b < lines; b += kLine / kItem<T>) __builtin_prefetch(row + b, 0, 2);
}

// Are the rows of elements of a side so far apart that they are prefetched?
template <class T>
bool is_far(const PanelSide& side) {
  return std::abs(side.line) == 1 && std::abs(side.step) * kItem<T> >= kPage / 2;
}

// Computes to[c, j] = from[c, j] * phases[j], in the order that suits a side whose lines are not
// dense.
template <class T, class Phases>
void move_by_loops(const Complex<T>* from, PanelSide in, Complex<T>* to, PanelSide out,
                   index_t lines, index_t n, Phases phases) {
  const auto is_wild = [](const PanelSide& side) {
    return std::abs(side.step) > std::abs(side.line);
  };
  if ((is_wild(in) || is_wild(out)) && lines > 1) {
    const bool far_in = is_far<T>(in), far_out = is_far<T>(out);
    for (index_t j = 0; j < n; ++j) {
      const Complex<T>* const x = from + j * in.step;
      Complex<T>* const y = to + j * out.step;
      if (far_in && j + kAhead < n) ask_for(x + kAhead * in.step, in.line, lines);
      if (far_out && j + kAhead < n) ask_for(y + kAhead * out.step, out.line, lines);
      const auto phase = phases[j];
      if (std::is_same_v<Phases, None> && in.line == 1 && out.line == 1) {
        std::memmove(y, x, static_cast<std::size_t>(lines) * sizeof(Complex<T>));
      } else if (in.line == 1 && out.line == 1) {
        for (index_t c = 0; c < lines; ++c) y[c] = times(x[c], phase);
      } else {
        for (index_t c = 0; c < lines; ++c) y[c * out.line] = times(x[c * in.line], phase);
      }
    }
    return;
  }
  for (index_t c = 0; c < lines; ++c) {
    const Complex<T>* x = from + c * in.line;
    Complex<T>* y = to + c * out.line;
    if (std::is_same_v<Phases, None> && in.step == 1 && out.step == 1) {
      std::memmove(y, x, static_cast<std::size_t>(n) * sizeof(Complex<T>));
    } else if (in.step == 1 && out.step == 1) {
      for (index_t j = 0; j < n; ++j) y[j] = times(x[j], phases[j]);
    } else {
      for (index_t j = 0; j < n; ++j) y[j * out.step] = times(x[j * in.step], phases[j]);
    }
  }
}

}  // namespace

template <class T>
void move_panel(const Complex<T>* from, PanelSide in, Complex<T>* to, PanelSide out, index_t lines,
                index_t n, const LinePhases<T>& phases) {
  if (!phases.real.empty()) {
    move_by_loops<T>(from, in, to, out, lines, n, phases.real.data());
  } else if (!phases.complex.empty()) {
    move_by_loops<T>(from, in, to, out, lines, n, phases.complex.data());
  } else {
    move_by_loops<T>(from, in, to, out, lines, n, None{});
  }
}

template void move_panel(const Complex<float>*, PanelSide, Complex<float>*, PanelSide, index_t,
                         index_t, const LinePhases<float>&);
template void move_panel(const Complex<double>*, PanelSide, Complex<double>*, PanelSide, index_t,
                         index_t, const LinePhases<double>&);

}  // namespace palimpsest
