// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/distributed/distributed_leaves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include "palimpsest/base/error.hpp"
#include "palimpsest/distributed/communication_ops.hpp"
#include "palimpsest/kernels/arrays/copy.hpp"
#include "palimpsest/kernels/reduce/reduce_leaves.hpp"
#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/ops/common.hpp"

namespace palimpsest::distributed_detail {
namespace {

index_t item_of(DType dtype) { return static_cast<index_t>(item_size(dtype)); }

// Bytes sent at a time: 2 MB of two ranks take 1.9 ms with 64 KiB, 2.0 with 256, 2.15 with 1024.
constexpr index_t kSegmentBytes = 256 << 10;

// Segments that a rank sends and receives in one exchange; -1: none.
struct Turn {
  index_t sent_on, sent_back, terms, sum;
};

// Rank r receives segment s of the terms in exchange s + r - 1 and sends it on in the next one;
// sums leave the last rank right after its own terms, and go back in the same way.
Turn turn_of(index_t exchange, index_t self, index_t ranks, index_t segments) {
  const auto valid = [&](index_t s) { return s >= 0 && s < segments ? s : -1; };
  const bool is_first = self == 0, is_last = self == ranks - 1;
  return {is_last ? -1 : valid(exchange - self),
          is_first ? -1 : valid(exchange - (2 * ranks - 2 - self)),
          is_first ? -1 : valid(exchange - (self - 1)),
          is_last ? -1 : valid(exchange - (2 * ranks - 3 - self))};
}

index_t segments_of(index_t bytes) { return (bytes + kSegmentBytes - 1) / kSegmentBytes; }

// The number of sums that run_reduce() holds after n leaves: of blocks of kLeafRows leaves, which
// are added in pairs, one for each bit of their number; and of the leaves behind them.
index_t held_sums(index_t n) {
  const auto blocks = static_cast<std::uint64_t>(n / kLeafRows);
  return std::popcount(blocks) + (n % kLeafRows > 0 ? 1 : 0);
}

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
  const index_t own = own_leaves().size();
  if (type.shape.empty() || type.shape[0] != own) {
    throw ShapeError(fmt::format("[LeafSum] x: got {}, expected {} leaves along the first axis",
                                 to_string(type.shape), own));
  }
  return node(inputs, {{type.dtype, without_first(type.shape), type.device}});
}

std::vector<Extents> LeafSum::infer_shapes(const Apply&, std::span<const Extents> inputs) const {
  return {without_first(inputs[0])};
}

// The sums that the rank before sends.
index_t LeafSum::sums_before(index_t rank) const {
  if (rank == 0) return 0;
  const index_t start = part_range(leaves_, static_cast<int>(rank), group().size()).start;
  return start == leaves_ ? 1 : held_sums(start);
}

// The first leaf of a block begins a sum.
index_t LeafSum::most_sums() const {
  index_t most = 1;
  for (index_t n = 0; n < leaves_; ++n) {
    most = std::max(most, held_sums(n) + (n % kLeafRows == 0 ? 1 : 0));
  }
  return most;
}

// A copy of leaves that are not dense; then all sums of a segment but the first, twice: those that
// come and those that go.
std::size_t LeafSum::scratch_bytes(const Apply&, std::span<const Layout> inputs) const {
  const Layout& x = inputs[0];
  const index_t item = item_of(x.dtype), all = element_count(x.extents) * item;
  const index_t leaf = element_count(without_first(x.extents)) * item;
  const index_t sums = 2 * (most_sums() - 1) * std::min(kSegmentBytes, leaf);
  return at((x.is_dense() ? 0 : all) + sums);
}

std::vector<Variable> LeafSum::pullback(const Apply& apply,
                                        std::span<const Variable> cotangents) const {
  if (!cotangents[0].defined()) return {Variable()};
  const Variable alike = replicate(cotangents[0], team(), axes());
  return {ops::broadcast_to(ops::expand_dims(alike, {0}), apply.input(0).type().shape)};
}

Traffic LeafSum::traffic(const Apply& apply) const {
  const TensorType& x = apply.input(0).type();
  const index_t bytes = element_count(without_first(x.shape)) * item_of(x.dtype);
  const index_t ranks = group().size(), self = group().self, segments = segments_of(bytes);
  if (ranks == 1 || bytes == 0) return {};
  const bool is_at_end = self == 0 || self == ranks - 1;
  // Sums come while terms still do.
  const index_t waits = segments + (is_at_end ? 0 : std::min(segments, 2 * (ranks - 1 - self)));
  const index_t ways = (self == ranks - 1 ? 0 : sums_before(self + 1)) + (self == 0 ? 0 : 1);
  return {ways * bytes, ways * segments, waits};
}

namespace {

// The sums of the leaves before, in the order of run_reduce(), for one segment of the result.
class PartialSums {
 public:
  // `sum_at`: the place of sum i; `count` sums are there.
  PartialSums(DType dtype, std::vector<std::byte*> sum_at, index_t elements, index_t count)
      : dtype_(dtype), sum_at_(std::move(sum_at)), elements_(elements), count_(at(count)) {}

  // Adds leaves n .. n + leaves.size() - 1, at most to the end of a block.
  void add(index_t n, std::vector<const std::byte*> leaves) {
    const index_t end = n + static_cast<index_t>(leaves.size());
    if (n % kLeafRows == 0) {
      ++count_;
    } else {
      leaves.insert(leaves.begin(), sum_at_[count_ - 1]);
    }
    add_up(dtype_, leaves, elements_, sum_at_[count_ - 1]);
    if (end % kLeafRows != 0) return;
    for (index_t blocks = end / kLeafRows; blocks % 2 == 0; blocks /= 2) join_last();
  }
  void join_all() {
    while (count_ > 1) join_last();
  }

 private:
  void join_last() {
    --count_;
    const std::array<const std::byte*, 2> terms{sum_at_[count_ - 1], sum_at_[count_]};
    add_up(dtype_, terms, elements_, sum_at_[count_ - 1]);
  }

  DType dtype_;
  std::vector<std::byte*> sum_at_;
  index_t elements_;
  std::size_t count_;
};

}  // namespace

void LeafSum::run(RunContext& context) const {
  const ConstView& x = context.input(0);
  const MutableView& y = context.output(0);
  const index_t n = element_count(y.extents), item = item_of(y.dtype), bytes = n * item;
  const auto* leaves = static_cast<const std::byte*>(x.data);
  std::byte* scratch = context.scratch().data();
  const Layout layout{x.dtype, Extents(x.extents.begin(), x.extents.end()),
                      Strides(x.strides.begin(), x.strides.end()), 0};
  if (!layout.is_dense()) {
    const Strides dense = Layout::dense(x.dtype, layout.extents).strides;
    run_copy(x, MutableView{scratch, x.dtype, x.extents, dense});
    leaves = scratch;
    scratch += element_count(layout.extents) * item;
  }
  auto* const result = static_cast<std::byte*>(y.data);
  if (leaves_ == 0) std::memset(result, 0, at(bytes));
  const index_t ranks = group().size(), self = group().self, segments = segments_of(bytes);
  const PartRange own = own_leaves();
  const index_t most = most_sums(), room = std::min(kSegmentBytes, bytes);
  // Sum i of a segment: the first one in the result, others in scratch, by turns of two segments.
  const auto sum_at = [&](index_t s, index_t i) {
    if (i == 0) return result + s * kSegmentBytes;
    return scratch + ((s % 2) * (most - 1) + i - 1) * room;
  };
  const auto size_of = [&](index_t s) {
    return std::min(kSegmentBytes, bytes - s * kSegmentBytes);
  };
  const auto add_own = [&](index_t s) {
    std::vector<std::byte*> places;
    for (index_t i = 0; i < most; ++i) places.push_back(sum_at(s, i));
    PartialSums sums(y.dtype, std::move(places), size_of(s) / item, sums_before(self));
    for (index_t leaf = own.start; leaf < own.stop;) {
      const index_t end = std::min(own.stop, (leaf / kLeafRows + 1) * kLeafRows);
      std::vector<const std::byte*> terms;
      for (index_t i = leaf; i < end; ++i) {
        terms.push_back(leaves + (i - own.start) * bytes + s * kSegmentBytes);
      }
      sums.add(leaf, std::move(terms));
      leaf = end;
    }
    if (own.stop == leaves_ && own.size() > 0) sums.join_all();
  };
  if (ranks == 1) {
    for (index_t s = 0; s < segments; ++s) add_own(s);
    return;
  }
  const int before = self > 0 ? group().member(static_cast<int>(self) - 1) : 0;
  const int behind = self < ranks - 1 ? group().member(static_cast<int>(self) + 1) : 0;
  const auto sum = [&](index_t s, index_t i) { return std::span(sum_at(s, i), at(size_of(s))); };
  for (index_t e = 0; segments > 0 && e < segments + 2 * ranks - 3; ++e) {
    const Turn turn = turn_of(e, self, ranks, segments);
    if (self == 0 && turn.sent_on >= 0) add_own(turn.sent_on);
    std::vector<Parcel> parcels;
    std::vector<Place> places;
    for (index_t i = 0; turn.sent_on >= 0 && i < sums_before(self + 1); ++i) {
      parcels.push_back({behind, sum(turn.sent_on, i)});
    }
    if (turn.sent_back >= 0) parcels.push_back({before, sum(turn.sent_back, 0)});
    for (index_t i = 0; turn.terms >= 0 && i < sums_before(self); ++i) {
      places.push_back({before, sum(turn.terms, i)});
    }
    if (turn.sum >= 0) places.push_back({behind, sum(turn.sum, 0)});
    exchange(team(), parcels, places);
    if (turn.terms >= 0) add_own(turn.terms);
  }
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

std::optional<std::size_t> position_of(const Dims& dims, const ND& d) {
  const auto found = std::find(dims.begin(), dims.end(), d);
  if (found == dims.end()) return std::nullopt;
  return static_cast<std::size_t>(found - dims.begin());
}

Variable applied(const NamedLinop& A, const Variable& x, bool is_adjoint) {
  const Leaves leaves(A);
  const Dims& from = is_adjoint ? A[0].oshape() : A[0].ishape();
  const Dims& to = is_adjoint ? A[0].ishape() : A[0].oshape();
  const auto in = position_of(from, leaves.d), out = position_of(to, leaves.d);
  const Variable known = in ? x : alike(x, leaves.team, {leaves.axis});
  std::vector<Variable> results;
  for (std::size_t i = 0; i < A.linop_count(); ++i) {
    const PathScope path(A, i);
    Variable v = known;
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

// A^H inner A of operators whose results are not summed: the normal operator of each leaf.
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
  return PALIMPSEST_LINOP_TYPE(.name = "DistributedLeaves",
                               .functions = {.fn = leaves_fn,
                                             .adj_fn = leaves_adj_fn,
                                             .split = refuse_tiles,
                                             .adj_split = refuse_tiles,
                                             .size = leaves_size},
                               .normal = leaves_normal, .assemble = assemble_leaves,
                               .parts = &kVectorParts);
}

// A: the whole operator, or a part of it.
NamedLinop make_leaves(std::vector<NamedLinop> children, const NamedLinop& A, index_t leaves,
                       const Team& team, const ND& d, const std::string& axis) {
  const Placement placement(Placement::Entries{{d, axis}});
  return make_container(leaves_type(), std::move(children),
                        {{"team", team.node().id},
                         {"cut_dims", attribute_of(CutDims{{d.str(), axis}})},
                         {"input", spread_of(team, cuts_in(A.ishape(), placement))},
                         {"output", spread_of(team, cuts_in(A.oshape(), placement))},
                         {"axis", axis},
                         {"leaves", leaves},
                         {"d", d.str()}});
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
  return make_leaves(std::move(children), A, *n, team, d, axis);
}

NamedLinop joined_leaves(const NamedLinop& part, index_t leaves, const Team& team, const ND& d,
                         const std::string& axis) {
  const index_t own = part_range(leaves, team.coordinate(axis), team.size(axis)).size();
  std::vector<NamedLinop> children;
  for (index_t i = 0; i < own; ++i) children.push_back(part.split({{d, slice(i, i + 1)}}));
  if (children.empty()) children.push_back(part_of_tile(part, {{d, slice(0, 0)}}));
  return make_leaves(std::move(children), part, leaves, team, d, axis);
}

}  // namespace palimpsest::distributed_detail
