// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/operators/shape_spec.hpp"

#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/named/matching.hpp"

namespace palimpsest {
namespace {

NamedLinop shape_spec_normal(const NamedLinop& A, const NamedLinop* inner) {
  if (!inner) return Identity(A.ishape());
  // An inner operator that renames keeps its names: they are different dimensions on the two sides.
  if (inner->ishape() != inner->oshape()) return {};
  NamedLinop renamed = *inner;
  renamed.set_shape(NamedShape(A.ishape(), A.ishape()));
  return renamed;
}

void check_shape_spec(const NamedLinop& A) {
  if (iscompatible(A.ishape(), A.oshape())) return;
  throw ShapeError(who(A) + "shapes are not compatible: got " + A.shape().str() +
                   ", expected two shapes of one structure");
}

std::optional<index_t> partner_size(const NamedLinop& A, const ND& d) {
  if (!A.shape().contains("sizes") || !d.is_concrete()) return std::nullopt;
  const DimMap& recorded = A.shape().map("sizes");
  const Dims &in = A.ishape(), &out = A.oshape();
  if (in.size() != out.size()) return std::nullopt;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i] != d && out[i] != d) continue;
    const auto found = recorded.find(in[i] == d ? out[i] : in[i]);
    if (found != recorded.end()) return found->second;
  }
  return std::nullopt;
}

// The dimension that stands in the place of d on the other side; none where ellipses leave it open.
std::optional<ND> partner_of(const NamedLinop& A, const ND& d) {
  const Dims &in = A.ishape(), &out = A.oshape();
  if (in.size() != out.size()) return std::nullopt;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i].is_ellipsis() != out[i].is_ellipsis()) return std::nullopt;
  }
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i] == d) return out[i];
    if (out[i] == d) return in[i];
  }
  return std::nullopt;
}

NamedLinop shape_spec_split(const NamedLinop& A, const Tile& tile) {
  for (const auto& [d, range] : tile) {
    const auto partner = partner_of(A, d);
    const auto mine = range_of(tile, d);
    const auto other = partner ? range_of(tile, *partner) : std::nullopt;
    if (other && other->start == mine->start && other->stop == mine->stop) continue;
    refuse_split(A, d,
                 "it is one dimension with " + (partner ? "'" + partner->str() + "'" : "another") +
                     ", and both must be cut alike");
  }
  return split_unchanged(A, tile);
}

}  // namespace

const LinopType& linop_types::shape_spec() {
  return PALIMPSEST_LINOP_TYPE(.name = "ShapeSpec",
                               .functions = {.fn = unchanged,
                                             .adj_fn = unchanged,
                                             .normal_fn = unchanged,
                                             .split = shape_spec_split,
                                             .size = partner_size},
                               .adj_normal_fn = unchanged, .normal = shape_spec_normal,
                               .check = check_shape_spec);
}

NamedLinop ShapeSpec(Dims ishape, Dims oshape) {
  return make_linop(linop_types::shape_spec(), NamedShape(std::move(ishape), std::move(oshape)));
}

}  // namespace palimpsest
