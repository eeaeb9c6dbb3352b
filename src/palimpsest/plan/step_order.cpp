// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/plan/step_order.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "palimpsest/plan/position.hpp"

namespace palimpsest {
namespace {

constexpr index_t kNever = std::numeric_limits<index_t>::max();
constexpr std::size_t kMostSets = 1 << 16;  // of done steps, in the exact search
constexpr std::size_t kFewSets = 1 << 10;   // the same where there is little to gain
constexpr index_t kLittle = 1024;           // bytes
constexpr std::size_t kBeamWidth = 16;
constexpr std::size_t kBeamChoices = 8;  // next steps looked at per state
constexpr std::size_t kBeamReady = 256;  // ready steps looked at per state, in the given order
// Largest number of steps of a program that gets the full beam width. Longer programs get less in
// proportion, so that the time of a search grows with the number of steps and not with its square.
constexpr int kFullBeam = 500;
constexpr int kMostForBeam = 4000;  // steps; longer programs are not searched

// A set of the first 64 steps.
using Set = std::uint64_t;
constexpr int kMostInSet = 64;
Set bit(int i) { return Set{1} << i; }

// Order constraints between steps, and the buffers of each step.
struct Steps {
  std::vector<std::vector<int>> after, before, buffers;

  explicit Steps(const OrderProblem& problem)
      : after(at(problem.n_steps)), before(at(problem.n_steps)), buffers(at(problem.n_steps)) {
    for (const auto& [first, second] : problem.constraints) {
      after[at(first)].push_back(second);
      before[at(second)].push_back(first);
    }
    for (std::vector<int>& list : after) make_unique(list);
    for (std::vector<int>& list : before) make_unique(list);
    for (std::size_t b = 0; b < problem.buffers.size(); ++b) {
      for (int step : problem.buffers[b].steps) buffers[at(step)].push_back(static_cast<int>(b));
    }
  }
  static void make_unique(std::vector<int>& list) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
};

// Live bytes while steps run one after the other.
class Memory {
 public:
  explicit Memory(const OrderProblem& problem)
      : problem_(&problem), done_(problem.buffers.size()) {}

  index_t live() const { return live_; }
  index_t peak() const { return peak_; }
  // Bytes during the step and after it, above those that are live before it.
  std::pair<index_t, index_t> change(std::span<const int> buffers) const {
    index_t during = 0, afterwards = 0;
    for (int b : buffers) {
      const OrderProblem::Buffer& buffer = problem_->buffers[at(b)];
      const int n_done = done_[at(b)];
      if (n_done == 0) during += buffer.bytes;
      const bool dies = at(n_done) + 1 == buffer.steps.size() && !buffer.is_kept;
      afterwards += (n_done == 0 ? buffer.bytes : 0) - (dies ? buffer.bytes : 0);
    }
    return {during, afterwards};
  }
  void run(std::span<const int> buffers) {
    const auto [during, afterwards] = change(buffers);
    peak_ = std::max(peak_, live_ + during);
    live_ += afterwards;
    for (int b : buffers) ++done_[at(b)];
  }

 private:
  const OrderProblem* problem_;
  std::vector<int> done_;  // per buffer: how many of its steps
  index_t live_ = 0, peak_ = 0;
};

// -- exact: over all sets of steps that can be done before the others -----------------------------

class ExactSearch {
 public:
  ExactSearch(const OrderProblem& problem, const Steps& steps) : problem_(problem), steps_(steps) {}

  // The lowest order, if it is below a peak that is known; else the given one. Nothing, if that
  // takes more sets.
  std::optional<std::vector<int>> run(index_t known, std::size_t most_sets) {
    if (problem_.n_steps > kMostInSet) return {};
    std::vector<Set> needs(at(problem_.n_steps), 0);
    for (int i = 0; i < problem_.n_steps; ++i) {
      for (int j : steps_.before[at(i)]) needs[at(i)] |= bit(j);
    }
    users_.clear();
    for (const OrderProblem::Buffer& buffer : problem_.buffers) {
      Set users = 0;
      for (int step : buffer.steps) users |= bit(step);
      users_.push_back(users);
    }
    // Level k holds the sets of k steps, each with the lowest peak of all ways to it.
    levels_.clear();
    levels_.resize(at(problem_.n_steps) + 1);
    levels_[0][0] = {0, -1};
    std::size_t n_sets = 0;
    for (std::size_t k = 0; k < at(problem_.n_steps); ++k) {
      n_sets += levels_[k].size();
      if (n_sets > most_sets) return {};
      for (const auto& [set, way] : levels_[k]) {
        const index_t live = live_after(set);
        for (int i = 0; i < problem_.n_steps; ++i) {
          if ((set & bit(i)) || (needs[at(i)] & ~set)) continue;
          const index_t peak = std::max(way.peak, live + new_bytes(set, i));
          if (peak >= known) continue;
          Way& next = levels_[k + 1].try_emplace(set | bit(i), Way{kNever, -1}).first->second;
          // Of equal ways the one with the lower step, for any order of the table.
          if (peak < next.peak || (peak == next.peak && i < next.last)) next = {peak, i};
        }
      }
    }
    return way_back();
  }

 private:
  struct Way {
    index_t peak;
    int last;
  };

  index_t live_after(Set done) const {
    index_t live = 0;
    for (std::size_t b = 0; b < users_.size(); ++b) {
      const bool begun = users_[b] & done, ended = (users_[b] & ~done) == 0;
      if (begun && (!ended || problem_.buffers[b].is_kept)) live += problem_.buffers[b].bytes;
    }
    return live;
  }
  index_t new_bytes(Set done, int step) const {
    index_t bytes = 0;
    for (int b : steps_.buffers[at(step)]) {
      if ((users_[at(b)] & done) == 0) bytes += problem_.buffers[at(b)].bytes;
    }
    return bytes;
  }
  std::vector<int> way_back() const {
    std::vector<int> order(at(problem_.n_steps));
    if (levels_.back().empty()) {
      std::iota(order.begin(), order.end(), 0);
      return order;
    }
    Set set = problem_.n_steps == 64 ? ~Set{0} : bit(problem_.n_steps) - 1;
    for (std::size_t k = order.size(); k > 0; --k) {
      order[k - 1] = levels_[k].at(set).last;
      set &= ~bit(order[k - 1]);
    }
    return order;
  }

  const OrderProblem& problem_;
  const Steps& steps_;
  std::vector<Set> users_;  // per buffer
  std::vector<std::unordered_map<Set, Way>> levels_;
};

// -- trees ----------------------------------------------------------------------------------------

// Steps that run best without others between them. Memory rises by at most `hill` on the way, and
// by `valley` at the end, both in bytes above the level before.
struct OrderSegment {
  index_t hill = 0, valley = 0;
  std::vector<int> steps;
};

class TreeOrder {
 public:
  TreeOrder(const OrderProblem& problem, const Steps& steps) : problem_(problem), steps_(steps) {}

  // Each step but the last of a tree has one successor, which is the last reader of its result.
  std::optional<std::vector<int>> run() {
    for (int i = 0; i < problem_.n_steps; ++i) {
      if (steps_.after[at(i)].size() > 1) return {};
    }
    for (const OrderProblem::Buffer& buffer : problem_.buffers) {
      if (!is_local(buffer)) return {};
    }
    std::vector<std::vector<OrderSegment>> of(at(problem_.n_steps));
    std::vector<OrderSegment> roots;
    for (int i = 0; i < problem_.n_steps; ++i) {
      std::vector<OrderSegment> merged;
      for (int child : steps_.before[at(i)]) take(merged, std::move(of[at(child)]));
      sort(merged);
      append(merged, step_segment(i));
      if (steps_.after[at(i)].empty()) {
        take(roots, std::move(merged));
      } else {
        of[at(i)] = std::move(merged);
      }
    }
    sort(roots);
    std::vector<int> order;
    for (const OrderSegment& s : roots) order.insert(order.end(), s.steps.begin(), s.steps.end());
    return order;
  }

 private:
  // True if the buffer is used by one step, or made by one step and read or kept by its successor
  // only.
  bool is_local(const OrderProblem::Buffer& buffer) const {
    if (buffer.steps.size() <= 1) return true;
    if (buffer.steps.size() > 2) return false;
    const std::vector<int>& after = steps_.after[at(buffer.steps[0])];
    return after.size() == 1 && after[0] == buffer.steps[1];
  }
  // All that the step reads is there before it.
  OrderSegment step_segment(int i) const {
    index_t made = 0, freed = 0;
    for (int b : steps_.buffers[at(i)]) {
      const OrderProblem::Buffer& buffer = problem_.buffers[at(b)];
      if (buffer.steps.front() == i) made += buffer.bytes;
      if (buffer.steps.back() == i && !buffer.is_kept) freed += buffer.bytes;
    }
    return {made, made - freed, {i}};
  }
  static void take(std::vector<OrderSegment>& to, std::vector<OrderSegment>&& from) {
    std::move(from.begin(), from.end(), std::back_inserter(to));
  }
  // The segment with the deepest fall below its top comes first. Segments of one subtree are in
  // this order already.
  static void sort(std::vector<OrderSegment>& segments) {
    std::stable_sort(segments.begin(), segments.end(),
                     [](const OrderSegment& a, const OrderSegment& b) {
                       return a.hill - a.valley > b.hill - b.valley;
                     });
  }
  // Appends a segment. Segments end at ever higher valleys and have ever lower hills; a segment
  // that breaks this is joined with the one before it.
  static void append(std::vector<OrderSegment>& segments, OrderSegment next) {
    while (!segments.empty()) {
      OrderSegment& last = segments.back();
      const bool is_apart = next.hill < last.hill - last.valley && next.valley > 0;
      if (is_apart) break;
      next = {std::max(last.hill, last.valley + next.hill), last.valley + next.valley,
              joined(std::move(last.steps), next.steps)};
      segments.pop_back();
    }
    segments.push_back(std::move(next));
  }
  static std::vector<int> joined(std::vector<int> a, const std::vector<int>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  const OrderProblem& problem_;
  const Steps& steps_;
};

// -- beam -----------------------------------------------------------------------------------------

class BeamSearch {
 public:
  BeamSearch(const OrderProblem& problem, const Steps& steps, double effort)
      : problem_(problem),
        steps_(steps),
        width_(static_cast<std::size_t>(static_cast<double>(kBeamWidth) * effort *
                                        std::min(1.0, double{kFullBeam} / problem.n_steps))) {
    width_ = std::max<std::size_t>(width_, 1);
  }

  std::vector<int> run() {
    std::vector<State> beam{start()};
    for (int k = 0; k < problem_.n_steps; ++k) {
      std::vector<Move> moves;
      for (std::size_t s = 0; s < beam.size(); ++s) add_moves(beam[s], s, moves);
      std::stable_sort(moves.begin(), moves.end(), [](const Move& a, const Move& b) {
        return std::pair(a.peak, a.live) < std::pair(b.peak, b.live);
      });
      std::vector<State> next;
      std::vector<std::uint64_t> seen;
      for (const Move& move : moves) {
        if (next.size() == width_) break;
        // Sets of done steps, by a hash that does not depend on their order.
        const std::uint64_t set = beam[move.state].done + hash(move.step);
        if (std::find(seen.begin(), seen.end(), set) != seen.end()) continue;
        seen.push_back(set);
        next.push_back(beam[move.state]);
        run_step(next.back(), move.step);
      }
      beam = std::move(next);
    }
    std::vector<int> order(at(problem_.n_steps));
    for (int node = beam.front().history, k = problem_.n_steps; k > 0; --k) {
      order[at(k - 1)] = history_[at(node)].first;
      node = history_[at(node)].second;
    }
    return order;
  }

 private:
  struct State {
    Memory memory;
    std::vector<int> waiting;  // per step: for how many others
    std::vector<int> ready;    // rising
    std::uint64_t done = 0;
    int history = -1;
  };
  struct Move {
    std::size_t state;
    int step;
    index_t peak, live;
  };

  static std::uint64_t hash(int step) {
    std::uint64_t x = static_cast<std::uint64_t>(step) + 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }

  State start() const {
    State state{Memory(problem_), std::vector<int>(at(problem_.n_steps)), {}, 0, -1};
    for (int i = 0; i < problem_.n_steps; ++i) {
      state.waiting[at(i)] = static_cast<int>(steps_.before[at(i)].size());
      if (state.waiting[at(i)] == 0) state.ready.push_back(i);
    }
    return state;
  }

  void add_moves(const State& state, std::size_t number, std::vector<Move>& moves) const {
    std::vector<Move> own;
    for (int step : std::span(state.ready).first(std::min(state.ready.size(), kBeamReady))) {
      const auto [during, afterwards] = state.memory.change(steps_.buffers[at(step)]);
      own.push_back({number, step, std::max(state.memory.peak(), state.memory.live() + during),
                     state.memory.live() + afterwards});
    }
    const auto lower = [](const Move& a, const Move& b) {
      return std::tuple(a.live, a.peak, a.step) < std::tuple(b.live, b.peak, b.step);
    };
    if (own.size() > kBeamChoices) {
      std::nth_element(own.begin(), own.begin() + kBeamChoices, own.end(), lower);
      own.resize(kBeamChoices);
    }
    std::sort(own.begin(), own.end(), lower);
    moves.insert(moves.end(), own.begin(), own.end());
  }

  void run_step(State& state, int step) {
    state.memory.run(steps_.buffers[at(step)]);
    state.done += hash(step);
    state.ready.erase(std::lower_bound(state.ready.begin(), state.ready.end(), step));
    for (int next : steps_.after[at(step)]) {
      if (--state.waiting[at(next)] > 0) continue;
      state.ready.insert(std::lower_bound(state.ready.begin(), state.ready.end(), next), next);
    }
    history_.emplace_back(step, state.history);
    state.history = static_cast<int>(history_.size()) - 1;
  }

  const OrderProblem& problem_;
  const Steps& steps_;
  std::size_t width_;
  std::vector<std::pair<int, int>> history_;  // step, and where its predecessor is
};

}  // namespace

index_t peak_of(const OrderProblem& problem, std::span<const int> order) {
  const Steps steps(problem);
  Memory memory(problem);
  for (int step : order) memory.run(steps.buffers[at(step)]);
  return memory.peak();
}

namespace {

// A lower bound of the peak of any order: the largest number of bytes that are live at one step in
// every order. These are the buffers that the step uses, and those that a step before it and a step
// after it use in every order. For more than 64 steps only the first kind counts.
index_t least_peak(const OrderProblem& problem, const Steps& steps) {
  const bool is_small = problem.n_steps <= kMostInSet;
  std::vector<Set> earlier(at(problem.n_steps), 0), later(at(problem.n_steps), 0);
  for (int i = 0; is_small && i < problem.n_steps; ++i) {
    for (int j : steps.before[at(i)]) earlier[at(i)] |= earlier[at(j)] | bit(j);
  }
  for (int i = problem.n_steps - 1; is_small && i >= 0; --i) {
    for (int j : steps.after[at(i)]) later[at(i)] |= later[at(j)] | bit(j);
  }
  std::vector<index_t> live(at(problem.n_steps), 0);
  for (const OrderProblem::Buffer& buffer : problem.buffers) {
    Set users = 0;
    for (int step : buffer.steps) {
      if (is_small) users |= bit(step);
      live[at(step)] += buffer.bytes;
    }
    for (int i = 0; is_small && i < problem.n_steps; ++i) {
      const bool ended = (users & later[at(i)]) == 0 && !buffer.is_kept;
      if ((users & bit(i)) == 0 && (users & earlier[at(i)]) != 0 && !ended)
        live[at(i)] += buffer.bytes;
    }
  }
  return *std::max_element(live.begin(), live.end());
}

}  // namespace

std::vector<int> low_peak_order(const OrderProblem& problem, double effort) {
  std::vector<int> given(at(problem.n_steps));
  std::iota(given.begin(), given.end(), 0);
  if (problem.n_steps < 2) return given;
  const Steps steps(problem);
  const index_t peak = peak_of(problem, given), least = least_peak(problem, steps);
  if (peak == least) return given;
  std::optional<std::vector<int>> found = TreeOrder(problem, steps).run();
  ExactSearch exact(problem, steps);
  if (!found) found = exact.run(peak, kFewSets);
  if (!found && problem.n_steps <= kMostForBeam) {
    found = BeamSearch(problem, steps, effort).run();
    // The exact search looks at fewer sets the lower the peak is that it has to keep below.
    const index_t known = std::min(peak, peak_of(problem, *found));
    const bool pays = effort > 1 || known - least > kLittle;
    const double most_sets = double{kMostSets} * effort;
    if (pays) {
      if (auto lower = exact.run(known, static_cast<std::size_t>(most_sets))) {
        if (peak_of(problem, *lower) < known) found = std::move(lower);
      }
    }
  }
  return found && peak_of(problem, *found) < peak ? *found : given;
}

}  // namespace palimpsest
