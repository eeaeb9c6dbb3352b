// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/containers/along.hpp"

#include <algorithm>

#include "palimpsest/base/config.hpp"
#include "palimpsest/linop/containers/concat.hpp"
#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/named/matching.hpp"

namespace palimpsest {
namespace {

index_t role(const Attributes& attrs, std::string_view name) {
  for (const auto& [key, value] : attrs) {
    if (key == name) return value.as_integer();
  }
  return -1;
}

void make_definite(NamedLinop& one, const NamedLinop& other, bool& changed) {
  const Dims input = resolve_wildcards(one.ishape(), other.ishape());
  if (input != one.ishape()) {
    one.set_ishape(input);
    changed = true;
  }
  const Dims output = resolve_wildcards(one.oshape(), other.oshape());
  if (output != one.oshape()) {
    one.set_oshape(output);
    changed = true;
  }
}

std::vector<Index> up_to(const Variable& x, index_t axis) {
  return std::vector<Index>(static_cast<std::size_t>(from_front(Axes{axis}, x.rank())[0]),
                            Index(all));
}

}  // namespace

Along along_of(const NamedShape::Others& others, const Attributes& attrs) {
  Along along;
  for (const auto& [name, value] : others) {
    if (name != "along" || !value.dims()) continue;
    const Dims& dims = *value.dims();
    const index_t in = role(attrs, "in"), out = role(attrs, "out");
    if (std::max(in, out) >= static_cast<index_t>(dims.size())) {
      throw ShapeError("[along] got dimensions " + dims.str() + ", expected one more");
    }
    if (in >= 0) along.in = dims[static_cast<std::size_t>(in)];
    if (out >= 0) along.out = dims[static_cast<std::size_t>(out)];
  }
  return along;
}

Along along_of(const NamedLinop& A) { return along_of(A.shape().others(), A.attrs()); }

NamedShape::Others along_shape(const Along& along) {
  Dims dims;
  if (along.in) dims.push_back(*along.in);
  if (along.out && along.out != along.in) dims.push_back(*along.out);
  return {{"along", dims}};
}

Attributes along_roles(const Along& along) {
  const index_t last = along.in && along.out != along.in ? 1 : 0;
  return {{"in", along.in ? 0 : -1}, {"out", along.out ? last : -1}};
}

Attributes exchanged_roles(const NamedLinop& A) {
  Attributes attrs = A.attrs();
  const auto exchange = [&](const std::string& a, const std::string& b) {
    for (auto& [key, value] : attrs) {
      if (key == a) {
        value = A.attr(b);
      } else if (key == b) {
        value = A.attr(a);
      }
    }
  };
  exchange("in", "out");
  exchange("in_position", "out_position");
  return attrs;
}

NamedShape::Others along_only(const NamedLinop& A) { return {{"along", A.shape().dims("along")}}; }

std::vector<NamedLinop> adjoints_of(const NamedLinop& A) {
  std::vector<NamedLinop> result;
  for (const NamedLinop& child : A.linops()) result.push_back(child.H());
  return result;
}

std::vector<NamedLinop> normals_of(const NamedLinop& A, const ND& d) {
  std::vector<NamedLinop> result;
  for (const NamedLinop& child : A.linops()) {
    const NamedLinop normal = child.N();
    const auto size = child.ishape().contains(d) ? child.size(d) : std::nullopt;
    result.push_back(size && !normal.size(d) ? normal.with_sizes({{d, *size}}) : normal);
  }
  return result;
}

Variable select(const Variable& x, index_t axis, index_t i) {
  std::vector<Index> index = up_to(x, axis);
  index.emplace_back(i);
  return ops::index(x, std::move(index));
}

Variable part(const Variable& x, index_t axis, index_t start, index_t stop) {
  std::vector<Index> index = up_to(x, axis);
  index.emplace_back(slice(start, stop));
  return ops::index(x, std::move(index));
}

Variable summed_up(const std::vector<Variable>& terms) {
  Variable sum;
  for (const Variable& term : terms) sum = sum.defined() ? sum + term : term;
  return sum;
}

NamedLinop with_zero_edges(const NamedLinop& core, const BlockEdges& edges) {
  // Zero of the same shape with n elements along d.
  const auto zeros = [](const NamedLinop& A, const ND& d, index_t n) {
    const NamedLinop zero = zero_like(A);
    DimMap sizes = zero.recorded_sizes();
    sizes[d] = n;
    refuse_unknown_zero(A, A, sizes, d);
    return Zero(A.ishape(), A.oshape(), {.sizes = std::move(sizes)});
  };
  const auto surrounded = [&](const NamedLinop& A, const ND& d, index_t before, index_t after,
                              const ConcatDims& along) {
    if (before == 0 && after == 0) return A;
    std::vector<NamedLinop> parts{A};
    if (before > 0) parts.insert(parts.begin(), zeros(A, d, before));
    if (after > 0) parts.push_back(zeros(A, d, after));
    return Concat(std::move(parts), along);
  };
  const NamedLinop wide = surrounded(core, edges.in, edges.columns_before, edges.columns_after,
                                     {.in = edges.in, .out = {}});
  return surrounded(wide, edges.out, edges.rows_before, edges.rows_after,
                    {.in = {}, .out = edges.out});
}

namespace {

// Calls visit(i, d, own) for each child i: `own` stands where d stands in the shape of the first.
template <class Visit>
void for_each_place(const std::vector<NamedLinop>& children, Visit&& visit) {
  for (std::size_t i = 0; i < children.size(); ++i) {
    for (const auto& [d, own] : places(children[0].ishape(), children[i].ishape())) {
      visit(i, d, own);
    }
    for (const auto& [d, own] : places(children[0].oshape(), children[i].oshape())) {
      visit(i, d, own);
    }
  }
}

}  // namespace

std::optional<index_t> size_of_summands(const std::vector<NamedLinop>& children, const ND& d) {
  if (!d.is_ordinal()) return common_size(children, d);
  std::optional<index_t> size;
  for_each_place(children, [&](std::size_t i, const ND& name, const ND& own) {
    if (!size && name == d) size = size_of_one(children[i], own);
  });
  return size;
}

void check_summand_sizes(std::string_view who, const std::vector<NamedLinop>& children,
                         const Dims& except) {
  check_sizes(who, children, except);
  DimMap sizes;
  for_each_place(children, [&](std::size_t i, const ND& d, const ND& own) {
    const bool is_one = d.is_concrete() || d.is_ordinal() ||
                        children[0].ishape().count(d) + children[0].oshape().count(d) == 1;
    const auto n = size_of_one(children[i], own);
    if (!is_one || !n || except.contains(d) || except.contains(own)) return;
    const auto [known, is_new] = sizes.emplace(d, *n);
    if (!is_new && known->second != *n) {
      refuse_sizes(who, i, children[i], own, *n, known->second);
    }
  });
}

void unify_shapes(std::string_view who, std::vector<NamedLinop>& children) {
  for (std::size_t i = 1; i < children.size(); ++i) {
    if (children[i].shape() == children[0].shape()) continue;
    throw ShapeError("[" + std::string(who) + "[" + std::to_string(i) + "]/" + children[i].name() +
                     "] " + std::string(who) + " needs equal shapes: got " +
                     children[i].shape().str() + ", expected " + children[0].shape().str());
  }
  if (!config().shape_inference) return;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i + 1 < children.size(); ++i) {
      make_definite(children[i], children[i + 1], changed);
      make_definite(children[i + 1], children[i], changed);
    }
  }
}

}  // namespace palimpsest
