// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/memory_map.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <unordered_map>

#include "palimpsest/base/error.hpp"
#include "palimpsest/base/small_vector.hpp"
#include "palimpsest/memory/device_copy.hpp"
#include "palimpsest/memory/element_copy.hpp"

// Coordinates. A source is a storage; its extents count from its own start. Sources that show one
// block share one buffer, planned in the coordinates of the first of them ("common"): `shift` leads
// there. A part is a run of common coordinates that stays together; it goes to `target` in the
// buffer, which is congruent to where it was modulo kModulus. Each source then gets a range
// of the buffer, chosen so that its own offsets stay congruent too.
namespace palimpsest {
namespace {

constexpr std::int64_t kModulus = 64;

std::int64_t modulo(std::int64_t value) { return ((value % kModulus) + kModulus) % kModulus; }

// The first multiple-plus-`residue` of the alignment at or after `from`.
std::int64_t align_after(std::int64_t from, std::int64_t residue) {
  return from + modulo(residue - from);
}

struct Part {
  Extent source;
  std::int64_t target = 0;
  const ByteLayout* dense = nullptr;  // stored densely: this view, in the coordinates of its source
};

// Most storages have one view, and most of them stay in one part.
using Extents1 = SmallVector<Extent, 1>;
using Parts = SmallVector<Part, 1>;

struct Source {
  explicit Source(const Storage& storage_)
      : storage(storage_), id(storage_.id()), device(storage_.device()) {}
  /// A failure changes nothing.
  void add(const ByteLayout& view, const Extent& extent, bool keeps_view) {
    if (keeps_view) views.push_back(view);
    try {
      if (extent.lo != extent.hi) extents.push_back(extent);
    } catch (...) {
      if (keeps_view) views.pop_back();
      throw;
    }
    ++n_views;
  }

  Storage storage;  // until it is given up
  std::uint64_t id;
  Device device;
  Extents1 extents;
  std::vector<ByteLayout> views;  // only to compact
  int n_views = 0;
  // The storage that the copy makes.
  Storage copy;
  bool stays = false;  // the copy is the source
  Parts parts;
  std::int64_t buffer = 0;
};

// The positions of storages by their ids: a table with open addressing, at most half full.
class Positions {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};

  std::size_t find(std::uint64_t id) const {
    return slots_.empty() ? kNone : slots_[slot_of(id)].position;
  }
  /// So that insert() cannot fail.
  void make_room() {
    if (2 * (n_ + 1) <= slots_.size()) return;
    std::vector<Slot> old(std::max<std::size_t>(2 * slots_.size(), 16));
    old.swap(slots_);
    shift_ = 64 - std::countr_zero(slots_.size());
    for (const Slot& slot : old) {
      if (slot.position != kNone) slots_[slot_of(slot.id)] = slot;
    }
  }
  void insert(std::uint64_t id, std::size_t position) {
    slots_[slot_of(id)] = {id, position};
    ++n_;
  }

 private:
  struct Slot {
    std::uint64_t id = 0;
    std::size_t position = kNone;
  };

  // The slot of the id, or the free slot for it.
  std::size_t slot_of(std::uint64_t id) const {
    constexpr std::uint64_t kGolden = 0x9e37'79b9'7f4a'7c15U;
    std::size_t k = (id * kGolden) >> shift_;
    while (slots_[k].position != kNone && slots_[k].id != id) k = (k + 1) & (slots_.size() - 1);
    return k;
  }

  std::vector<Slot> slots_;
  int shift_ = 0;
  std::size_t n_ = 0;
};

// Several sources with one block.
struct Plan {
  std::vector<Source*> sources;
  std::vector<std::int64_t> shifts;
  std::vector<Extent> ranges;  // of the buffer, one per source
  std::vector<Extent> runs;    // bytes that views reach, merged, in common coordinates
  std::vector<Part> parts;
  std::int64_t bytes = 0;
};

template <class Extents>
void sort_extents(Extents& extents) {
  if (extents.size() < 2) return;
  std::sort(extents.begin(), extents.end());
  const auto end = std::unique(extents.begin(), extents.end());
  extents.resize(static_cast<std::size_t>(end - extents.begin()));
}

// Joins extents that overlap or touch.
std::vector<Extent> merged(std::vector<Extent> extents) {
  sort_extents(extents);
  std::vector<Extent> runs;
  for (const Extent& extent : extents) {
    if (!runs.empty() && extent.lo <= runs.back().hi) {
      runs.back().hi = std::max(runs.back().hi, extent.hi);
    } else {
      runs.push_back(extent);
    }
  }
  return runs;
}

std::int64_t length_of(const std::vector<Extent>& runs) {
  std::int64_t bytes = 0;
  for (const Extent& run : runs) bytes += run.hi - run.lo;
  return bytes;
}

// The part that a byte lies in.
template <class Parts>
std::size_t part_at(const Parts& parts, std::int64_t byte) {
  if (parts.size() == 1) return 0;
  const auto after =
      std::upper_bound(parts.begin(), parts.end(), byte,
                       [](std::int64_t lo, const Part& part) { return lo < part.source.lo; });
  return static_cast<std::size_t>(after - parts.begin()) - 1;
}

ValueError not_registered() {
  return ValueError(
      "[MemoryMap.map] view not registered: got one that was never added. Try add() with it before "
      "the copy.");
}

}  // namespace

struct MemoryMap::State {
  bool compact = false, is_done = false;
  std::int64_t allocated = 0;
  std::vector<Source> sources;
  Positions positions;
  std::shared_ptr<void> companion;

  void check_open(const char* who) const;
  std::vector<Plan> plans(std::optional<Device> except);
  Plan plan(std::vector<Source*> of);
  void choose_dense(Plan& plan) const;
  void place(Plan& plan) const;
  void run(std::vector<Plan> plans, std::optional<Device> device,
           const std::function<void()>* prepare = nullptr);
  void keep_those_on(Device device);
  void finish(std::int64_t bytes);
};

MemoryMap::MemoryMap(bool compact) : state_(std::make_unique<State>()) {
  state_->compact = compact;
}
MemoryMap::MemoryMap(MemoryMap&&) noexcept = default;
MemoryMap& MemoryMap::operator=(MemoryMap&&) noexcept = default;
MemoryMap::~MemoryMap() = default;

void MemoryMap::State::check_open(const char* who) const {
  if (!is_done) return;
  throw ValueError("[MemoryMap." + std::string(who) +
                   "] the copies are made already. Try a new map, or add everything first.");
}

void MemoryMap::add(const Storage& storage, const ByteLayout& view) {
  State& state = *state_;
  if (state.is_done) {
    throw ValueError(
        "[MemoryMap.add] view not registered: the copies are made already. Try a new map, or add "
        "everything first.");
  }
  const Extent extent = memory_extent(view);
  if (extent.lo != extent.hi &&
      (extent.lo < 0 || extent.hi > static_cast<std::int64_t>(storage.nbytes()))) {
    throw AliasError("[MemoryMap.add] view reaches outside its storage: got bytes " +
                     std::to_string(extent.lo) + " .. " + std::to_string(extent.hi) +
                     ", expected 0 .. " + std::to_string(storage.nbytes()));
  }
  const std::size_t at = state.positions.find(storage.id());
  if (at != Positions::kNone) return state.sources[at].add(view, extent, state.compact);
  Source source(storage);
  source.add(view, extent, state.compact);
  state.positions.make_room();
  state.sources.push_back(std::move(source));
  state.positions.insert(storage.id(), state.sources.size() - 1);
}

// A part of one single view that is mostly gaps.
void MemoryMap::State::choose_dense(Plan& plan) const {
  if (!compact) return;
  struct Owner {
    const ByteLayout* view = nullptr;
    std::int64_t shift = 0;
    bool is_single = true;
  };
  std::vector<Owner> owners(plan.parts.size());
  for (std::size_t s = 0; s < plan.sources.size(); ++s) {
    for (const ByteLayout& view : plan.sources[s]->views) {
      const Extent extent = memory_extent(view);
      if (extent.lo == extent.hi) continue;
      const std::int64_t shift = plan.shifts[s];
      Owner& owner = owners[part_at(plan.parts, extent.lo + shift)];
      owner.is_single =
          owner.view == nullptr || (owner.is_single && owner.shift == shift && *owner.view == view);
      owner.view = &view;
      owner.shift = shift;
    }
  }
  for (std::size_t k = 0; k < owners.size(); ++k) {
    const Extent& source = plan.parts[k].source;
    const bool is_sparse = 2 * dense_bytes(*owners[k].view) < source.hi - source.lo;
    if (owners[k].is_single && is_sparse) plan.parts[k].dense = owners[k].view;
  }
}

// Lays the parts one after the other, and finds the range of each source in them.
void MemoryMap::State::place(Plan& plan) const {
  const bool is_congruent = std::all_of(plan.shifts.begin(), plan.shifts.end(),
                                        [](std::int64_t shift) { return modulo(shift) == 0; });
  std::int64_t cursor = is_congruent ? 0 : kModulus;
  for (Part& part : plan.parts) {
    part.target = align_after(cursor, part.source.lo);
    const std::int64_t bytes =
        part.dense == nullptr ? part.source.hi - part.source.lo : dense_bytes(*part.dense);
    cursor = part.target + bytes;
  }
  plan.bytes = plan.parts.empty() ? 0 : cursor;
  for (std::size_t s = 0; s < plan.sources.size(); ++s) {
    plan.ranges.push_back({0, plan.bytes});
    const Extents1& extents = plan.sources[s]->extents;
    if (plan.sources.size() == 1) break;
    if (extents.empty()) {
      plan.ranges.back() = {};
      continue;
    }
    const auto [lowest, highest] = std::minmax_element(extents.begin(), extents.end());
    const Part& first = plan.parts[part_at(plan.parts, lowest->lo + plan.shifts[s])];
    const std::size_t last = part_at(plan.parts, highest->lo + plan.shifts[s]);
    const std::int64_t end = last + 1 < plan.parts.size() ? plan.parts[last + 1].target : cursor;
    plan.ranges.back() = {first.target - modulo(first.target - plan.shifts[s]), end};
  }
}

Plan MemoryMap::State::plan(std::vector<Source*> of) {
  Plan plan;
  plan.sources = std::move(of);
  std::vector<Extent> all;
  for (const Source* source : plan.sources) {
    const std::int64_t shift = source->storage.data() - plan.sources.front()->storage.data();
    plan.shifts.push_back(shift);
    for (const Extent& extent : source->extents) {
      all.push_back({extent.lo + shift, extent.hi + shift});
    }
  }
  plan.runs = merged(std::move(all));
  if (!plan.runs.empty()) {
    const Extent span{plan.runs.front().lo, plan.runs.back().hi};
    if (2 * length_of(plan.runs) >= span.hi - span.lo) {
      plan.parts.push_back({.source = span});
    } else {
      for (const Extent& run : plan.runs) plan.parts.push_back({.source = run});
    }
  }
  choose_dense(plan);
  place(plan);
  return plan;
}

std::vector<Plan> MemoryMap::State::plans(std::optional<Device> except) {
  std::unordered_map<std::uint64_t, std::size_t> by_block;
  std::vector<std::vector<Source*>> families;
  for (Source& source : sources) {
    if (except && source.storage.device() == *except) continue;
    const auto [at, is_new] = by_block.try_emplace(source.storage.data_id(), families.size());
    if (is_new) families.emplace_back();
    families[at->second].push_back(&source);
  }
  std::vector<Plan> all;
  for (auto& family : families) all.push_back(plan(std::move(family)));
  return all;
}

namespace {

void fill_buffer(const Plan& plan, Device device, std::byte* buffer) {
  const Storage& storage = plan.sources.front()->storage;
  const std::byte* const source = storage.data();
  const Device from = storage.device();
  std::int64_t done = 0;
  const auto zero_to = [&](std::int64_t end) {
    if (end <= done) return;
    fill_bytes_on(device, buffer + done, std::byte{}, static_cast<std::size_t>(end - done));
  };
  auto run = plan.runs.begin();
  for (const Part& part : plan.parts) {
    zero_to(part.target);
    if (part.dense != nullptr) {
      // The storage of the part may have another origin, but its lowest byte is that of the part.
      const ByteLayout dense = dense_layout(*part.dense);
      const std::int64_t lead = part.dense->offset - memory_extent(*part.dense).lo;
      copy_elements(*part.dense, dense, from, source + part.source.lo + lead, device,
                    buffer + part.target);
      done = part.target + dense_bytes(*part.dense);
      ++run;  // the only one of this part
    }
    for (; run != plan.runs.end() && run->hi <= part.source.hi; ++run) {
      const std::int64_t target = part.target + run->lo - part.source.lo;
      zero_to(target);
      copy_bytes_on(from, source + run->lo, device, buffer + target,
                    static_cast<std::size_t>(run->hi - run->lo));
      done = target + run->hi - run->lo;
    }
  }
}

// The parts of a plan relative to source s and its new storage. Only source.lo and target are
// shifted: source.hi stays in the coordinates of the plan.
Parts parts_for(const Plan& plan, std::size_t s) {
  Parts parts(plan.parts);
  for (Part& part : parts) {
    part.source.lo -= plan.shifts[s];
    part.target -= plan.ranges[s].lo;
  }
  return parts;
}

}  // namespace

void MemoryMap::State::run(std::vector<Plan> plans, std::optional<Device> device,
                           const std::function<void()>* prepare) {
  std::vector<Storage> buffers, copies;
  std::vector<std::byte*> targets;
  std::vector<Device> devices;
  std::vector<Parts> parts;
  std::int64_t bytes = 0;
  for (const Plan& plan : plans) {
    const Device target = device.value_or(plan.sources.front()->storage.device());
    buffers.push_back(Storage::allocate(static_cast<std::size_t>(plan.bytes), target));
    targets.push_back(buffers.back().overwrite_data());
    devices.push_back(target);
    bytes += plan.bytes;
  }
  for (std::size_t p = 0; p < plans.size(); ++p) {
    const Plan& plan = plans[p];
    for (std::size_t s = 0; s < plan.sources.size(); ++s) {
      const Extent& range = plan.ranges[s];
      copies.push_back(plan.sources.size() == 1
                           ? buffers[p]
                           : buffers[p].lazy_clone(static_cast<std::size_t>(range.lo),
                                                   static_cast<std::size_t>(range.hi - range.lo)));
      parts.push_back(parts_for(plan, s));
    }
  }
  // The buffers have no other user yet: they can be filled after they are shared.
  if (!prepare) {
    for (std::size_t p = 0; p < plans.size(); ++p) fill_buffer(plans[p], devices[p], targets[p]);
  }
  std::size_t at = 0;
  for (Plan& plan : plans) {
    for (std::size_t s = 0; s < plan.sources.size(); ++s, ++at) {
      Source& source = *plan.sources[s];
      source.copy = std::move(copies[at]);
      source.parts = std::move(parts[at]);
      source.buffer = s == 0 ? plan.bytes : 0;
    }
  }
  finish(bytes);
  if (!prepare) return;
  keep_those_on(*device);
  try {
    (*prepare)();
  } catch (...) {
    for (Source& source : sources) {
      source.copy = Storage();
      source.stays = false;
    }
    is_done = false;
    throw;
  }
  buffers.clear();
  for (std::size_t p = 0; p < plans.size(); ++p) {
    fill_buffer(plans[p], devices[p], targets[p]);
    for (Source* source : plans[p].sources) source->storage = Storage();
  }
}

void MemoryMap::State::finish(std::int64_t bytes) {
  for (Source& source : sources) sort_extents(source.extents);
  allocated = bytes;
  is_done = true;
}

void MemoryMap::lazy_copy() {
  State& state = *state_;
  state.check_open("lazy_copy");
  std::vector<Storage> copies;
  copies.reserve(state.sources.size());
  std::vector<Parts> parts(state.sources.size());
  std::int64_t bytes = 0;
  for (std::size_t k = 0; k < state.sources.size(); ++k) {
    const Source& source = state.sources[k];
    if (source.extents.empty()) {
      copies.push_back(Storage::allocate(0, source.storage.device()));
      continue;
    }
    Extent span = source.extents.front();
    for (const Extent& extent : source.extents) {
      span = {std::min(span.lo, extent.lo), std::max(span.hi, extent.hi)};
    }
    const std::int64_t start = span.lo - modulo(span.lo);
    copies.push_back(source.storage.lazy_clone(static_cast<std::size_t>(start),
                                               static_cast<std::size_t>(span.hi - start)));
    if (!copies.back().shares_data(source.storage)) bytes += span.hi - start;
    parts[k].push_back({span, span.lo - start, nullptr});
  }
  for (std::size_t k = 0; k < state.sources.size(); ++k) {
    Source& source = state.sources[k];
    source.buffer =
        copies[k].shares_data(source.storage) ? 0 : static_cast<std::int64_t>(copies[k].nbytes());
    source.copy = std::move(copies[k]);
    source.parts = std::move(parts[k]);
  }
  state.finish(bytes);
}

void MemoryMap::copy() {
  state_->check_open("copy");
  state_->run(state_->plans({}), {});
}

void MemoryMap::State::keep_those_on(Device device) {
  for (Source& source : sources) {
    if (source.storage.device() != device) continue;
    source.copy = source.storage;
    source.stays = true;
  }
}

void MemoryMap::to(Device device) {
  State& state = *state_;
  state.check_open("to");
  state.run(state.plans(device), device);
  state.keep_those_on(device);
}

void MemoryMap::move_to(Device device, const std::function<void()>& prepare) {
  State& state = *state_;
  state.check_open("move_to");
  state.run(state.plans(device), device, &prepare);
}

bool MemoryMap::is_done() const { return state_->is_done; }

std::shared_ptr<void>& MemoryMap::companion() const { return state_->companion; }

std::pair<Storage, ByteLayout> MemoryMap::map(const Storage& storage,
                                              const ByteLayout& view) const {
  const State& state = *state_;
  if (!state.is_done) {
    throw ValueError("[MemoryMap.map] nothing is copied yet. Try copy(), lazy_copy() or to().");
  }
  const std::size_t at = state.positions.find(storage.id());
  if (at == Positions::kNone) throw not_registered();
  const Source& source = state.sources[at];
  ByteLayout result = view;
  if (source.stays) return {source.copy, std::move(result)};
  const Extent extent = memory_extent(view);
  if (extent.lo == extent.hi) {
    result.offset = 0;
    return {source.copy, std::move(result)};
  }
  if (!std::binary_search(source.extents.begin(), source.extents.end(), extent)) {
    throw not_registered();
  }
  const Part& part = source.parts[part_at(source.parts, extent.lo)];
  if (part.dense != nullptr) {
    if (*part.dense != view) throw not_registered();
    result = dense_layout(view);
    result.offset = part.target;
  } else {
    result.offset += part.target - part.source.lo;
  }
  return {source.copy, std::move(result)};
}

std::vector<MemoryMap::Group> MemoryMap::groups() const {
  State& state = *state_;
  std::unordered_map<std::uint64_t, std::int64_t> buffers;
  if (!state.is_done) {
    for (const Plan& plan : state.plans({})) {
      buffers[plan.sources.front()->storage.id()] = plan.bytes;
    }
  }
  std::vector<Group> all;
  for (const Source& source : state.sources) {
    const std::uint64_t id = source.id;
    const std::vector<Extent> runs = merged({source.extents.begin(), source.extents.end()});
    all.push_back({.storage = id,
                   .device = source.device,
                   .used = length_of(runs),
                   .span = runs.empty() ? 0 : runs.back().hi - runs.front().lo,
                   .buffer = state.is_done ? source.buffer : buffers[id],
                   .views = source.n_views});
  }
  return all;
}

std::int64_t MemoryMap::bytes() const {
  if (state_->is_done) return state_->allocated;
  std::int64_t bytes = 0;
  for (const Plan& plan : state_->plans({})) bytes += plan.bytes;
  return bytes;
}

}  // namespace palimpsest
