// SPDX-License-Identifier: Apache-2.0
// Functions of parts of an operand, and proximal steps one part after the other.
#include "palimpsest/linop/core/splitting.hpp"

#include "palimpsest/named/sizes.hpp"
#include "palimpsest/solve/frame/prelude.hpp"
#include "palimpsest/solve/prox/node.hpp"
#include "palimpsest/solve/prox/parts.hpp"

namespace palimpsest {
namespace {

// The distance of the axis of d from the end, 1 for the last; none if an ellipsis comes behind it.
std::optional<std::size_t> from_end(const Dims& dims, const ND& d) {
  for (std::size_t k = dims.size(); k-- > 0;) {
    if (dims[k].is_ellipsis()) return std::nullopt;
    if (dims[k] == d) return dims.size() - k;
  }
  return std::nullopt;
}

// A parameter broadcasts against the operand, or other dimensions of its type: where it has an
// extent along d, it is cut too.
Parameter cut_parameter(const Parameter& p, const Dims& dims, const Tile& where) {
  Parameter part = p;
  for (const auto& [d, range] : where) {
    const std::size_t behind = from_end(dims, d).value_or(part.shape().size() + 1);
    const std::size_t rank = part.shape().size();
    if (behind > rank || part.shape()[rank - behind] == 1) continue;
    part = part.narrow(rank - behind, *range.start, *range.stop - *range.start);
  }
  return part;
}

void check_slice(const Prox& g, const ND& d, const Slice& range) {
  if (range.start && range.stop && *range.start >= 0 && *range.start < *range.stop &&
      range.step == 1) {
    return;
  }
  throw ValueError(who(g) + "split: dim '" + d.str() +
                   "': expected a slice with 0 <= start < stop, without steps");
}

}  // namespace

bool can_split(const NamedLinop& A, const ND& d) {
  const bool is_input = A.ishape().contains(d), is_output = A.oshape().contains(d);
  if (is_input != is_output) return false;
  if (!is_input) return A.ishape().has_ellipsis() && A.oshape().has_ellipsis();
  try {
    A.split({{d, slice(0, 1)}});
    return true;
  } catch (const SplitError&) {
    return false;
  }
}

bool is_refused_along(const Prox& g, const ND& d) {
  const auto rule = g.type().is_separable;
  if (rule == nullptr) return false;
  if (rule != is_separable_as_parts) return !g.is_separable(d);
  return std::any_of(g.parts().begin(), g.parts().end(),
                     [&](const Prox& part) { return is_refused_along(part, d); });
}

bool Prox::is_separable(const ND& d) const {
  if (!dims() || !from_end(*dims(), d)) return false;
  return type().is_separable != nullptr && type().is_separable(*this, d);
}

Prox Prox::split(const Tile& where) const {
  for (const auto& [d, range] : where) {
    check_slice(*this, d, range);
    if (is_separable(d)) continue;
    throw SplitError(who(*this) + "cannot split along '" + d.str() + "': expected one of " +
                     (dims() ? dims()->str() : "the dimensions that it was given, got none") +
                     " along which its elements do not belong together");
  }
  ProxParts data = node_->data;
  const Dims dims = parameter_dims(*this);
  for (auto& [name, p] : data.params) {
    if (p.present()) p = cut_parameter(p, dims, where);
  }
  for (Prox& part : data.parts) part = part.split(where);
  for (NamedLinop& A : data.linops) A = A.split(tile_within(where, A.dims()));
  return make_prox(type(), std::move(data));
}

namespace {

// The index of a tile in an array with these dimensions.
std::vector<Index> index_of_dim(const Dims& dims, std::size_t rank, const Tile& where) {
  std::vector<Index> index(rank, all);
  for (const auto& [d, range] : where) {
    if (const auto behind = from_end(dims, d)) index[rank - *behind] = Index(range);
  }
  return index;
}

bool is_cut(const Dims& dims, const Tile& where) {
  return std::any_of(where.begin(), where.end(),
                     [&](const auto& entry) { return from_end(dims, entry.first).has_value(); });
}

// t has axes of extent 1 where it broadcasts.
Variable step_of(const Variable& t, const Dims& dims, const Tile& where) {
  Tile own;
  const std::size_t rank = t.rank();
  for (const auto& [d, range] : where) {
    const std::size_t behind = *from_end(dims, d);
    if (behind <= rank && t.type().shape[rank - behind] != 1) own.emplace(d, range);
  }
  return own.empty() ? t : ops::index(t, index_of_dim(dims, rank, own));
}

std::vector<Tile> grid(const Space& space, const DimMap& sizes) {
  std::vector<Tile> tiles{{}};
  for (const auto& [d, size] : sizes) {
    const std::size_t rank = space.type().rank();
    const index_t n = space.type().shape[rank - *from_end(space.dims(), d)];
    std::vector<Tile> finer;
    for (const Tile& tile : tiles) {
      for (index_t at = 0; at < n; at += size) {
        finer.push_back(tile);
        finer.back().emplace(d, slice(at, std::min(at + size, n)));
      }
    }
    tiles = std::move(finer);
  }
  return tiles;
}

// State of a function whose parts run one after the other. A part sees its own slice of state per
// element, and all of the other state, such as keys, at its old value.
class TiledState {
 public:
  TiledState(const Prox& g, const Space& space, const StateScope& s)
      : list_(g.state(space)), old_(), latest_() {
    for (const auto& entry : list_.entries()) old_.push_back(s[entry.name]);
    latest_ = old_;
  }

  StateScope of(const Tile& where) const {
    StateList list;
    std::vector<Variable> values;
    for (std::size_t i = 0; i < old_.size(); ++i) {
      const auto& entry = list_.entries()[i];
      const bool has_part = is_cut(entry.space.dims(), where);
      values.push_back(has_part ? ops::index(latest_[i], index(i, where)) : old_[i]);
      list.add(entry.name, Space(values.back().type(), entry.space.dims()), entry.init);
    }
    return StateScope(list, std::move(values));
  }

  void take(const StateScope& part, const Tile& where) {
    for (std::size_t i = 0; i < old_.size(); ++i) {
      const Variable& update = part.updates()[i];
      if (!update.defined()) continue;
      const bool has_part = is_cut(list_.entries()[i].space.dims(), where);
      latest_[i] = has_part ? ops::set_subtensor(latest_[i], index(i, where), update) : update;
    }
  }

  void set(StateScope& s) const {
    for (std::size_t i = 0; i < old_.size(); ++i) s.set(list_.entries()[i].name, latest_[i]);
  }

 private:
  std::vector<Index> index(std::size_t i, const Tile& where) const {
    return index_of_dim(list_.entries()[i].space.dims(), latest_[i].rank(), where);
  }

  StateList list_;
  std::vector<Variable> old_, latest_;
};

}  // namespace

// Each part is written over the operand before the next is begun: they share a workspace.
Variable prox_in_tiles(const Prox& g, const Space& space, const DimMap& sizes, bool is_conjugate,
                       const Variable& v, const Variable& t, StateScope& s) {
  DimMap own;
  for (const auto& [d, size] : sizes) {
    if (!g.type().is_elementwise && g.is_separable(d) && from_end(space.dims(), d)) {
      own.emplace(d, size);
    }
  }
  if (own.empty()) return is_conjugate ? g.conjugate_prox(v, t, s) : g.prox(v, t, s);
  TiledState state(g, space, s);
  Variable whole = v;
  for (const Tile& where : grid(space, own)) {
    const std::vector<Index> index = index_of_dim(space.dims(), v.rank(), where);
    const Prox part = g.split(where);
    const Variable operand = ops::index(whole, index), step = step_of(t, space.dims(), where);
    StateScope inner = state.of(where);
    const Variable result =
        is_conjugate ? part.conjugate_prox(operand, step, inner) : part.prox(operand, step, inner);
    whole = ops::set_subtensor(whole, index, result);
    state.take(inner, where);
  }
  state.set(s);
  return whole;
}

}  // namespace palimpsest
