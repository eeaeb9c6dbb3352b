// SPDX-License-Identifier: Apache-2.0
// Products that are written as contractions of labelled arrays.
#include <cctype>

#include "palimpsest/ops/prelude.hpp"

namespace palimpsest::ops {
namespace {

using LabelList = std::vector<int>;

// Letters are the labels 0 .. 51; the axes of `...` have those from kEllipsis on, counted from the
// last one, so that arrays of different ranks are aligned from the right.
constexpr int kEllipsis = 52;

struct Labelled {
  Variable array;
  LabelList labels;
  index_t extent(std::size_t axis) const { return array.type().shape[axis]; }
};

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw ValueError("[einsum] got \"" + std::string(text) + "\": " + why +
                   ", expected a text like \"mn,n->m\"");
}

struct Term {
  LabelList letters;
  std::optional<std::size_t> ellipsis;  // how many letters are in front of it
};

Term parse_term(std::string_view term, std::string_view text) {
  Term result;
  for (std::size_t i = 0; i < term.size(); ++i) {
    const char c = term[i];
    if (c == ' ') continue;
    if (term.substr(i, 3) == "...") {
      if (result.ellipsis) refuse(text, "two '...' in one operand");
      result.ellipsis = result.letters.size();
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(c))) {
      result.letters.push_back(c >= 'a' ? c - 'a' : c - 'A' + 26);
    } else {
      refuse(text, std::string{'\'', c, '\''} + " is not a letter");
    }
  }
  return result;
}

// The labels of an array of this rank, or of the result with `rank` letters and axes of `...`.
LabelList labels_of(const Term& term, std::size_t rank, std::string_view text) {
  const std::size_t n_letters = term.letters.size();
  if (rank < n_letters || (rank > n_letters && !term.ellipsis)) {
    throw ShapeError("[einsum] got " + std::to_string(n_letters) + " labels for an array of " +
                     std::to_string(rank) + " axes in \"" + std::string(text) +
                     "\", expected one per axis");
  }
  LabelList result = term.letters;
  if (term.ellipsis) {
    const auto n = static_cast<int>(rank - n_letters);
    for (int i = 0; i < n; ++i) {
      result.insert(result.begin() + static_cast<std::ptrdiff_t>(*term.ellipsis), kEllipsis + i);
    }
  }
  return result;
}

// The diagonal of axes with one label.
void take_diagonals(Labelled& x) {
  for (std::size_t i = 0; i < x.labels.size(); ++i) {
    for (std::size_t j = i + 1; j < x.labels.size(); ++j) {
      if (x.labels[i] != x.labels[j]) continue;
      const int label = x.labels[i];
      agreed_extent(Extents{x.extent(i)}, Extents{x.extent(j)}, 0, "einsum");
      x.array = diagonal(x.array, 0, static_cast<index_t>(i), static_cast<index_t>(j));
      x.labels.erase(x.labels.begin() + static_cast<std::ptrdiff_t>(j));
      x.labels.erase(x.labels.begin() + static_cast<std::ptrdiff_t>(i));
      x.labels.push_back(label);
      return take_diagonals(x);
    }
  }
}

// Without the axes that are known to be 1 where an equal label of another array is not.
void drop_broadcast_axes(std::vector<Labelled>& arrays) {
  std::vector<int> wide;
  for (const Labelled& x : arrays) {
    for (std::size_t k = 0; k < x.labels.size(); ++k) {
      if (x.extent(k) != 1) wide.push_back(x.labels[k]);
    }
  }
  for (Labelled& x : arrays) {
    Axes dropped;
    LabelList kept;
    for (std::size_t k = 0; k < x.labels.size(); ++k) {
      if (x.labels[k] >= kEllipsis && x.extent(k) == 1 && has(wide, x.labels[k])) {
        dropped.push_back(static_cast<index_t>(k));
      } else {
        kept.push_back(x.labels[k]);
      }
    }
    x.array = squeeze(x.array, dropped);
    x.labels = std::move(kept);
  }
}

// LabelList of a and b that the result or another array has.
LabelList needed_labels(const std::vector<Labelled>& arrays, std::size_t a, std::size_t b,
                        const LabelList& out) {
  LabelList result;
  const auto is_needed = [&](int label) {
    if (has(out, label)) return true;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      if (i != a && i != b && has(arrays[i].labels, label)) return true;
    }
    return false;
  };
  for (std::size_t i : {a, b}) {
    for (int label : arrays[i].labels) {
      if (!has(result, label) && is_needed(label)) result.push_back(label);
    }
  }
  return result;
}

double size_of(const LabelList& labels, const Labelled& a, const Labelled& b) {
  constexpr double kGuess = 64;  // of an extent that is unknown
  double size = 1;
  for (int label : labels) {
    index_t extent = kUnknown;
    for (const Labelled* x : {&a, &b}) {
      for (std::size_t k = 0; k < x->labels.size(); ++k) {
        if (x->labels[k] == label) extent = std::max(extent, x->extent(k));
      }
    }
    size *= extent == kUnknown ? kGuess : static_cast<double>(extent);
  }
  return size;
}

// An array with its labels in the order of the result, the others summed over.
Variable finished(const Labelled& x, const LabelList& out) {
  Axes summed, order;
  LabelList left;
  for (std::size_t k = 0; k < x.labels.size(); ++k) {
    if (has(out, x.labels[k])) {
      left.push_back(x.labels[k]);
    } else {
      summed.push_back(static_cast<index_t>(k));
    }
  }
  const Variable sums = summed.empty() ? x.array : sum(x.array, {summed, false});
  for (int label : out) {
    const auto at = std::find(left.begin(), left.end(), label);
    order.push_back(static_cast<index_t>(at - left.begin()));
  }
  return transpose(sums, order);
}

Variable contract_all(std::vector<Labelled> arrays, const LabelList& out) {
  while (arrays.size() > 1) {
    std::size_t best_a = 0, best_b = 1;
    double least = -1;
    for (std::size_t a = 0; a < arrays.size(); ++a) {
      for (std::size_t b = a + 1; b < arrays.size(); ++b) {
        const double size = size_of(needed_labels(arrays, a, b, out), arrays[a], arrays[b]);
        if (least >= 0 && size >= least) continue;
        least = size;
        best_a = a;
        best_b = b;
      }
    }
    Labelled &a = arrays[best_a], &b = arrays[best_b];
    const LabelList kept = arrays.size() == 2 ? out : needed_labels(arrays, best_a, best_b, out);
    a.array = contract(a.array, a.labels, b.array, b.labels, kept);
    a.labels = kept;
    arrays.erase(arrays.begin() + static_cast<std::ptrdiff_t>(best_b));
  }
  return finished(arrays[0], out);
}

// Letters that occur once, sorted.
LabelList letters_once(const std::vector<Term>& terms) {
  LabelList every, once;
  for (const Term& term : terms)
    every.insert(every.end(), term.letters.begin(), term.letters.end());
  for (int label : every) {
    if (std::count(every.begin(), every.end(), label) == 1) once.push_back(label);
  }
  std::sort(once.begin(), once.end());
  return once;
}

// An operand of matmul: labels of its batch axes, then these two or one.
struct MatrixOperand {
  Variable array;
  LabelList batch;
};

MatrixOperand batch_of(const Variable& x, const Variable& other, std::size_t n_matrix_axes,
                       std::size_t n_other_matrix_axes) {
  MatrixOperand result;
  Axes dropped;
  const std::size_t n = x.rank() - n_matrix_axes, m = other.rank() - n_other_matrix_axes;
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t from_right = n - k;  // 1 for the last batch axis
    const bool shared = from_right <= m;
    const bool stretched =
        shared && x.type().shape[k] == 1 && other.type().shape[m - from_right] != 1;
    if (stretched) {
      dropped.push_back(static_cast<index_t>(k));
    } else {
      result.batch.push_back(kEllipsis + static_cast<int>(from_right));
    }
  }
  result.array = squeeze(x, dropped);
  return result;
}

void check_rank(const Variable& x, std::string_view who) {
  if (x.rank() == 0) {
    throw ShapeError("[" + std::string(who) + "] got " + x.type().str() +
                     ", expected at least one axis. Try mul");
  }
}

}  // namespace

Variable einsum(std::string_view text, std::span<const Variable> operands) {
  const std::size_t arrow = text.find("->");
  std::string_view left = text.substr(0, std::min(arrow, text.size()));
  std::vector<Term> terms;
  for (bool more = true; more;) {
    const std::size_t comma = left.find(',');
    more = comma != std::string_view::npos;
    terms.push_back(parse_term(left.substr(0, std::min(comma, left.size())), text));
    if (more) left.remove_prefix(comma + 1);
  }
  if (terms.size() != operands.size()) {
    refuse(text, std::to_string(terms.size()) + " operands in the text, " +
                     std::to_string(operands.size()) + " arrays");
  }
  std::vector<Labelled> arrays;
  std::size_t n_ellipsis = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    arrays.push_back({operands[i], labels_of(terms[i], operands[i].rank(), text)});
    n_ellipsis = std::max(n_ellipsis, operands[i].rank() - terms[i].letters.size());
  }
  Term result = arrow == std::string_view::npos ? Term{letters_once(terms), 0}
                                                : parse_term(text.substr(arrow + 2), text);
  const LabelList out =
      labels_of(result, result.letters.size() + (result.ellipsis ? n_ellipsis : 0), text);
  for (int label : out) {
    if (std::count(out.begin(), out.end(), label) > 1)
      refuse(text, "a repeated label in the result");
    const bool found = std::any_of(arrays.begin(), arrays.end(),
                                   [&](const Labelled& x) { return has(x.labels, label); });
    if (!found) refuse(text, "a label of the result is in no operand");
  }
  for (Labelled& x : arrays) take_diagonals(x);
  drop_broadcast_axes(arrays);
  return contract_all(std::move(arrays), out);
}

Variable einsum(std::string_view text, std::initializer_list<Variable> operands) {
  return einsum(text, std::span<const Variable>(operands.begin(), operands.size()));
}

Variable einsum(std::string_view text, const Variable& a, const Variable& b,
                EinsumOptions options) {
  const Variable operands[] = {options.conj_a ? conj(a) : a, options.conj_b ? conj(b) : b};
  if (!options.conj_a && !options.conj_b) return einsum(text, operands);
  // Conjugation is free within one contraction of plain labels.
  const std::size_t comma = text.find(','), arrow = text.find("->");
  if (comma == std::string_view::npos || arrow == std::string_view::npos || comma > arrow) {
    return einsum(text, operands);
  }
  const Term first = parse_term(text.substr(0, comma), text);
  const Term second = parse_term(text.substr(comma + 1, arrow - comma - 1), text);
  const Term result = parse_term(text.substr(arrow + 2), text);
  const auto is_plain = [](const Term& term) {
    LabelList sorted = term.letters;
    std::sort(sorted.begin(), sorted.end());
    return !term.ellipsis && std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  };
  if (!is_plain(first) || !is_plain(second) || !is_plain(result)) return einsum(text, operands);
  return contract(a, first.letters, b, second.letters, result.letters, options);
}

Variable matmul(const Variable& a, const Variable& b) {
  check_rank(a, "matmul");
  check_rank(b, "matmul");
  const std::size_t n_a = std::min<std::size_t>(a.rank(), 2),
                    n_b = std::min<std::size_t>(b.rank(), 2);
  expect_same_extent(a, a.rank() - 1, b, b.rank() - n_b, "matmul");
  const MatrixOperand left = batch_of(a, b, n_a, n_b), right = batch_of(b, a, n_b, n_a);
  constexpr int kRow = 0, kInner = 1, kColumn = 2;
  LabelList labels_a = left.batch, labels_b = right.batch;
  LabelList out = left.batch.size() >= right.batch.size() ? left.batch : right.batch;
  for (int label : left.batch) {
    if (!has(out, label)) out.push_back(label);
  }
  for (int label : right.batch) {
    if (!has(out, label)) out.push_back(label);
  }
  std::sort(out.begin(), out.end(), std::greater<>());
  if (n_a == 2) {
    labels_a.push_back(kRow);
    out.push_back(kRow);
  }
  labels_a.push_back(kInner);
  labels_b.push_back(kInner);
  if (n_b == 2) {
    labels_b.push_back(kColumn);
    out.push_back(kColumn);
  }
  return contract(left.array, labels_a, right.array, labels_b, out);
}

Variable tensordot(const Variable& a, const Variable& b, const Axes& axes_a, const Axes& axes_b) {
  if (axes_a.size() != axes_b.size()) {
    throw ValueError("[tensordot] numbers of axes differ: got " + to_string(axes_a) + " and " +
                     to_string(axes_b));
  }
  normalize_axes(axes_a, a.rank(), "tensordot");
  normalize_axes(axes_b, b.rank(), "tensordot");
  LabelList labels_a(a.rank()), labels_b(b.rank()), out;
  for (std::size_t k = 0; k < a.rank(); ++k) labels_a[k] = static_cast<int>(k);
  for (std::size_t k = 0; k < b.rank(); ++k) labels_b[k] = static_cast<int>(a.rank() + k);
  LabelList summed;
  for (std::size_t i = 0; i < axes_a.size(); ++i) {
    const auto axis_a = static_cast<std::size_t>(normalize_axis(axes_a[i], a.rank(), "tensordot"));
    const auto axis_b = static_cast<std::size_t>(normalize_axis(axes_b[i], b.rank(), "tensordot"));
    expect_same_extent(a, axis_a, b, axis_b, "tensordot");
    labels_b[axis_b] = labels_a[axis_a];
    summed.push_back(labels_a[axis_a]);
  }
  for (const LabelList* labels : {&labels_a, &labels_b}) {
    for (int label : *labels) {
      if (!has(summed, label)) out.push_back(label);
    }
  }
  return contract(a, labels_a, b, labels_b, out);
}

Variable tensordot(const Variable& a, const Variable& b, index_t n_axes) {
  const auto n = static_cast<std::size_t>(n_axes);
  if (n_axes < 0 || n > a.rank() || n > b.rank()) {
    throw ShapeError("[tensordot] number of axes: got " + std::to_string(n_axes) + " for " +
                     a.type().str() + " and " + b.type().str());
  }
  Axes axes_a, axes_b;
  for (std::size_t k = 0; k < n; ++k) {
    axes_a.push_back(static_cast<index_t>(a.rank() - n + k));
    axes_b.push_back(static_cast<index_t>(k));
  }
  return tensordot(a, b, axes_a, axes_b);
}

Variable dot(const Operand& first, const Operand& second) {
  const Operand both[] = {first, second};
  const std::vector<Variable> resolved_both = resolved(both);
  const Variable &a = resolved_both[0], &b = resolved_both[1];
  if (a.rank() == 0 || b.rank() == 0) return mul(a, b);
  const std::size_t in_a = a.rank() - 1, in_b = b.rank() == 1 ? 0 : b.rank() - 2;
  expect_same_extent(a, in_a, b, in_b, "dot");
  return tensordot(a, b, Axes{static_cast<index_t>(in_a)}, Axes{static_cast<index_t>(in_b)});
}

Variable outer(const Variable& a, const Variable& b) { return tensordot(ravel(a), ravel(b), 0); }

Variable vdot(const Variable& a, const Variable& b) {
  if (a.rank() != b.rank()) {
    throw ShapeError("[vdot] numbers of axes differ: got " + a.type().str() + " and " +
                     b.type().str());
  }
  LabelList labels;
  for (std::size_t k = 0; k < a.rank(); ++k) {
    expect_same_extent(a, k, b, k, "vdot");
    labels.push_back(static_cast<int>(k));
  }
  return contract(a, labels, b, labels, {}, {.conj_a = true, .conj_b = false});
}

}  // namespace palimpsest::ops
