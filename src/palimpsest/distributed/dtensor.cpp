// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/distributed/dtensor.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "palimpsest/base/error.hpp"
#include "palimpsest/distributed/team_node.hpp"
#include "palimpsest/graph/type.hpp"

namespace palimpsest {
namespace {

using distributed_detail::coordinate_of;
using distributed_detail::Parcel;
using distributed_detail::Place;

std::vector<PartRange> parts_on(int rank, const Dims& dims, const Extents& global, const Team& team,
                                const Placement& placement) {
  std::vector<PartRange> ranges;
  for (std::size_t i = 0; i < global.size(); ++i) {
    const auto axis = placement.axis_of(dims[i]);
    ranges.push_back(axis
                         ? part_range(global[i], coordinate_of(team, rank, *axis), team.size(*axis))
                         : PartRange{0, global[i]});
  }
  return ranges;
}

// True if this rank is the first of the ranks that hold the same part. Only the first one sends.
bool is_first_holder(int rank, const Dims& dims, const Team& team, const Placement& placement) {
  for (const TeamAxis& axis : team.axes()) {
    const bool cuts = std::any_of(dims.begin(), dims.end(),
                                  [&](const ND& d) { return placement.axis_of(d) == axis.name; });
    if (!cuts && coordinate_of(team, rank, axis.name) != 0) return false;
  }
  return true;
}

Extents extents_of_ranges(const std::vector<PartRange>& ranges) {
  Extents extents;
  for (const PartRange& range : ranges) extents.push_back(range.size());
  return extents;
}

// The indices that both hold; empty ranges where they have none in common.
std::vector<PartRange> common(const std::vector<PartRange>& a, const std::vector<PartRange>& b) {
  std::vector<PartRange> both;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const index_t start = std::max(a[i].start, b[i].start);
    both.push_back({start, std::max(start, std::min(a[i].stop, b[i].stop))});
  }
  return both;
}

Tensor cut_out(const Tensor& t, const std::vector<PartRange>& ranges,
               const std::vector<PartRange>& within) {
  std::vector<Index> index;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    index.push_back(
        Index(slice(ranges[i].start - within[i].start, ranges[i].stop - within[i].start)));
  }
  return t.index_with(index);
}

bool is_empty(const std::vector<PartRange>& ranges) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [](const PartRange& r) { return r.size() == 0; });
}

std::span<const std::byte> raw_bytes_of(const Tensor& t) {
  return {static_cast<const std::byte*>(t.raw_data()), static_cast<std::size_t>(t.nbytes())};
}

// The part of one rank. Of ranks with equal parts only the first sends.
struct Holding {
  std::vector<PartRange> ranges;
  bool is_first = true;
};

bool is_same_part(const std::vector<PartRange>& a, const std::vector<PartRange>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const PartRange& x, const PartRange& y) {
                      return x.start == y.start && x.stop == y.stop;
                    });
}

// Moves an array from the parts that ranks hold to the parts that they shall hold, if any.
Tensor moved_local(const Team& team, const Tensor& local, const std::vector<Holding>& from,
                   const std::vector<std::optional<std::vector<PartRange>>>& to) {
  const auto n = static_cast<std::size_t>(team.size()),
             self = static_cast<std::size_t>(team.rank());
  const auto sent = [&](std::size_t source, std::size_t target) -> std::vector<PartRange> {
    const bool sends = to[target] && from[source].is_first &&
                       !is_same_part(from[source].ranges, from[target].ranges);
    return sends ? common(from[source].ranges, *to[target]) : std::vector<PartRange>(1);
  };
  std::vector<Tensor> outgoing, incoming(n);
  std::vector<Parcel> parcels;
  std::vector<Place> places;
  for (std::size_t r = 0; r < n; ++r) {
    if (r == self) continue;
    if (const auto both = sent(self, r); !is_empty(both)) {
      outgoing.push_back(cut_out(local, both, from[self].ranges).contiguous());
      parcels.push_back({static_cast<int>(r), raw_bytes_of(outgoing.back())});
    }
    if (const auto both = sent(r, self); !is_empty(both)) {
      Tensor& block = incoming[r] =
          Tensor::empty(extents_of_ranges(both), local.dtype(), local.device());
      places.push_back({static_cast<int>(r),
                        {static_cast<std::byte*>(block.raw_mutable_data()),
                         static_cast<std::size_t>(block.nbytes())}});
    }
  }
  distributed_detail::exchange(team, parcels, places);
  if (!to[self]) return {};
  Tensor result = Tensor::empty(extents_of_ranges(*to[self]), local.dtype(), local.device());
  const auto put = [&](const std::vector<PartRange>& ranges, const Tensor& block) {
    Tensor place = cut_out(result, ranges, *to[self]);
    place.copy_from(block);
  };
  const auto kept = common(from[self].ranges, *to[self]);
  if (!is_empty(kept)) put(kept, cut_out(local, kept, from[self].ranges));
  for (std::size_t r = 0; r < n; ++r) {
    if (incoming[r].defined()) put(sent(r, self), incoming[r]);
  }
  return result;
}

void check_member(const Team& team, int rank, const char* what) {
  if (rank < 0 || rank >= team.size()) {
    throw ValueError(fmt::format("[DTensor] {}: got {}, expected 0 to {}, a rank of {}", what, rank,
                                 team.size() - 1, team.str()));
  }
}

void check_rank(const Dims& dims, const Extents& global) {
  if (dims.size() == global.size()) return;
  throw ShapeError(fmt::format("[DTensor] got {} extents, expected {}, one for each dimension",
                               global.size(), dims.size()));
}

std::vector<Holding> holdings(const Dims& dims, const Extents& global, const Team& team,
                              const Placement& placement) {
  std::vector<Holding> all;
  for (int r = 0; r < team.size(); ++r) {
    all.push_back(
        {parts_on(r, dims, global, team, placement), is_first_holder(r, dims, team, placement)});
  }
  return all;
}

}  // namespace

DTensor::DTensor(Tensor local, Dims dims, Extents global, Team team, Placement placement)
    : local_(std::move(local)),
      dims_(std::move(dims)),
      global_(std::move(global)),
      team_(std::move(team)),
      placement_(std::move(placement)) {}

DTensor DTensor::from_local(Tensor local, Dims dims, Extents global, Team team,
                            Placement placement) {
  check_rank(dims, global);
  placement.check(team);
  const Extents expected = extents_of_ranges(parts_on(team.rank(), dims, global, team, placement));
  const bool fits = local.shape() == expected;
  const std::string mine =
      fits ? std::string()
           : fmt::format("[DTensor::from_local] rank {}: got {}, expected {}, its part of {}",
                         team.rank(), to_string(local.shape()), to_string(expected),
                         to_string(global));
  for (const std::string& problem : distributed_detail::gather_texts(team, mine)) {
    if (!problem.empty()) throw ShapeError(problem);
  }
  return DTensor(std::move(local), std::move(dims), std::move(global), std::move(team),
                 std::move(placement));
}

DTensor DTensor::part_of(const Tensor& whole, Dims dims, Team team, Placement placement) {
  check_rank(dims, whole.shape());
  placement.check(team);
  const auto ranges = parts_on(team.rank(), dims, whole.shape(), team, placement);
  const std::vector<PartRange> origin(whole.shape().size());
  Tensor local = cut_out(whole, ranges, origin);
  return DTensor(std::move(local), std::move(dims), whole.shape(), std::move(team),
                 std::move(placement));
}

DTensor DTensor::scatter(const std::optional<Tensor>& whole, const TensorType& type, Dims dims,
                         Team team, Placement placement, int root) {
  check_rank(dims, type.shape);
  placement.check(team);
  check_member(team, root, "root");
  const bool is_root = team.rank() == root;
  const bool fits =
      !is_root || (whole && whole->shape() == type.shape && whole->dtype() == type.dtype);
  const std::string mine =
      fits
          ? std::string()
          : fmt::format("[DTensor::scatter] whole: got {}, expected {} on rank {}",
                        whole ? to_string(whole->shape()) : "nothing", to_string(type.shape), root);
  for (const std::string& problem : distributed_detail::gather_texts(team, mine)) {
    if (!problem.empty()) throw ShapeError(problem);
  }
  std::vector<Holding> from;
  std::vector<std::optional<std::vector<PartRange>>> to;
  for (int r = 0; r < team.size(); ++r) {
    const std::vector<PartRange> nothing(dims.size());
    from.push_back({r == root ? parts_on(r, dims, type.shape, team, {}) : nothing, r == root});
    to.emplace_back(parts_on(r, dims, type.shape, team, placement));
  }
  const Tensor source = is_root ? *whole : Tensor::empty({0}, type.dtype, type.device);
  Tensor local = moved_local(team, source, from, to);
  return DTensor(std::move(local), std::move(dims), type.shape, std::move(team),
                 std::move(placement));
}

std::vector<PartRange> DTensor::ranges_of(int rank) const {
  check_member(team_, rank, "rank");
  return parts_on(rank, dims_, global_, team_, placement_);
}

std::optional<Tensor> DTensor::gather(int root) const {
  check_member(team_, root, "root");
  std::vector<std::optional<std::vector<PartRange>>> to(static_cast<std::size_t>(team_.size()));
  to[static_cast<std::size_t>(root)] = parts_on(root, dims_, global_, team_, {});
  Tensor result = moved_local(team_, local_, holdings(dims_, global_, team_, placement_), to);
  return result.defined() ? std::optional(std::move(result)) : std::nullopt;
}

Tensor DTensor::gather_to_all() const { return redistribute({}).local(); }

DTensor DTensor::redistribute(const Placement& placement) const {
  placement.check(team_);
  std::vector<std::optional<std::vector<PartRange>>> to;
  for (int r = 0; r < team_.size(); ++r) {
    to.emplace_back(parts_on(r, dims_, global_, team_, placement));
  }
  Tensor local = moved_local(team_, local_, holdings(dims_, global_, team_, placement_), to);
  return DTensor(std::move(local), dims_, global_, team_, placement);
}

}  // namespace palimpsest
