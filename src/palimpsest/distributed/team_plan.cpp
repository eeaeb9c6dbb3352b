// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/distributed/team_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "palimpsest/plan/loop_plan.hpp"

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

RankPlan planned_rank(const NamedLinop& A, const Team& seen, const Placement& placement,
                      const TensorType& x, Direction direction) {
  const NamedLinop part = directed(distribute(A, seen, placement), direction);
  const Dims& dims = direction == Direction::adjoint ? A.oshape() : A.ishape();
  TensorType input = part_of(x, dims, seen, placement);
  // A dimension may be placed by the name that a transform gives it.
  for (std::size_t axis = 0; axis < dims.size() && dims.size() == input.shape.size(); ++axis) {
    if (const auto n = part.size(part.ishape()[axis])) input.shape[axis] = *n;
  }
  const Plan planned = part.plan(input);
  return {.rank = seen.rank(),
          .peak_bytes = planned.peak_bytes,
          .input_bytes = byte_count(input.shape, input.dtype),
          .parameter_bytes = parameter_bytes(part),
          .traffic = traffic_of(planned)};
}

// The fewest ranks along a dimension; none: the first rank never fits. Notes the fewest bytes seen.
struct Search {
  const NamedLinop& A;
  index_t bytes;
  const TensorType& x;
  Direction direction;
  index_t fewest_bytes = 0;
  int ranks_of_fewest = 0;

  bool fits(const ND& d, int ranks) {
    const RankPlan first =
        planned_rank(A, Team::pretend({{"rank", ranks}}), Placement({{d, "rank"}}), x, direction);
    if (ranks_of_fewest == 0 || first.total_bytes() < fewest_bytes) {
      fewest_bytes = first.total_bytes();
      ranks_of_fewest = ranks;
    }
    return first.total_bytes() <= bytes;
  }
  std::optional<int> fewest(const ND& d, int most) {
    int below = 0, ranks = 1;
    while (!fits(d, ranks)) {
      below = ranks;
      if (ranks == most) return {};
      ranks = std::min(2 * ranks, most);
    }
    while (ranks - below > 1) {
      const int middle = below + (ranks - below) / 2;
      (fits(d, middle) ? ranks : below) = middle;
    }
    return ranks;
  }
};

}  // namespace

TensorType part_of(TensorType x, const Dims& dims, const Team& team, const Placement& placement) {
  for (const auto& [d, axis] : placement.entries()) {
    const auto found = std::find(dims.begin(), dims.end(), d);
    if (found == dims.end()) continue;
    index_t& extent = x.shape[static_cast<std::size_t>(found - dims.begin())];
    extent = part_range(extent, team.coordinate(axis), team.size(axis)).size();
  }
  return x;
}

Traffic traffic_of(const Plan& plan) {
  Traffic sum;
  for (const PlannedStep& step : plan.steps) {
    if (const Collective* const op = as_collective(step.node.op())) sum += op->traffic(step.node);
    if (!step.loop) continue;
    const Traffic each = traffic_of(step.loop->body);
    const index_t n = step.loop->n_steps.value_or(1);
    sum += {n * each.bytes, n * each.messages, n * each.synchronisations};
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

TeamPlan plan_on_team(const Team& team, const PlanOfRank& plan_of_rank) {
  TeamPlan result;
  for (int rank = 0; rank < team.size(); ++rank) {
    result.ranks.push_back(plan_of_rank(Team::pretend(team.axes(), rank)));
    result.ranks.back().rank = rank;
  }
  return result;
}

TeamPlan plan_on_team(const NamedLinop& A, const Team& team, const Placement& placement,
                      const TensorType& x, Direction direction) {
  return plan_on_team(
      team, [&](const Team& seen) { return planned_rank(A, seen, placement, x, direction); });
}

SmallestTeam smallest_team(const NamedLinop& A, index_t bytes, const TensorType& x,
                           Direction direction, const SmallestTeamOptions& options) {
  Search search{A, bytes, x, direction};
  std::optional<SmallestTeam> best;
  for (const ND& d : options.candidates.empty() ? A.dims() : options.candidates) {
    const index_t n = d.is_concrete() || d.is_ordinal() ? A.size(d).value_or(0) : 0;
    if (n == 0 && !options.candidates.empty()) {
      throw ShapeError(fmt::format(
          "[smallest_team] {}: the size of {} is unknown. Try with_sizes()", A.name(), d.str()));
    }
    if (n == 0) continue;
    try {
      const int most = static_cast<int>(std::min<index_t>(n, options.most_ranks));
      const auto ranks = search.fewest(d, best ? std::min(most, best->ranks) : most);
      if (!ranks) continue;
      const Placement placement({{d, "rank"}});
      TeamPlan plan = plan_on_team(A, Team::pretend({{"rank", *ranks}}), placement, x, direction);
      const bool is_better =
          !best || *ranks < best->ranks || plan.traffic().bytes < best->plan.traffic().bytes;
      if (is_better) best = SmallestTeam{*ranks, placement, std::move(plan)};
    } catch (const SplitError&) {
      // This dimension cannot be cut.
    }
  }
  if (best) return std::move(*best);
  throw BudgetError(
      fmt::format("[smallest_team] no team is large enough: got {} bytes for each rank, the fewest "
                  "found are {} "
                  "on {} ranks. Try .most_ranks, or a placement of two dimensions",
                  bytes, search.fewest_bytes, search.ranks_of_fewest));
}

}  // namespace palimpsest
