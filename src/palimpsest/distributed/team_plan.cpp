// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/distributed/team_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace palimpsest {
namespace {

// Parameters of a tree, each once.
void collect_bytes(const NamedLinop& A, std::map<const void*, index_t>& bytes) {
  for (const auto& [name, p] : A.params()) {
    const Tensor value = p.value();
    bytes[value.raw_data()] =
        std::max(bytes[value.raw_data()], static_cast<index_t>(value.nbytes()));
  }
  for (const NamedLinop& child : A.linops()) collect_bytes(child, bytes);
}

index_t parameter_bytes(const NamedLinop& A) {
  std::map<const void*, index_t> bytes;
  collect_bytes(A, bytes);
  index_t sum = 0;
  for (const auto& [address, n] : bytes) sum += n;
  return sum;
}

// The type of this rank's part of a vector with these dimensions.
TensorType part_of(TensorType x, const Dims& dims, const Team& team, const Placement& placement) {
  for (const auto& [d, axis] : placement.entries()) {
    const auto found = std::find(dims.begin(), dims.end(), d);
    if (found == dims.end()) continue;
    index_t& extent = x.shape[static_cast<std::size_t>(found - dims.begin())];
    extent = part_range(extent, team.coordinate(axis), team.size(axis)).size();
  }
  return x;
}

NamedLinop directed(const NamedLinop& A, Direction direction) {
  switch (direction) {
    case Direction::adjoint:
      return A.H();
    case Direction::normal:
      return A.N();
    default:
      return A;
  }
}

}  // namespace

Traffic traffic_of(const Plan& plan) {
  Traffic sum;
  for (const PlannedStep& step : plan.steps) {
    if (const Collective* const op = as_collective(step.node.op())) sum += op->traffic(step.node);
  }
  return sum;
}

const RankPlan& TeamPlan::largest() const {
  return *std::max_element(ranks.begin(), ranks.end(), [](const RankPlan& a, const RankPlan& b) {
    return a.peak_bytes < b.peak_bytes;
  });
}

const RankPlan& TeamPlan::smallest() const {
  return *std::min_element(ranks.begin(), ranks.end(), [](const RankPlan& a, const RankPlan& b) {
    return a.peak_bytes < b.peak_bytes;
  });
}

Traffic TeamPlan::traffic() const {
  Traffic sum;
  index_t most = 0;
  for (const RankPlan& rank : ranks) {
    sum += rank.traffic;
    most = std::max(most, rank.traffic.synchronisations);
  }
  sum.synchronisations = most;
  return sum;
}

std::string TeamPlan::str() const {
  const RankPlan &big = largest(), &small = smallest();
  const Traffic sent = traffic();
  const auto line = [](const char* what, const RankPlan& r) {
    return fmt::format("{:<10}{:>6}{:>16}{:>16}{:>16}{:>16}{:>10}\n", what, r.rank, r.peak_bytes,
                       r.input_bytes, r.parameter_bytes, r.traffic.bytes, r.traffic.messages);
  };
  return fmt::format("{:<10}{:>6}{:>16}{:>16}{:>16}{:>16}{:>10}\n", "", "rank", "peak bytes",
                     "input bytes", "data bytes", "sent bytes", "messages") +
         line("largest", big) + line("smallest", small) +
         fmt::format("all {} ranks send {} bytes in {} messages, with {} synchronisations\n",
                     ranks.size(), sent.bytes, sent.messages, sent.synchronisations);
}

TeamPlan plan_on_team(const NamedLinop& A, const Team& team, const Placement& placement,
                      const TensorType& x, Direction direction) {
  const Dims& dims = direction == Direction::adjoint ? A.oshape() : A.ishape();
  TeamPlan result;
  std::map<std::vector<index_t>, RankPlan> known;
  for (int rank = 0; rank < team.size(); ++rank) {
    const Team seen = Team::pretend(team.axes(), rank);
    // Ranks with parts of the same sizes hold and send the same.
    std::vector<index_t> key;
    for (const auto& [d, axis] : placement.entries()) {
      key.push_back(
          part_range(A.size(d).value_or(0), seen.coordinate(axis), seen.size(axis)).size());
    }
    // What a rank adds up depends on its place in the group.
    for (const TeamAxis& axis : seen.axes()) key.push_back(seen.coordinate(axis.name));
    const auto found = known.find(key);
    RankPlan plan = found != known.end() ? found->second : RankPlan();
    if (found == known.end()) {
      const NamedLinop part = directed(distribute(A, seen, placement), direction);
      const TensorType input = part_of(x, dims, seen, placement);
      const Plan planned = part.plan(input);
      plan.peak_bytes = planned.peak_bytes;
      plan.input_bytes = element_count(input.shape) * static_cast<index_t>(item_size(input.dtype));
      plan.parameter_bytes = parameter_bytes(part);
      plan.traffic = traffic_of(planned);
      known.emplace(std::move(key), plan);
    }
    plan.rank = rank;
    result.ranks.push_back(plan);
  }
  return result;
}

}  // namespace palimpsest
