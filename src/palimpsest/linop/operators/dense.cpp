// SPDX-License-Identifier: Apache-2.0
// Labels are small integers, one per dimension of the contraction; kRun stands for the axes that an
// ellipsis in both input and output takes. The attributes "w", "i", "o" hold the labels of weight,
// input and output in the orientation of the type; "stretch" those of weight axes that stretch.
#include "palimpsest/linop/operators/dense.hpp"

#include <algorithm>

#include "palimpsest/linop/core/parameter_parts.hpp"
#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/linop/operators/dense_roles.hpp"
#include "palimpsest/linop/operators/diagonal_factors.hpp"
#include "palimpsest/linop/transforms/gram.hpp"
#include "palimpsest/ops/products/products.hpp"

namespace palimpsest {
namespace {

constexpr index_t kRun = kDenseRun;
using Labels = DenseLabels;
using Roles = DenseRoles;

bool has(const Labels& labels, index_t label) { return has_label(labels, label); }
std::size_t position(const Labels& labels, index_t label) {
  return static_cast<std::size_t>(std::find(labels.begin(), labels.end(), label) - labels.begin());
}

// A label per axis: the run gets labels of its own, after all others.
std::vector<int> spelled_out(const Labels& labels, std::size_t run, index_t first_free) {
  std::vector<int> result;
  for (index_t label : labels) {
    if (label != kRun) {
      result.push_back(static_cast<int>(label));
      continue;
    }
    for (std::size_t k = 0; k < run; ++k) {
      result.push_back(static_cast<int>(first_free) + static_cast<int>(k));
    }
  }
  return result;
}

bool has(const std::vector<int>& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

// w times x where nothing is summed: no operand is converted, so a real weight stays small.
Variable product(const Variable& w, const std::vector<int>& w_labels, const Variable& x,
                 const std::vector<int>& out) {
  Axes order, axes;
  for (std::size_t k = 0; k < out.size(); ++k) {
    const auto found = std::find(w_labels.begin(), w_labels.end(), out[k]);
    if (found == w_labels.end()) continue;
    order.push_back(found - w_labels.begin());
    axes.push_back(static_cast<index_t>(k));
  }
  return put_in_place(ops::transpose(w, order), axes, out.size()) * x;
}

struct Sides {
  const Labels &from, &to;
  const Dims& to_dims;
};

// The size along a label that neither operand shows: a produced dimension along which the weight
// stretches.
index_t size_of_label(const NamedLinop& A, const Sides& sides, index_t label) {
  const std::size_t i = position(sides.to, label);
  if (i < sides.to_dims.size()) {
    if (const auto n = A.size(sides.to_dims[i])) return *n;
    throw ShapeError(who(A) + "size of dim '" + sides.to_dims[i].str() +
                     "' is unknown: the weight stretches along it. Try with_sizes");
  }
  throw ShapeError(who(A) + "size of a stretched dimension is unknown. Try with_sizes");
}

Variable contraction(const NamedLinop& A, const Variable& x, const Sides& sides, bool conjugated) {
  const Roles roles(A);
  const Variable& weight = A.param("weight").var();
  Axes stretched;
  for (std::size_t k = 0; k < roles.w.size(); ++k) {
    if (has(roles.stretch, roles.w[k])) stretched.push_back(static_cast<index_t>(k));
  }
  const Variable w = stretched.empty() ? weight : ops::squeeze(weight, stretched);
  const index_t first_free = roles.first_free();
  const bool runs = has(sides.from, kRun);
  const std::size_t run = runs ? x.rank() + 1 - sides.from.size() : 0;
  const std::vector<int> w_labels = spelled_out(roles.fixed(), 0, first_free);
  const std::vector<int> in = spelled_out(sides.from, run, first_free);
  const std::vector<int> all_out = spelled_out(sides.to, run, first_free);
  std::vector<int> out;
  Axes missing;
  Extents extents(all_out.size(), kUnknown);
  for (std::size_t k = 0; k < all_out.size(); ++k) {
    if (has(w_labels, all_out[k]) || has(in, all_out[k])) {
      out.push_back(all_out[k]);
    } else {
      missing.push_back(static_cast<index_t>(k));
      extents[k] = size_of_label(A, sides, all_out[k]);
    }
  }
  const bool elementwise = in == out && std::all_of(w_labels.begin(), w_labels.end(),
                                                    [&](int label) { return has(out, label); });
  const bool conj = conjugated && is_complex(w.dtype());
  Variable y = elementwise && !conj && is_complex(x.dtype()) && !is_complex(w.dtype())
                   ? product(w, w_labels, x, out)
                   : ops::contract(w, w_labels, x, in, out, {.conj_a = conj, .conj_b = false});
  if (missing.empty()) return y;
  return ops::broadcast_to(ops::expand_dims(y, missing), extents);
}

// The table holds the functions of the type's orientation.
Variable dense_fn(const NamedLinop& A, const Variable& x) {
  const Labels from = A.attr("i").as_integers(), to = A.attr("o").as_integers();
  return contraction(A, x, {from, to, A.is_flipped() ? A.ishape() : A.oshape()},
                     A.attr("conjugated").as_bool());
}
Variable dense_adj_fn(const NamedLinop& A, const Variable& y) {
  const Labels from = A.attr("o").as_integers(), to = A.attr("i").as_integers();
  return contraction(A, y, {from, to, A.is_flipped() ? A.oshape() : A.ishape()},
                     !A.attr("conjugated").as_bool());
}

// The label of dimension d in a shape whose ellipsis may have been spelled out since; kRun if it
// has no label.
index_t label_of(const Dims& dims, const Labels& labels, const ND& d) {
  const auto found = dims.index_of(d);
  if (!found || d.is_ellipsis()) return kRun;
  const std::size_t before = position(labels, kRun);
  if (*found < before) return labels[*found];
  const std::size_t from_end = dims.size() - *found;
  const std::size_t after = labels.size() - std::min(before + 1, labels.size());
  return from_end <= after ? labels[labels.size() - from_end] : kRun;
}

// The size of a dimension that is summed inside.
std::optional<index_t> summed_size(const NamedLinop& A, const ND& d) {
  const auto at = summed_dims(A).index_of(d);
  const auto labels = at ? gram_labels(A) : std::nullopt;
  if (!labels || labels->summed[*at] == kRun) return std::nullopt;
  return A.param("factor").shape()[position(labels->columns, labels->summed[*at])];
}

std::optional<index_t> dense_size(const NamedLinop& A, const ND& d) {
  const Roles roles(A);
  index_t label = label_of(A.ishape(), roles.in, d);
  if (label == kRun) label = label_of(A.oshape(), roles.out, d);
  if (label == kRun) return summed_size(A, d);
  if (!has(roles.w, label) || has(roles.stretch, label)) return std::nullopt;
  return A.param("weight").shape()[position(roles.w, label)];
}

// Tile of the factor of a Gram weight. A cut of a summed dimension makes a summand, whose weight is
// computed from the factor. A cut of rows alone or columns alone makes the factor useless; it is
// dropped.
class FactorTile {
 public:
  explicit FactorTile(const NamedLinop& A) : A_(A), labels_(gram_labels(A)) {
    if (labels_) factor_ = A.param("factor");
  }

  void cut_summed(const ND& d, const TileRange& range) {
    const auto at = summed_dims(A_).index_of(d);
    const index_t label = labels_ && at ? labels_->summed[*at] : kRun;
    if (label == kRun) refuse_split(A_, d, "its parts meet in cross terms");
    narrow(label, range);
    is_summand_ = true;
  }
  void cut(index_t label, const TileRange& range) {
    if (!labels_) return;
    if (has(labels_->rows, label) && has(labels_->columns, label)) {
      narrow(label, range);
    } else {
      is_useless_ = true;
    }
  }
  bool is_summand() const { return is_summand_; }
  // True if the factor has the cut of this label already.
  bool holds(index_t label) const {
    return is_summand_ && has(labels_->rows, label) && has(labels_->columns, label);
  }
  // Computed when it is used first.
  Parameter weight() const {
    const DeferredDerivations deferred;
    return Parameter::derived(gram_expression(*labels_, factor_))
        .as_trainable(factor_.is_trainable());
  }
  void put_into(LinopData& data) const {
    if (is_useless_) {
      std::erase_if(data.params, [](const auto& p) { return p.first == "factor"; });
    } else if (labels_) {
      put_param(data, "factor", factor_);
    }
  }

 private:
  void narrow(index_t label, const TileRange& range) {
    factor_ = factor_.narrow(position(labels_->columns, label), range.start, range.size());
  }

  const NamedLinop& A_;
  std::optional<GramLabels> labels_;
  Parameter factor_;
  bool is_summand_ = false, is_useless_ = false;
};

NamedLinop dense_split(const NamedLinop& A, const Tile& tile) {
  const Roles roles(A);
  FactorTile factor(A);
  std::vector<std::pair<index_t, TileRange>> cuts;  // of the weight
  for (const auto& [d, slice] : tile) {
    const TileRange range = *range_of(tile, d);
    const index_t in = label_of(A.ishape(), roles.in, d), out = label_of(A.oshape(), roles.out, d);
    if (!A.ishape().contains(d) && !A.oshape().contains(d)) {
      factor.cut_summed(d, range);
      continue;
    }
    if (A.ishape().contains(d) && A.oshape().contains(d) && in != out) {
      refuse_split(A, d, "its name stands for a dimension of the input and another of the output");
    }
    const index_t label = in == kRun ? out : in;
    if (label == kRun || !has(roles.w, label)) continue;
    if (has(roles.stretch, label)) refuse_split(A, d, "the weight stretches along it (.broadcast)");
    factor.cut(label, range);
    cuts.emplace_back(label, range);
  }
  Parameter weight = factor.is_summand() ? factor.weight() : A.param("weight");
  for (const auto& [label, range] : cuts) {
    if (factor.holds(label)) continue;
    weight = weight.narrow(position(roles.w, label), range.start, range.size());
  }
  LinopData data = tile_data(A, tile);
  put_param(data, "weight", std::move(weight));
  factor.put_into(data);
  return from_data(std::move(data));
}

// The labels of the Gram weight and of the normal operator's output; rows have fresh labels.
struct Gram {
  GramLabels labels;
  Labels out;
  index_t elements = 1;
};

Gram gram_of(const Roles& roles, const Extents& extents) {
  Gram gram;
  GramLabels& labels = gram.labels;
  labels.conjugated = roles.conjugated;
  index_t next = roles.first_free();
  Labels batch, rows, columns, fresh_of(static_cast<std::size_t>(next), kRun);
  for (std::size_t k = 0; k < roles.w.size(); ++k) {
    const index_t label = roles.w[k], n = extents[k];
    const bool contracted = has(roles.in, label) && !has(roles.out, label);
    labels.columns.push_back(label);
    labels.rows.push_back(label);
    if (contracted) {
      fresh_of[static_cast<std::size_t>(label)] = next;
      labels.rows.back() = next;
      rows.push_back(next++);
      columns.push_back(label);
      gram.elements = checked_multiply(checked_multiply(gram.elements, n), n);
    } else if (has(roles.in, label)) {
      batch.push_back(label);
      gram.elements = checked_multiply(gram.elements, n);
    }
  }
  for (const Labels& part : {batch, rows, columns}) {
    for (index_t label : part) labels.weight.push_back(label);
  }
  for (index_t label : roles.in) {
    const bool contracted = label != kRun && fresh_of[static_cast<std::size_t>(label)] != kRun;
    gram.out.push_back(contracted ? fresh_of[static_cast<std::size_t>(label)] : label);
  }
  return gram;
}

// Names of the Gram weight's axes: those of the input, fresh ones for the rows.
Dims gram_names(const NamedLinop& A, const Roles& roles, const GramLabels& gram) {
  Dims names;
  std::vector<ND> avoid;
  for (const ND& d : A.dims()) avoid.push_back(d);
  const Dims& w_names = A.shape().dims("weightshape");
  for (index_t label : gram.weight) {
    const std::size_t row = position(gram.rows, label);
    const bool is_row = !has(gram.columns, label);
    const ND d = w_names[is_row ? row : position(roles.w, label)];
    names.push_back(is_row && d.is_concrete() ? (d + 1).fresh(avoid) : d);
    avoid.push_back(names.back());
  }
  return names;
}

// Names the dimensions that the normal operator sums over: dimensions of the output alone, and
// dimensions that A sums over inside. Parts along these would meet in cross terms.
void name_summed(const NamedLinop& A, const Roles& roles, GramLabels& gram) {
  for (const ND& d : A.oshape()) {
    const index_t label = label_of(A.oshape(), roles.out, d);
    if (A.ishape().contains(d) || label == kRun || has(gram.weight, label)) continue;
    gram.names.push_back(d);
    gram.summed.push_back(label);
  }
  for (const ND& d : summed_dims(A)) {
    if (A.ishape().contains(d) || gram.names.contains(d)) continue;
    gram.names.push_back(d);
    gram.summed.push_back(kRun);
  }
}

NamedLinop dense_normal(const NamedLinop& A, const NamedLinop* inner) {
  const Roles roles(A);
  if (inner || !roles.stretch.empty()) return {};
  const Parameter& weight = A.param("weight");
  Gram gram = gram_of(roles, weight.shape());
  if (gram.elements > 2 * element_count(weight.shape())) return {};
  name_summed(A, roles, gram.labels);
  NamedShape::Others others{{"weightshape", gram_names(A, roles, gram.labels)}};
  if (!gram.labels.names.empty()) others.emplace_back("summed", gram.labels.names);
  const NamedLinop made =
      make_dense(NamedShape(A.ishape(), A.ishape(), others), {{"factor", weight}},
                 gram.labels.weight, roles.in, gram.out, {}, false, gram_attributes(gram.labels));
  DimMap sizes = A.recorded_sizes();
  std::erase_if(sizes, [&](const auto& entry) { return !A.ishape().contains(entry.first); });
  return completed(made, sizes);
}

// Checks the labels of a file. Those of a factory are right.
void check_labels(const NamedLinop& A) {
  const Roles roles(A);
  const auto fail = [&] {
    throw ShapeError(who(A) + "labels: got " + to_string(roles.w) + ", " + to_string(roles.in) +
                     " -> " + to_string(roles.out) + " for " + A.shape().str());
  };
  const auto fits = [](const Labels& labels, const Dims& dims) {
    const std::size_t runs = has(labels, kRun) ? 1 : 0;
    return runs ? dims.size() + 1 >= labels.size() : dims.size() == labels.size();
  };
  if (!fits(roles.in, A.ishape()) || !fits(roles.out, A.oshape()) || has(roles.w, kRun) ||
      has(roles.in, kRun) != has(roles.out, kRun) || !A.shape().contains("weightshape") ||
      A.shape().dims("weightshape").size() != roles.w.size()) {
    fail();
  }
  const Labels* const all[] = {&roles.w, &roles.in, &roles.out};
  for (std::size_t k = 0; k < 3; ++k) {
    const Labels &labels = *all[k], &second = *all[(k + 1) % 3], &third = *all[(k + 2) % 3];
    for (const index_t label : labels) {
      const bool is_label = label == kRun || (label >= 0 && label < index_t{3 * kMaxRank});
      if (!is_label || std::count(labels.begin(), labels.end(), label) > 1 ||
          (!has(second, label) && !has(third, label))) {
        fail();
      }
    }
  }
  for (const index_t label : roles.stretch) {
    if (!has(roles.w, label)) fail();
  }
}

void check_dense(const NamedLinop& A) {
  check_labels(A);
  check_gram(A);
  // A Gram weight follows.
  const TensorType type = gram_labels(A)
                              ? gram_expression(*gram_labels(A), A.param("factor")).type()
                              : A.param("weight").type();
  const Labels w = A.attr("w").as_integers(), stretch = A.attr("stretch").as_integers();
  if (type.rank() != w.size()) {
    throw ShapeError(who(A) + "weight: got " + type.str() + ", expected " +
                     std::to_string(w.size()) + " axes, one per dimension of weightshape");
  }
  if (!is_inexact(type.dtype)) {
    throw DTypeError(who(A) + "weight: got " + type.str() + ", expected floating or complex");
  }
  for (std::size_t k = 0; k < w.size(); ++k) {
    if (!has(stretch, w[k]) || type.shape[k] == 1) continue;
    throw ShapeError(who(A) + "broadcast: axis " + std::to_string(k) + " of the weight: got " +
                     std::to_string(type.shape[k]) + " elements, expected 1");
  }
}

std::string text_of(const Dims& w, const Dims& in, const Dims& out) {
  return "[Dense] " + w.str() + ", " + arrow(in, out) + ": ";
}

void check_names(const Dims& w, const Dims& in, const Dims& out) {
  const std::string text = text_of(w, in, out);
  for (const Dims& dims : {w, in, out}) {
    for (const ND& d : dims) {
      if (d.is_any() && !d.is_ordinal()) {
        throw ValueError(text + "einsum: got (), expected names. Try (1)");
      }
      if (dims.count(d) == 1) continue;
      throw ValueError(text + "dim '" + d.str() +
                       "' is repeated: got it for two axes of one array, expected names that "
                       "differ. Try a square Dense without names, or ShapeSpec(\"M\", \"N\") * "
                       "Dense(w, \"MN,N->M\")");
    }
  }
  if (w.has_ellipsis()) throw ValueError(text + "einsum: the weight has no ellipsis");
  const Dims* all[] = {&w, &in, &out};
  const char* names[] = {"weightshape", "ishape", "oshape"};
  for (std::size_t k = 0; k < 3; ++k) {
    for (const ND& d : *all[k]) {
      if (all[(k + 1) % 3]->contains(d) || all[(k + 2) % 3]->contains(d)) continue;
      throw ValueError(text + "dim '" + d.str() + "' appears only in " + names[k] +
                       ", expected it in two of the three");
    }
  }
}

// The output as it is called, where that differs from the labels.
Dims output_names(const Dims& w, const Dims& in, const Dims& out, const DenseOptions& options) {
  if (!options.output) return out;
  const Dims& names = *options.output;
  bool fits = names.size() == out.size();
  for (std::size_t k = 0; fits && k < out.size(); ++k) {
    fits = names[k].is_ellipsis() == out[k].is_ellipsis();
  }
  if (fits) return names;
  throw ValueError(text_of(w, in, out) + "output: got " + names.str() + ", expected names for " +
                   out.str());
}

}  // namespace

bool has_label(const DenseLabels& labels, index_t label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

DenseRoles::DenseRoles(const NamedLinop& A)
    : w(A.attr("w").as_integers()),
      in(A.attr(A.is_flipped() ? "o" : "i").as_integers()),
      out(A.attr(A.is_flipped() ? "i" : "o").as_integers()),
      stretch(A.attr("stretch").as_integers()),
      conjugated(A.is_flipped() != A.attr("conjugated").as_bool()) {}

DenseLabels DenseRoles::fixed() const {
  DenseLabels result;
  for (index_t label : w) {
    if (!has_label(stretch, label)) result.push_back(label);
  }
  return result;
}

index_t DenseRoles::first_free() const {
  index_t next = 0;
  for (const DenseLabels* labels : {&w, &in, &out}) {
    for (index_t label : *labels) next = std::max(next, label + 1);
  }
  return next;
}

Variable dense_over_batch(const NamedLinop& A, const Variable& x) {
  const Roles roles(A);
  if (has_label(roles.in, kRun)) return A(x);
  Labels from{kRun}, to{kRun};
  for (const index_t label : roles.in) from.push_back(label);
  for (const index_t label : roles.out) to.push_back(label);
  return contraction(A, x, {from, to, Dims("...") + A.oshape()}, roles.conjugated);
}

NamedLinop make_dense(NamedShape shape, Parameters parameters, const Labels& w, const Labels& in,
                      const Labels& out, const Labels& stretch, bool conjugated,
                      Attributes further) {
  Attributes attrs{{"w", Attribute(w)},
                   {"i", Attribute(in)},
                   {"o", Attribute(out)},
                   {"stretch", Attribute(stretch)},
                   {"conjugated", conjugated}};
  for (auto& attr : further) attrs.push_back(std::move(attr));
  return make_linop(linop_types::dense(), std::move(shape), std::move(parameters),
                    std::move(attrs));
}

const LinopType& linop_types::dense() {
  return PALIMPSEST_LINOP_TYPE(.name = "Dense",
                               .functions = {.fn = dense_fn,
                                             .adj_fn = dense_adj_fn,
                                             .split = dense_split,
                                             .size = dense_size},
                               .normal = dense_normal, .check = check_dense, .derive = derive_gram);
}

NamedLinop Dense(Parameter W, Dims weightshape, Dims ishape, Dims oshape, DenseOptions options) {
  check_names(weightshape, ishape, oshape);
  Dims known;
  const auto labels_of = [&](const Dims& dims) {
    Labels labels;
    for (const ND& d : dims) {
      if (!d.is_ellipsis() && !known.contains(d)) known.push_back(d);
      labels.push_back(d.is_ellipsis() ? kRun : static_cast<index_t>(*known.index_of(d)));
    }
    return labels;
  };
  const Labels w = labels_of(weightshape), in = labels_of(ishape), out = labels_of(oshape);
  Labels stretch;
  for (const ND& d : options.broadcast) {
    if (!weightshape.contains(d)) {
      throw ValueError(text_of(weightshape, ishape, oshape) + "broadcast: dim '" + d.str() +
                       "' is not in weightshape");
    }
    stretch.push_back(static_cast<index_t>(*known.index_of(d)));
  }
  NamedShape shape(ishape, output_names(weightshape, ishape, oshape, options),
                   {{"weightshape", weightshape}});
  return make_dense(std::move(shape), {{"weight", std::move(W)}}, w, in, out, stretch, false);
}

NamedLinop Dense(Parameter W, std::string_view einsum, DenseOptions options) {
  const std::size_t comma = einsum.find(','), arrow_at = einsum.find("->");
  const bool fits = comma != einsum.npos && arrow_at != einsum.npos && comma < arrow_at &&
                    einsum.find(',', comma + 1) == einsum.npos &&
                    einsum.find("->", arrow_at + 1) == einsum.npos;
  if (!fits) {
    throw ValueError("[Dense] einsum: got \"" + std::string(einsum) +
                     "\", expected a text like \"MN,N->M\"");
  }
  return Dense(std::move(W), Dim(einsum.substr(0, comma)),
               Dim(einsum.substr(comma + 1, arrow_at - comma - 1)),
               Dim(einsum.substr(arrow_at + 2)), std::move(options));
}

NamedLinop Dense(Parameter W) {
  const std::size_t n = W.type().rank();
  if (n < 2) {
    throw ValueError("[Dense] the weight must be at least 2D: got " + W.type().str());
  }
  Dims weight, in, out;
  for (std::size_t k = 1; k <= n; ++k) {
    const ND d = ND::any(static_cast<int>(k));
    weight.push_back(d);
    if (k + 1 != n) in.push_back(d);
    if (k != n) out.push_back(d);
  }
  return Dense(std::move(W), std::move(weight), std::move(in), std::move(out));
}

}  // namespace palimpsest
