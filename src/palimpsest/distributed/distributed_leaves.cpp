// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/distributed/distributed_leaves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "palimpsest/base/error.hpp"
#include "palimpsest/base/immortal.hpp"
#include "palimpsest/kernels/arrays/copy.hpp"
#include "palimpsest/linop/core/splitting.hpp"
#include "palimpsest/ops/common.hpp"
#include "palimpsest/ops/index/index.hpp"
#include "palimpsest/ops/shape/shape_ops.hpp"

namespace palimpsest::distributed_detail {
namespace {

std::size_t at(index_t i) { return static_cast<std::size_t>(i); }

index_t item_of(DType dtype) { return static_cast<index_t>(item_size(dtype)); }

Extents without_first(std::span<const index_t> extents) {
  return {extents.begin() + 1, extents.end()};
}

}  // namespace

std::string LeafSum::parameters() const {
  return CommunicationOp::parameters() + fmt::format(", leaves={}", leaves_);
}

Apply LeafSum::make_node(std::span<const Variable> inputs) const {
  ops::expect_inputs(inputs, 1, name());
  const TensorType& type = inputs[0].type();
  const index_t own = leaves_of(group().self);
  if (type.shape.empty() || type.shape[0] != own) {
    throw ShapeError(fmt::format("[LeafSum] x: got {}, expected {} leaves along the first axis",
                                 to_string(type.shape), own));
  }
  return node(inputs, {{type.dtype, without_first(type.shape), type.device}});
}

std::vector<Extents> LeafSum::infer_shapes(const Apply&, std::span<const Extents> inputs) const {
  return {without_first(inputs[0])};
}

// This rank's part of all leaves, what it sends of its own, and a leaf that lies elsewhere.
std::size_t LeafSum::scratch_bytes(const Apply&, std::span<const Layout> inputs) const {
  const index_t n = element_count(without_first(inputs[0].extents));
  const index_t mine = elements_of(n, group().self).size();
  const index_t elements = leaves_ * mine + leaves_of(group().self) * (n - mine);
  return at((elements + (inputs[0].is_dense() ? 0 : n)) * item_of(inputs[0].dtype));
}

std::vector<Variable> LeafSum::pullback(const Apply& apply,
                                        std::span<const Variable> cotangents) const {
  if (!cotangents[0].defined()) return {Variable()};
  const Variable alike = replicate(cotangents[0], team(), axes());
  return {ops::broadcast_to(ops::expand_dims(alike, {0}), apply.input(0).type().shape)};
}

Traffic LeafSum::traffic(const Apply& apply) const {
  const TensorType& x = apply.input(0).type();
  const index_t n = element_count(without_first(x.shape)), item = item_of(x.dtype);
  const index_t own = leaves_of(group().self), mine = elements_of(n, group().self).size();
  Traffic sum{0, 0, others() > 0 && n > 0 ? 2 : 0};
  for (int k = 0; k < group().size(); ++k) {
    if (k == group().self) continue;
    const index_t theirs = own * elements_of(n, k).size();
    sum += {(theirs + mine) * item, (theirs > 0 ? 1 : 0) + (mine > 0 ? 1 : 0), 0};
  }
  return sum;
}

void LeafSum::run(RunContext& context) const {
  const ConstView& x = context.input(0);
  const MutableView& y = context.output(0);
  const index_t n = element_count(y.extents), item = item_of(y.dtype);
  const int self = group().self;
  const PartRange mine = elements_of(n, self);
  std::byte* next = context.scratch().data();
  std::vector<std::byte*> received(at(group().size())), sent(received.size());
  for (int k = 0; k < group().size(); ++k) {
    received[at(k)] = next;
    next += leaves_of(k) * mine.size() * item;
    if (k == self) continue;
    sent[at(k)] = next;
    next += leaves_of(self) * elements_of(n, k).size() * item;
  }
  if (n == 0) return;
  const bool is_dense = Layout{x.dtype, Extents(x.extents.begin(), x.extents.end()),
                               Strides(x.strides.begin(), x.strides.end()), 0}
                            .is_dense();
  const Strides dense = Layout::dense(x.dtype, Extents(y.extents.begin(), y.extents.end())).strides;
  for (index_t leaf = 0; leaf < leaves_of(self); ++leaf) {
    const std::byte* elements = static_cast<const std::byte*>(x.data) + leaf * x.strides[0] * item;
    if (!is_dense) {
      run_copy(ConstView{elements, x.dtype, y.extents, x.strides.subspan(1)},
               MutableView{next, x.dtype, y.extents, dense});
      elements = next;
    }
    for (int k = 0; k < group().size(); ++k) {
      const PartRange range = elements_of(n, k);
      std::byte* const to = k == self ? received[at(k)] : sent[at(k)];
      std::memcpy(to + leaf * range.size() * item, elements + range.start * item,
                  at(range.size() * item));
    }
  }
  exchange_all(
      [&](int k) {
        return std::span<const std::byte>(sent[at(k)],
                                          at(leaves_of(self) * elements_of(n, k).size() * item));
      },
      [&](int k) { return std::span(received[at(k)], at(leaves_of(k) * mine.size() * item)); });
  std::vector<const std::byte*> parts;
  for (int k = 0; k < group().size(); ++k) {
    for (index_t leaf = 0; leaf < leaves_of(k); ++leaf) {
      parts.push_back(received[at(k)] + leaf * mine.size() * item);
    }
  }
  auto* const result = static_cast<std::byte*>(y.data);
  const auto part_of_result = [&](int k) {
    const PartRange range = elements_of(n, k);
    return std::span(result + range.start * item, at(range.size() * item));
  };
  if (parts.empty()) std::memset(result, 0, at(n * item));
  if (!parts.empty() && mine.size() > 0) {
    add_up(y.dtype, parts, mine.size(), part_of_result(self).data());
  }
  exchange_all([&](int) { return std::span<const std::byte>(part_of_result(self)); },
               part_of_result);
}

namespace {

// -- the operator --------------------------------------------------------------------------------

// Children are the leaves of this rank; where it has none, zeros of the shape of one.
struct Leaves {
  explicit Leaves(const NamedLinop& A)
      : team(team_in(A)),
        axis(A.attr("axis").as_string()),
        count(A.attr("leaves").as_integer()),
        d(A.attr("d").as_string()),
        own(part_range(count, team.coordinate(axis), team.size(axis))) {}
  Team team;
  std::string axis;
  index_t count;
  ND d;
  PartRange own;
};

std::optional<std::size_t> position(const Dims& dims, const ND& d) {
  const auto found = std::find(dims.begin(), dims.end(), d);
  if (found == dims.end()) return std::nullopt;
  return static_cast<std::size_t>(found - dims.begin());
}

Variable applied(const NamedLinop& A, const Variable& x, bool is_adjoint) {
  const Leaves leaves(A);
  const Dims& from = is_adjoint ? A[0].oshape() : A[0].ishape();
  const Dims& to = is_adjoint ? A[0].ishape() : A[0].oshape();
  const auto in = position(from, leaves.d), out = position(to, leaves.d);
  std::vector<Variable> results;
  for (std::size_t i = 0; i < A.linop_count(); ++i) {
    const PathScope path(A, i);
    Variable v = x;
    if (in && leaves.own.size() > 0) {
      std::vector<Index> index(x.rank(), Index(all));
      const auto start = static_cast<index_t>(i);
      index[*in] = slice(start, start + 1);
      v = ops::index(x, std::move(index));
    }
    results.push_back(is_adjoint ? adjoint_graph(A[i], v) : forward_graph(A[i], v));
  }
  if (out) {
    return results.size() == 1 ? results[0] : ops::join(static_cast<index_t>(*out), results);
  }
  Variable stacked = ops::stack(results);
  if (leaves.own.size() == 0) {
    std::vector<Index> none(stacked.rank(), Index(all));
    none[0] = slice(0, 0);
    stacked = ops::index(stacked, std::move(none));
  }
  const auto sum = std::make_shared<LeafSum>(leaves.team, leaves.axis, leaves.count);
  return sum->make_node({&stacked, 1}).output(0);
}

Variable leaves_fn(const NamedLinop& A, const Variable& x) { return applied(A, x, false); }
Variable leaves_adj_fn(const NamedLinop& A, const Variable& y) { return applied(A, y, true); }

// A^H inner A of operators whose results are not summed: that of each leaf.
NamedLinop leaves_normal(const NamedLinop& A, const NamedLinop* inner) {
  const Leaves leaves(A);
  if (A.is_flipped() || !A.oshape().contains(leaves.d) || (inner && is_in_parts(*inner))) {
    return {};
  }
  std::vector<NamedLinop> children;
  for (std::size_t i = 0; i < A.linop_count(); ++i) {
    if (!inner) {
      children.push_back(A[i].N());
      continue;
    }
    const auto start = static_cast<index_t>(i);
    const bool is_cut = inner->dims().contains(leaves.d) && leaves.own.size() > 1;
    const NamedLinop of_leaf =
        is_cut ? inner->split({{leaves.d, slice(start, start + 1)}}) : *inner;
    children.push_back(A[i].normal(of_leaf));
  }
  return make_container(A.type(), std::move(children),
                        {{"team", A.attr("team")},
                         {"cut_dims", A.attr("cut_dims")},
                         {"input", A.attr("input")},
                         {"output", A.attr("input")},
                         {"axis", A.attr("axis")},
                         {"leaves", A.attr("leaves")},
                         {"d", A.attr("d")}});
}

std::optional<index_t> leaves_size(const NamedLinop& A, const ND& d) {
  const Leaves leaves(A);
  return d == leaves.d ? leaves.own.size() : A[0].size(d);
}

NamedShape assemble_leaves(std::vector<NamedLinop>& children, const Assembly& how) {
  if (how.wanted) {
    for (NamedLinop& child : children) {
      child = child.copy();
      child.set_shape(*how.wanted);
    }
  }
  return NamedShape(children[0].ishape(), children[0].oshape());
}

const LinopType& leaves_type() {
  return immortal([] {
    return LinopType{
        .name = "DistributedLeaves",
        .functions = {.fn = leaves_fn,
                      .adj_fn = leaves_adj_fn,
                      .split = refuse_tiles,
                      .adj_split = refuse_tiles,
                      .size = leaves_size},
        .normal = leaves_normal,
        .assemble = assemble_leaves,
        .parts = &kVectorParts,
    };
  });
}

}  // namespace

NamedLinop distributed_leaves(const NamedLinop& A, const Team& team, const ND& d,
                              const std::string& axis) {
  const auto n = A.size(d);
  if (!n) {
    throw ShapeError(fmt::format("[distribute] {}: the size of {} is unknown. Try with_sizes()",
                                 A.name(), d.str()));
  }
  const PartRange own = part_range(*n, team.coordinate(axis), team.size(axis));
  std::vector<NamedLinop> children;
  for (index_t i = own.start; i < own.stop; ++i) {
    children.push_back(A.split({{d, slice(i, i + 1)}}));
  }
  if (children.empty()) children.push_back(part_of_tile(A, {{d, slice(0, 0)}}));
  const Placement placement(Placement::Entries{{d, axis}});
  return make_container(leaves_type(), std::move(children),
                        {{"team", team.node().id},
                         {"cut_dims", attribute_of(CutDims{{d.str(), axis}})},
                         {"input", attribute_of(cuts_in(A.ishape(), placement))},
                         {"output", attribute_of(cuts_in(A.oshape(), placement))},
                         {"axis", axis},
                         {"leaves", *n},
                         {"d", d.str()}});
}

}  // namespace palimpsest::distributed_detail
