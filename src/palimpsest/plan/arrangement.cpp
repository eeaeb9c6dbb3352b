// SPDX-License-Identifier: Apache-2.0
// Invariant: two buffers share bytes only if every step that uses the one is done before any step
// that uses the other begins. In one lane the positions of the steps show this. For several lanes a
// model time is used, in which each step takes as long as it has elements. Buffers are placed for
// their lives in that time. A step that uses bytes again waits for the steps that used them before,
// however long these really take.
#include "palimpsest/plan/arrangement.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "palimpsest/plan/lanes.hpp"
#include "palimpsest/plan/loop_plan.hpp"
#include "palimpsest/plan/part_places.hpp"
#include "palimpsest/plan/placement.hpp"
#include "palimpsest/plan/position.hpp"
#include "palimpsest/plan/repeat_steps.hpp"
#include "palimpsest/plan/step_order.hpp"

namespace palimpsest {
namespace {

class Arranger {
 public:
  Arranger(Plan& plan, std::vector<bool> is_kept, const PlanRequest& request)
      : plan_(plan), is_kept_(std::move(is_kept)), request_(request) {}

  void run() { apply(choose_arrangement()); }

 private:
  int step() const { return static_cast<int>(plan_.steps.size()); }

  // -- order -----------------------------------------------------------------------------------

  // Calls visit(part, is_within) for the parts of a buffer that can share bytes with the accessed
  // part: that part and those within it (true), and those around it (false).
  template <class Visit>
  void for_each_related(const BufferUse& use, Visit visit) const {
    visit(use.part, true);
    const std::vector<int>* within =
        use.part < 0 ? &parts_in_[at(use.buffer)] : &parts_of_[at(use.part)];
    std::vector<int> left = *within;
    while (!left.empty()) {
      const int part = left.back();
      left.pop_back();
      visit(part, true);
      left.insert(left.end(), parts_of_[at(part)].begin(), parts_of_[at(part)].end());
    }
    for (int p = use.part; p >= 0;) visit(p = plan_.parts[at(p)].parent, false);
  }
  void find_parts() {
    parts_in_.assign(plan_.buffers.size(), {});
    parts_of_.assign(plan_.parts.size(), {});
    for (std::size_t p = 0; p < plan_.parts.size(); ++p) {
      const BufferPart& part = plan_.parts[p];
      auto& parts = part.parent < 0 ? parts_in_[at(part.buffer)] : parts_of_[at(part.parent)];
      parts.push_back(static_cast<int>(p));
    }
  }

  // Two steps that use a buffer, one of which writes it, keep their order, unless they use
  // different parts. A step that overwrites a container stays behind the earlier steps that can
  // fail: a failed call must leave the container unchanged.
  OrderProblem order_problem() {
    OrderProblem problem;
    problem.n_steps = step();
    find_parts();
    struct User {
      int writer = -1;
      std::vector<int> readers;  // since
    };
    std::vector<User> whole(plan_.buffers.size()), parts(plan_.parts.size());
    steps_of_.assign(plan_.buffers.size(), {});
    std::vector<int> failing;
    int last_collective = -1;
    for (int i = 0; i < problem.n_steps; ++i) {
      const PlannedStep& planned = plan_.steps[at(i)];
      bool overwrites_container = false;
      for (const BufferUse& use : uses_of(plan_, planned)) {
        const auto user = [&](int part) -> User& {
          return part < 0 ? whole[at(use.buffer)] : parts[at(part)];
        };
        const auto wait = [&](int earlier) {
          if (earlier >= 0 && earlier != i) problem.constraints.emplace_back(earlier, i);
        };
        std::vector<int>& steps = steps_of_[at(use.buffer)];
        if (steps.empty() || steps.back() != i) steps.push_back(i);
        for_each_related(use, [&](int part, bool is_within) {
          wait(user(part).writer);
          if (!use.writes) return;
          for (int reader : user(part).readers) wait(reader);
          if (is_within) user(part) = {};
        });
        if (use.writes) {
          user(use.part).writer = i;
          overwrites_container |= plan_.buffers[at(use.buffer)].kind == BufferKind::container;
        } else {
          user(use.part).readers.push_back(i);
        }
      }
      if (overwrites_container) {
        for (int earlier : failing) problem.constraints.emplace_back(earlier, i);
      }
      if (planned.node.op().can_fail()) failing.push_back(i);
      if (first_collective(planned)) {
        if (last_collective >= 0) problem.constraints.emplace_back(last_collective, i);
        last_collective = i;
      }
    }
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      if (plan_.buffers[b].kind != BufferKind::arena || steps_of_[b].empty()) continue;
      problem.buffers.push_back({aligned_bytes(plan_.buffers[b].bytes), steps_of_[b], is_kept_[b]});
    }
    return problem;
  }
  static index_t aligned_bytes(index_t bytes) {
    return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
  }

  // A way to run the steps: their order, the lanes, and the places of the buffers.
  struct Arrangement {
    LaneSchedule schedule;
    std::vector<index_t> offsets;  // per buffer
    ArenaSize placement;
  };

  index_t bytes_outside() const { return plan_.output_bytes + plan_.update_bytes; }
  index_t peak_of(const Arrangement& a) const { return a.placement.bytes + bytes_outside(); }
  // The budget without the copies that the state of a call may force, if that leaves anything.
  index_t limit() const {
    const index_t limit = *request_.budget - plan_.entry_copy_bytes;
    return limit >= bytes_outside() ? limit : *request_.budget;
  }

  Arrangement choose_arrangement() {
    OrderProblem problem = order_problem();
    if (!request_.reorders) {
      Arrangement given = arrange(in_one_lane(as_they_are()), request_.effort);
      plan_.serial_peak_bytes = peak_of(given);
      return given;
    }
    Arrangement serial = arrange(in_one_lane(low_peak_order(problem)), request_.effort);
    const auto is_within = [&] { return !request_.budget || peak_of(serial) <= limit(); };
    if (!is_within()) {
      constexpr double kMore = 10;
      Arrangement other =
          arrange(in_one_lane(low_peak_order(problem, kMore)), request_.effort * kMore);
      if (peak_of(other) < peak_of(serial)) serial = std::move(other);
      if (!is_within()) repeat_cheap_steps(serial, kMore);
    }
    plan_.serial_peak_bytes = peak_of(serial);
    if (!is_within()) return serial;
    if (auto wide = in_several_lanes(order_problem(), serial)) return std::move(*wide);
    return serial;
  }

  // Bytes of the arena that are live at each step, in the order of the steps.
  std::vector<index_t> live_at_steps() const {
    const std::vector<Interval> lives = lives_in(in_one_lane(as_they_are()));
    std::vector<index_t> live(plan_.steps.size() + 1, 0);
    for (const Interval& life : lives) {
      live[at(life.first)] += aligned_bytes(life.bytes);
      live[at(life.last) + 1] -= aligned_bytes(life.bytes);
    }
    for (std::size_t i = 1; i < live.size(); ++i) live[i] += live[i - 1];
    live.pop_back();
    return live;
  }
  std::vector<int> as_they_are() const {
    std::vector<int> order(plan_.steps.size());
    std::iota(order.begin(), order.end(), 0);
    return order;
  }
  // The peak, and then how far and how long the budget is exceeded.
  std::pair<index_t, index_t> excess() const {
    const index_t room = limit() - bytes_outside();
    index_t most = 0, sum = 0;
    for (index_t live : live_at_steps()) {
      most = std::max(most, live);
      sum += std::max<index_t>(live - room, 0);
    }
    return {most, sum};
  }

  // Repeats cheap steps, instead of keeping their results over the fullest step, as long as the
  // excess falls. Takes the result only if its peak is lower.
  void repeat_cheap_steps(Arrangement& serial, double more) {
    constexpr int kMostRepetitions = 100;
    Plan plan = plan_;
    reorder(plan, serial.schedule.order);
    Arranger now(plan, is_kept_, request_);
    now.order_problem();
    for (int k = 0; k < kMostRepetitions && now.excess().second > 0; ++k) {
      if (!now.repeat_one()) break;
    }
    if (plan.repeated_bytes == 0) return;
    Arrangement repeated =
        now.arrange(in_one_lane(low_peak_order(now.order_problem(), more)), request_.effort * more);
    if (peak_of(repeated) >= peak_of(serial)) return;
    plan_ = std::move(plan);
    is_kept_ = std::move(now.is_kept_);
    order_problem();
    serial = std::move(repeated);
  }
  bool repeat_one() {
    const std::pair<index_t, index_t> present = excess();
    const std::vector<index_t> live = live_at_steps();
    const int full = static_cast<int>(std::max_element(live.begin(), live.end()) - live.begin());
    for (const Repetition& repetition : repetitions_at(plan_, is_kept_, full)) {
      Plan plan = with_repeated(plan_, repetition);
      std::vector<bool> is_kept = is_kept_;
      is_kept.push_back(false);
      Arranger other(plan, std::move(is_kept), request_);
      other.order_problem();
      if (other.excess() >= present) continue;
      plan_ = std::move(plan);
      is_kept_ = std::move(other.is_kept_);
      steps_of_ = std::move(other.steps_of_);
      return true;
    }
    return false;
  }
  static void reorder(Plan& plan, std::span<const int> order) {
    std::vector<PlannedStep> steps;
    for (int i : order) steps.push_back(std::move(plan.steps[at(i)]));
    plan.steps = std::move(steps);
  }

  // The widest that is worth it and fits.
  std::optional<Arrangement> in_several_lanes(const OrderProblem& problem,
                                              const Arrangement& serial) const {
    constexpr int kMostSteps = 2000;
    if (request_.threads < 2 || step() < 2 || step() > kMostSteps) return {};
    if (first_collective(plan_)) return {};
    std::vector<std::vector<int>> before(plan_.steps.size());
    for (const auto& [first, second] : problem.constraints) {
      before[at(second)].push_back(first);
    }
    std::vector<index_t> work;
    index_t total = 0;
    for (const PlannedStep& planned : plan_.steps) {
      work.push_back(std::max<index_t>(planned.work, 1));
      total += work.back();
    }
    std::vector<const LaneLimit*> limits;
    for (const PlannedStep& planned : plan_.steps) {
      const Origin* const origin = origin_of(planned.node);
      limits.push_back(origin ? origin->limit.get() : nullptr);
    }
    const LaneProblem lanes{serial.schedule.order, before, work, request_.parallel_grain, limits};
    const index_t most = request_.budget ? limit() : 2 * peak_of(serial);
    for (int n = std::min(request_.threads, step()); n > 1; --n) {
      LaneSchedule schedule = in_lanes(lanes, n);
      // A tenth of the work, at least, is done beside the rest of it.
      if (schedule.n_lanes < 2 || schedule.length > total - total / 10) return {};
      n = std::min(n, schedule.n_lanes);
      if (live_bytes(schedule) + bytes_outside() > most) continue;
      Arrangement wide = arrange(std::move(schedule), request_.effort);
      if (peak_of(wide) <= most) return wide;
    }
    return {};
  }

  // The lives of the buffers of the arena, in sections between starts and ends of steps.
  std::vector<Interval> lives_in(const LaneSchedule& schedule) const {
    std::vector<index_t> times = schedule.start;
    times.insert(times.end(), schedule.finish.begin(), schedule.finish.end());
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
    const auto section = [&](index_t time) {
      return static_cast<int>(std::lower_bound(times.begin(), times.end(), time) - times.begin());
    };
    const int last = std::max(static_cast<int>(times.size()) - 2, 0);
    std::vector<Interval> lives;
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      Interval life{plan_.buffers[b].kind == BufferKind::arena ? plan_.buffers[b].bytes : 0, last,
                    0};
      for (int i : steps_of_[b]) {
        life.first = std::min(life.first, section(schedule.start[at(i)]));
        life.last = std::max(life.last, section(schedule.finish[at(i)]) - 1);
      }
      if (steps_of_[b].empty()) life.first = 0;
      if (is_kept_[b]) life.last = last;
      lives.push_back(life);
    }
    return lives;
  }

  index_t live_bytes(const LaneSchedule& schedule) const {
    const std::vector<Interval> lives = lives_in(schedule);
    std::vector<index_t> change(2 * plan_.steps.size() + 2, 0);
    for (const Interval& life : lives) {
      change[at(life.first)] += aligned_bytes(life.bytes);
      change[at(life.last) + 1] -= aligned_bytes(life.bytes);
    }
    index_t live = 0, most = 0;
    for (index_t c : change) most = std::max(most, live += c);
    return most;
  }

  Arrangement arrange(LaneSchedule schedule, double effort) const {
    Arrangement result{std::move(schedule), {}, {}};
    std::vector<Interval> lives = lives_in(result.schedule);
    const index_t capacity = request_.budget ? std::max<index_t>(limit() - bytes_outside(), 0) : 0;
    result.placement = place(lives, {.capacity = capacity, .effort = effort});
    for (const Interval& life : lives) result.offsets.push_back(life.offset);
    return result;
  }

  void apply(const Arrangement& chosen) {
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      plan_.buffers[b].offset = chosen.offsets[b];
      const BufferKind kind = plan_.buffers[b].kind;
      const bool is_ours =
          kind == BufferKind::arena || kind == BufferKind::output || kind == BufferKind::update;
      if (is_ours) plan_.no_reuse_bytes += plan_.buffers[b].bytes;
    }
    plan_.arena_bytes = chosen.placement.bytes;
    plan_.lower_bound_bytes = chosen.placement.lower_bound;
    plan_.peak_bytes = peak_of(chosen);
    plan_.lanes = chosen.schedule.n_lanes;
    plan_.parallel_grain = request_.parallel_grain;
    const OrderProblem problem = plan_.lanes > 1 ? order_problem() : OrderProblem();
    std::vector<int> position(plan_.steps.size());
    std::vector<PlannedStep> steps;
    for (int i : chosen.schedule.order) {
      position[at(i)] = static_cast<int>(steps.size());
      steps.push_back(std::move(plan_.steps[at(i)]));
      steps.back().lane = chosen.schedule.lane[at(i)];
    }
    plan_.steps = std::move(steps);
    find_lives();
    if (plan_.lanes > 1) find_waits(problem, position);
  }

  // Data, memory that is overwritten, the order of the lane, and memory that is used again.
  void find_waits(const OrderProblem& problem, const std::vector<int>& position) {
    std::vector<std::vector<int>> needs(plan_.steps.size());
    std::vector<int> lane, latest(at(plan_.lanes), -1);
    for (int i = 0; i < step(); ++i) {
      lane.push_back(plan_.steps[at(i)].lane);
      int& previous = latest[at(lane.back())];
      if (previous >= 0) needs[at(i)].push_back(previous);
      previous = i;
    }
    for (const auto& [first, second] : problem.constraints) {
      needs[at(position[at(second)])].push_back(position[at(first)]);
    }
    add_waits_for_memory(lane, needs);
    std::vector<std::vector<int>> waits = least_waits(needs, lane, plan_.lanes);
    for (int i = 0; i < step(); ++i) plan_.steps[at(i)].waits_for = std::move(waits[at(i)]);
  }

  // Adds waits for memory. For each buffer, the first step of each lane that uses it waits for the
  // last step of each lane that used its bytes before.
  void add_waits_for_memory(std::span<const int> lane, std::vector<std::vector<int>>& needs) const {
    struct Users {
      std::vector<int> first, last;  // per lane; -1: none
    };
    std::vector<Users> users(plan_.buffers.size());
    for (Users& u : users) u.first = u.last = std::vector<int>(at(plan_.lanes), -1);
    for (int i = 0; i < step(); ++i) {
      for (const BufferUse& use : uses_of(plan_, plan_.steps[at(i)])) {
        Users& u = users[at(use.buffer)];
        if (u.first[at(lane[at(i)])] < 0) u.first[at(lane[at(i)])] = i;
        u.last[at(lane[at(i)])] = i;
      }
    }
    for (std::size_t a = 0; a < plan_.buffers.size(); ++a) {
      for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
        const PlannedBuffer &earlier = plan_.buffers[a], &later = plan_.buffers[b];
        if (earlier.kind != BufferKind::arena || later.kind != BufferKind::arena) continue;
        const bool meet = earlier.offset < later.offset + later.bytes &&
                          later.offset < earlier.offset + earlier.bytes;
        if (!meet || earlier.last_step >= later.first_step) continue;
        for (int first : users[b].first) {
          for (int last : users[a].last) {
            if (first >= 0 && last >= 0) needs[at(first)].push_back(last);
          }
        }
      }
    }
  }

  void find_lives() {
    const int last = std::max(step() - 1, 0);
    std::vector<bool> is_used(plan_.buffers.size(), false);
    for (int i = 0; i < step(); ++i) {
      for (const BufferUse& use : uses_of(plan_, plan_.steps[at(i)])) {
        PlannedBuffer& buffer = plan_.buffers[at(use.buffer)];
        if (!is_used[at(use.buffer)]) buffer.first_step = i;
        is_used[at(use.buffer)] = true;
        buffer.last_step = i;
      }
    }
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      PlannedBuffer& buffer = plan_.buffers[b];
      const bool is_ours = buffer.kind == BufferKind::arena || buffer.kind == BufferKind::output ||
                           buffer.kind == BufferKind::update;
      if (!is_ours) buffer.first_step = -1;
      if (is_kept_[b]) buffer.last_step = last;
    }
  }

  Plan& plan_;
  std::vector<bool> is_kept_;  // per buffer: is it looked at when the last step is done?
  const PlanRequest& request_;
  // Parts of order_problem():
  std::vector<std::vector<int>> steps_of_;             // per buffer: that use it
  std::vector<std::vector<int>> parts_in_, parts_of_;  // outermost, per buffer; next ones, per part
};

}  // namespace

void arrange(Plan& plan, std::vector<bool> is_kept, const PlanRequest& request) {
  Arranger(plan, std::move(is_kept), request).run();
}

}  // namespace palimpsest
