// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/distributed/gather_operator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "palimpsest/base/error.hpp"
#include "palimpsest/distributed/distributed_leaves.hpp"
#include "palimpsest/distributed/parts_operator.hpp"
#include "palimpsest/linop/containers/add.hpp"
#include "palimpsest/linop/containers/concat.hpp"
#include "palimpsest/linop/copies/saving.hpp"

namespace palimpsest {
namespace {

using namespace distributed_detail;

std::optional<Team> team_within(const NamedLinop& A) {
  if (A.has_attr("team")) return team_in(A);
  for (const NamedLinop& child : A.linops()) {
    if (const auto team = team_within(child)) return team;
  }
  return {};
}

// Runs joint work of all ranks. If it throws here, ranks that wait for this one end too.
template <class Work>
auto together(const Team& team, Work work) {
  try {
    return work();
  } catch (const Error& error) {
    team.abandon(error.what());
    throw;
  }
}

// The bytes of all ranks, on one of them.
std::vector<std::string> gather_bytes(const Team& team, const std::string& mine, int root) {
  const std::vector<std::string> lengths = gather_texts(team, std::to_string(mine.size()));
  std::vector<std::string> bytes(lengths.size());
  std::vector<Parcel> parcels;
  std::vector<Place> places;
  if (team.rank() != root) parcels.push_back({root, std::as_bytes(std::span(mine))});
  for (int r = 0; r < team.size() && team.rank() == root; ++r) {
    std::string& place = bytes[static_cast<std::size_t>(r)];
    if (r == root) {
      place = mine;
      continue;
    }
    place.resize(std::stoull(lengths[static_cast<std::size_t>(r)]));
    places.push_back({r, std::as_writable_bytes(std::span(place))});
  }
  exchange(team, parcels, places);
  return bytes;
}

NamedLinop joined(std::vector<NamedLinop> parts, const ND& d) {
  if (parts.size() == 1) return parts[0];
  ConcatDims along;
  if (parts[0].ishape().contains(d)) along.in = d;
  if (parts[0].oshape().contains(d)) along.out = d;
  return along.in || along.out ? Concat(std::move(parts), along) : Add(std::move(parts));
}

// Parts of a team side by side: the last axis that cuts something first. None: all are empty.
std::optional<NamedLinop> assembled(const Team& team, const CutDims& cuts,
                                    const std::vector<std::string>& bytes) {
  const std::function<std::optional<NamedLinop>(std::size_t, int)> below =
      [&](std::size_t axis, int rank) -> std::optional<NamedLinop> {
    if (axis == team.axes().size()) {
      const std::string& part = bytes[static_cast<std::size_t>(rank)];
      if (part.empty()) return {};
      return from_bytes(std::as_bytes(std::span(part)));
    }
    const auto& [name, size] = team.axes()[axis];
    const auto cut = std::find_if(cuts.begin(), cuts.end(),
                                  [&](const CutDim& c) { return c.team_axis == name; });
    std::vector<NamedLinop> parts;
    // Ranks along other axes have the same.
    for (int k = 0; k < (cut == cuts.end() ? 1 : size); ++k) {
      auto part = below(axis + 1, rank * size + k);
      if (part) parts.push_back(std::move(*part));
    }
    if (parts.empty()) return {};
    return cut == cuts.end() ? parts[0] : joined(std::move(parts), ND(cut->d));
  };
  return below(0, 0);
}

class Gathering {
 public:
  Gathering(Team team, int root) : team_(std::move(team)), root_(root) {}

  // On other ranks than the root this is some operator of the shape.
  NamedLinop whole(const NamedLinop& A) const {
    const std::string& type = A.type().name;
    const bool keeps_children = type == "DistributedStencil" || type == "DistributedElsewhere" ||
                                type == "DistributedLeaves";
    if (keeps_children && A.is_flipped()) return whole(A.H()).H();
    if (is_transform(A)) return with_extents(A, A[0]);
    if (A.has_attr("cut_dims")) return of_parts(A);
    if (A.linop_count() > 0) {
      LinopData data = copy_data(A);
      for (NamedLinop& child : data.children) child = whole(child);
      data.shape = with_sizes_in(data.shape, {});
      return from_data(std::move(data));
    }
    return same_everywhere(A);
  }

 private:
  // The whole operator of A with the sizes that stand in A.
  static NamedLinop with_extents(const NamedLinop& A, const NamedLinop& whole) {
    if (!A.has_attr("extents")) return whole;
    DimMap sizes;
    const auto extents = A.attr("extents").as_integers();
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
      const ND &in = whole.ishape()[axis], &out = whole.oshape()[axis];
      if (extents[axis] < 0) continue;
      sizes[in] = extents[axis];
      if (is_transform(A)) sizes[out] = extents[axis];
    }
    return with_other_sizes(whole, sizes);
  }
  static bool is_transform(const NamedLinop& A) {
    return A.type().name == "DistributedFft" || A.type().name == "DistributedStencil";
  }

  NamedLinop of_parts(const NamedLinop& A) const {
    const CutDims cuts = cut_dims_of(A);
    // Parts without elements add nothing.
    std::vector<NamedLinop> own;
    for (const NamedLinop& child : A.linops()) {
      if (!has_empty_part(child)) own.push_back(child);
    }
    std::string mine;
    if (!own.empty()) {
      NamedLinop part = A.has_attr("d") ? joined(own, ND(A.attr("d").as_string())) : own[0];
      // Recorded are those of the vectors before they move.
      DimMap sizes;
      for (const CutDim& cut : cuts) {
        if (cut.extent >= 0) sizes[ND(cut.d)] = cut.extent;
      }
      if (A.has_attr("extents")) part = with_other_sizes(part, sizes);
      const std::vector<std::byte> bytes = to_bytes(part);
      mine.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    const std::vector<std::string> bytes = gather_bytes(team_, mine, root_);
    if (team_.rank() != root_) return A[0];
    // If no rank has an element, the whole has none either.
    const auto whole = assembled(team_, cuts, bytes);
    return with_extents(A, whole ? *whole : without_empty_parts(A[0]));
  }

  NamedLinop same_everywhere(const NamedLinop& A) const {
    const NamedLinop whole = with_other_sizes(A, {});
    const std::vector<std::byte> bytes = to_bytes(whole);
    const std::vector<std::string> texts =
        gather_texts(team_, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    for (std::size_t r = 1; r < texts.size(); ++r) {
      if (texts[r] == texts[0]) continue;
      throw ValueError(fmt::format(
          "[gather_operator] {}: it is not a part of a distributed operator, and ranks 0 and {} "
          "have other parameters in it. Try to compose it before distribute()",
          A.name(), r));
    }
    return whole;
  }

  Team team_;
  int root_;
};

Team expect_team(const NamedLinop& A, const char* who) {
  if (const auto team = team_within(A)) return *team;
  throw ValueError(fmt::format("[{}] A: got {}, expected an operator made of parts by distribute()",
                               who, A.name()));
}

}  // namespace

std::optional<NamedLinop> gather_operator(const NamedLinop& A, int root) {
  const Team team = expect_team(A, "gather_operator");
  if (root < 0 || root >= team.size()) {
    throw ValueError(
        fmt::format("[gather_operator] root: got {}, expected 0 to {}", root, team.size() - 1));
  }
  NamedLinop whole = together(team, [&] { return Gathering(team, root).whole(A); });
  if (team.rank() != root) return {};
  return whole;
}

void save_distributed(const NamedLinop& A, const std::string& path) {
  const Team team = expect_team(A, "save_distributed");
  const auto whole = gather_operator(A);
  together(team, [&] {
    if (whole) save(*whole, path);
    gather_texts(team, "saved");
  });
}

}  // namespace palimpsest
