// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/distributed/team.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "palimpsest/base/error.hpp"
#include "palimpsest/base/fork.hpp"
#include "palimpsest/base/immortal.hpp"
#include "palimpsest/distributed/team_node.hpp"

namespace palimpsest {
namespace {

using distributed_detail::Communicator;

std::string text_of_axes(const TeamAxes& axes) {
  std::string text;
  for (const TeamAxis& axis : axes) {
    text += (text.empty() ? "" : ", ") + axis.name + " " + std::to_string(axis.size);
  }
  return text;
}

index_t rank_count(const TeamAxes& axes) {
  index_t n = 1;
  std::set<std::string> names;
  for (const TeamAxis& axis : axes) {
    if (axis.size < 1 || axis.name.empty() || !names.insert(axis.name).second) {
      throw ValueError(
          fmt::format("[Team] axes: got ({}), expected different names with at least 1 rank each",
                      text_of_axes(axes)));
    }
    n *= axis.size;
  }
  return n;
}

// All teams of the process; operators name them by their place here.
struct Teams {
  Mutex mutex;
  std::vector<std::shared_ptr<const Team::Node>> all;
  std::shared_ptr<Communicator> world;
};

std::unique_ptr<Teams>& teams_pointer() {
  return immortal([] { return std::make_unique<Teams>(); });
}
Teams& teams() { return *teams_pointer(); }

bool is_same_node(const Team::Node& a, const Team::Node& b) {
  return a.axes == b.axes && a.rank == b.rank && a.size == b.size && a.timeout_s == b.timeout_s &&
         a.is_pretended == b.is_pretended && a.communicator == b.communicator;
}

std::shared_ptr<const Team::Node> known(Team::Node node) {
  Teams& t = teams();
  const std::lock_guard lock(t.mutex);
  for (const auto& other : t.all) {
    if (is_same_node(*other, node)) return other;
  }
  node.id = static_cast<index_t>(t.all.size());
  t.all.push_back(std::make_shared<const Team::Node>(std::move(node)));
  return t.all.back();
}

// Null where one rank runs alone.
std::shared_ptr<Communicator> world() {
  Teams& t = teams();
  const std::lock_guard lock(t.mutex);
  if (!t.world && distributed_detail::launched_ranks() > 1) {
    t.world = distributed_detail::world_communicator();
  }
  return t.world;
}

std::shared_ptr<const Team::Node> node_over(std::shared_ptr<Communicator> ranks, TeamAxes axes,
                                            double timeout_s) {
  if (!(timeout_s > 0)) {
    throw ValueError(fmt::format("[Team] timeout_s: got {}, expected a number above 0", timeout_s));
  }
  const int size = ranks ? ranks->size() : 1;
  if (rank_count(axes) != size) {
    throw ValueError(
        fmt::format("[Team] axes: got ({}), expected a product of {}, the ranks of the run",
                    text_of_axes(axes), size));
  }
  const int rank = ranks ? ranks->rank() : 0;
  return known({.axes = std::move(axes),
                .rank = rank,
                .size = size,
                .timeout_s = timeout_s,
                .communicator = size > 1 ? std::move(ranks) : nullptr});
}

std::size_t index_of(const Team& team, std::string_view axis) {
  for (std::size_t i = 0; i < team.axes().size(); ++i) {
    if (team.axes()[i].name == axis) return i;
  }
  throw NameError(fmt::format("[{}] axis: got \"{}\", expected one of ({})", team.str(), axis,
                              text_of_axes(team.axes())));
}

}  // namespace

PartRange part_range(index_t extent, int part, int parts) {
  const index_t each = extent / parts, more = extent % parts;
  const index_t start = part * each + std::min<index_t>(part, more);
  return {start, start + each + (part < more ? 1 : 0)};
}

Team::Team() : node_(known({})) {}

Team::Team(TeamAxes axes, double timeout_s)
    : node_(node_over(palimpsest::world(), std::move(axes), timeout_s)) {}

Team Team::world(double timeout_s) {
  const std::shared_ptr<Communicator> ranks = palimpsest::world();
  return Team({{"rank", ranks ? ranks->size() : 1}}, timeout_s);
}

Team Team::of(const void* mpi_comm, TeamAxes axes, double timeout_s) {
  return Team(node_over(distributed_detail::communicator_of(mpi_comm), std::move(axes), timeout_s));
}

Team Team::pretend(TeamAxes axes, int rank) {
  const index_t size = rank_count(axes);
  if (rank < 0 || rank >= size) {
    throw ValueError(fmt::format("[Team::pretend] rank: got {}, expected 0 to {}", rank, size - 1));
  }
  return Team(known({.axes = std::move(axes),
                     .rank = rank,
                     .size = static_cast<int>(size),
                     .is_pretended = true}));
}

int Team::rank() const { return node_->rank; }
int Team::size() const { return node_->size; }
const TeamAxes& Team::axes() const { return node_->axes; }
bool Team::is_pretended() const { return node_->is_pretended; }
double Team::timeout_s() const { return node_->timeout_s; }

int Team::size(std::string_view axis) const { return axes()[index_of(*this, axis)].size; }

int Team::coordinate(std::string_view axis) const {
  return distributed_detail::coordinate_of(*this, rank(), axis);
}

Team Team::seen_from(int rank) const {
  if (is_pretended()) return pretend(axes(), rank);
  throw StateError(
      fmt::format("[{}] is a team of real ranks: it is seen from this one only", str()));
}

Team Team::reshaped(TeamAxes axes) const {
  if (!is_pretended()) return Team(node_over(node_->communicator, std::move(axes), timeout_s()));
  if (rank_count(axes) != size()) {
    throw ValueError(fmt::format("[{}] axes: got ({}), expected a product of {}, its ranks", str(),
                                 text_of_axes(axes), size()));
  }
  return pretend(std::move(axes), rank());
}

void Team::abandon(std::string_view why) const noexcept {
  if (node_->communicator) node_->communicator->abandon(why);
}

std::string Team::str() const { return fmt::format("Team({})[{}]", text_of_axes(axes()), rank()); }

namespace distributed_detail {

Team team_of_id(index_t id) {
  Teams& t = teams();
  const std::lock_guard lock(t.mutex);
  if (id >= 0 && id < static_cast<index_t>(t.all.size())) {
    return Team(t.all[static_cast<std::size_t>(id)]);
  }
  throw StateError(
      fmt::format("[Team] number {} is of another process. Try to distribute the "
                  "operator here",
                  id));
}

int coordinate_of(const Team& team, int rank, std::string_view axis) {
  int below = 1;
  const std::size_t index = index_of(team, axis);
  for (std::size_t i = index + 1; i < team.axes().size(); ++i) below *= team.axes()[i].size;
  return rank / below % team.axes()[index].size;
}

int Group::member(int k) const {
  int rank = first_;
  for (std::size_t i = axes_.size(); i-- > 0; k /= axes_[i].size) {
    rank += k % axes_[i].size * axes_[i].step;
  }
  return rank;
}

Group group_of(const Team& team, const std::vector<std::string>& axes) {
  for (const std::string& axis : axes) index_of(team, axis);  // NameError
  Group group;
  group.first_ = team.rank();
  int step = team.size();
  for (const TeamAxis& axis : team.axes()) {
    step /= axis.size;
    if (std::find(axes.begin(), axes.end(), axis.name) == axes.end()) continue;
    const int own = team.rank() / step % axis.size;
    group.axes_.push_back({axis.size, step});
    group.size_ *= axis.size;
    group.first_ -= own * step;
    group.self = group.self * axis.size + own;
  }
  return group;
}

void exchange(const Team& team, std::span<const Parcel> parcels, std::span<const Place> places,
              double timeout_s) {
  if (team.is_pretended()) {
    throw StateError(
        fmt::format("[{}] is pretended: its operators are planned, never run", team.str()));
  }
  if (!team.node().communicator) return;
  const std::string problem =
      team.node().communicator->exchange(parcels, places, std::max(timeout_s, team.timeout_s()));
  if (!problem.empty()) throw CommunicationError(fmt::format("[{}] {}", team.str(), problem));
}

std::vector<std::string> gather_texts(const Team& team, const std::string& mine, double timeout_s) {
  const auto n = static_cast<std::size_t>(team.size());
  std::vector<std::string> texts(n);
  const auto own = static_cast<std::size_t>(team.rank());
  texts[own] = mine;
  const auto all = [&](auto bytes_of, auto place_of) {
    std::vector<Parcel> parcels;
    std::vector<Place> places;
    for (std::size_t r = 0; r < n; ++r) {
      if (r == own) continue;
      parcels.push_back({static_cast<int>(r), bytes_of()});
      places.push_back({static_cast<int>(r), place_of(r)});
    }
    exchange(team, parcels, places, timeout_s);
  };
  const std::uint64_t length = mine.size();
  std::vector<std::uint64_t> lengths(n, length);
  all([&] { return std::as_bytes(std::span(&length, 1)); },
      [&](std::size_t r) { return std::as_writable_bytes(std::span(&lengths[r], 1)); });
  for (std::size_t r = 0; r < n; ++r) texts[r].resize(lengths[r]);
  all([&] { return std::as_bytes(std::span(mine)); },
      [&](std::size_t r) { return std::as_writable_bytes(std::span(texts[r])); });
  return texts;
}

}  // namespace distributed_detail
}  // namespace palimpsest
