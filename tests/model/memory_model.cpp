// SPDX-License-Identifier: Apache-2.0
#include "model/memory_model.hpp"

#include <algorithm>
#include <stdexcept>
#include <unordered_set>

#include "model/fiber.hpp"

namespace palimpsest::model {
namespace {

using Clock = std::array<std::uint16_t, kMaxThreads>;
using View = std::array<std::uint16_t, kMaxLocations>;  // message numbers

void join(Clock& clock, const Clock& other) {
  for (std::size_t t = 0; t < kMaxThreads; ++t) clock[t] = std::max(clock[t], other[t]);
}

bool is_acquire(std::memory_order order) {
  return order == std::memory_order_acquire || order == std::memory_order_acq_rel;
}

bool is_release(std::memory_order order) {
  return order == std::memory_order_release || order == std::memory_order_acq_rel;
}

struct Message {
  std::uint16_t id;
  bool is_attached;  // directly follows the previous message
  std::uint64_t value;
  Clock clock;
  View view;
};

struct Location {
  std::vector<Message> messages;  // in modification order
  Clock uses{};
  Clock bucket_clock{};  // of the mutex used for parking on this location
  View bucket_view{};
  bool is_gone = false;
  std::size_t only_user;  // kMaxThreads if several threads may use it

  std::size_t position(std::uint16_t id) const {
    std::size_t at = 0;
    while (messages[at].id != id) ++at;
    return at;
  }
};

struct Data {
  int value;
  Clock reads{}, writes{};
  bool is_gone = false;
};

struct Thread {
  std::function<void()> body;
  Clock clock{};
  View view{};
  std::uint64_t history = 0;  // hash of all values read
  enum class Status { ready, parked, done } status = Status::ready;
  std::size_t parked_at = 0;
};

struct Choice {
  std::uint32_t chosen, count;
};

class Hash {
 public:
  void add(std::uint64_t value) {
    state_ = (state_ ^ value) * 0x9e37'79b9'7f4a'7c15U;
    state_ ^= state_ >> 29;
    state_ *= 0xbf58'476d'1ce4'e5b9U;
    state_ ^= state_ >> 32;
  }
  void add(const Clock& clock) {
    static_assert(sizeof(Clock) == 8);
    std::uint64_t packed = 0;
    for (const std::uint16_t n : clock) packed = packed << 16 | n;
    add(packed);
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0x243f'6a88'85a3'08d3U;
};

class World {
 public:
  World(const Program& program, std::uint64_t most_states)
      : program_(program), most_states_(most_states) {}

  Report run() {
    do {
      run_once();
      ++report_.executions;
    } while (report_.violation.empty() && next_path());
    return std::move(report_);
  }

  // -- called while the state is made and by the threads ---------------------------------------
  std::size_t add_location(std::uint64_t value, bool is_local) {
    if (locations_.size() == kMaxLocations) throw std::logic_error("too many locations");
    Location location;
    location.only_user = is_local ? running_ : kNobody;
    Message first{0, false, value, {}, {}};
    // Other threads see a location made by a thread only after that thread releases it.
    if (running_ != kNobody) {
      first.clock = me().clock;
      remember(locations_.size());
    }
    location.messages.push_back(first);
    locations_.push_back(std::move(location));
    return locations_.size() - 1;
  }
  std::size_t add_data(int value) {
    Data data{value, {}, {}, false};
    if (running_ != kNobody) data.writes = me().clock;
    data_.push_back(data);
    return data_.size() - 1;
  }

  std::uint64_t load(std::size_t at, std::memory_order order) {
    step(at);
    return load_any(at, order);
  }

  void store(std::size_t at, std::uint64_t value, std::memory_order order) {
    const Location& location = step(at);
    std::vector<std::size_t> places;
    for (std::size_t k = location.messages.size(); k > location.position(me().view[at]); --k) {
      if (k == location.messages.size() || !location.messages[k].is_attached) places.push_back(k);
    }
    const std::size_t place = places[choose(static_cast<std::uint32_t>(places.size()))];
    append(at, place, value, false, order, nullptr);
  }

  std::uint64_t add(std::size_t at, std::uint64_t n, std::memory_order order) {
    step(at);
    const std::vector<std::size_t> sources = continuable(at);
    const std::size_t source = sources[choose(static_cast<std::uint32_t>(sources.size()))];
    return modify(at, source, order, [n](std::uint64_t old) { return old + n; });
  }

  bool compare_exchange(std::size_t at, std::uint64_t& expected, std::uint64_t desired,
                        std::memory_order success, std::memory_order failure) {
    const Location& location = step(at);
    // Succeeds on a message that it may continue, fails on any other value.
    const std::vector<std::size_t> sources = continuable(at);
    std::vector<std::size_t> readable;
    for (std::size_t k = location.position(me().view[at]); k < location.messages.size(); ++k) {
      const bool can_continue = std::find(sources.begin(), sources.end(), k) != sources.end();
      if (can_continue || location.messages[k].value != expected) readable.push_back(k);
    }
    const std::size_t source = readable[choose(static_cast<std::uint32_t>(readable.size()))];
    if (location.messages[source].value != expected) {
      expected = read(at, source, failure);
      return false;
    }
    modify(at, source, success, [desired](std::uint64_t) { return desired; });
    return true;
  }

  void destroy_location(std::size_t at) {
    Location& location = use(at);
    require(happens_before(location.uses), "an atomic is destroyed while it may be in use");
    location.is_gone = true;
  }

  std::uint64_t final_value(std::size_t at) const { return locations_[at].messages.back().value; }

  int read_data(std::size_t index) {
    Data& data = data_[index];
    require(!data.is_gone, "data are read after they were freed");
    require(happens_before(data.writes), "data race: a read and a write");
    if (running_ != kNobody) {
      data.reads[running_] = me().clock[running_];
      remember(static_cast<std::uint64_t>(data.value));
    }
    return data.value;
  }

  void write_data(std::size_t index, int value) {
    Data& data = data_[index];
    require(!data.is_gone, "data are written after they were freed");
    require(happens_before(data.writes) && happens_before(data.reads), "data race: a write");
    if (running_ != kNobody) data.writes[running_] = me().clock[running_];
    data.value = value;
  }

  void destroy_data(std::size_t index) {
    write_data(index, 0);
    data_[index].is_gone = true;
  }

  void park(std::size_t at, std::uint64_t seen) {
    to_scheduler();
    for (;;) {
      synchronize_with_bucket(at);
      use(at);
      const std::uint64_t value = load_any(at, std::memory_order_acquire);
      synchronize_with_bucket(at);
      if (value != seen) return;
      me().status = Thread::Status::parked;
      me().parked_at = at;
      to_scheduler();
    }
  }

  void unpark(std::size_t at) {
    to_scheduler();
    synchronize_with_bucket(at);
    for (Thread& thread : threads_) {
      if (thread.status == Thread::Status::parked && thread.parked_at == at) {
        thread.status = Thread::Status::ready;
      }
    }
  }

  void require(bool condition, const char* what) {
    if (condition) return;
    if (report_.violation.empty()) report_.violation = what;
    if (running_ != kNobody) to_scheduler();
  }

 private:
  static constexpr std::size_t kNobody = kMaxThreads;
  // Far more than programs without spinning need.
  static constexpr int kMostSteps = 500;

  Thread& me() { return threads_[running_]; }

  Location& use(std::size_t at) {
    Location& location = locations_[at];
    require(!location.is_gone, "an atomic is used after it was destroyed");
    require(location.only_user == kNobody || location.only_user == running_,
            "an atomic of one thread is used by another one");
    location.uses[running_] = me().clock[running_];
    return location;
  }

  bool happens_before(const Clock& uses) {
    if (running_ == kNobody) return true;
    for (std::size_t t = 0; t < kMaxThreads; ++t) {
      if (uses[t] > me().clock[t]) return false;
    }
    return true;
  }

  void join_view(View& view, const View& other) {
    for (std::size_t at = 0; at < locations_.size(); ++at) {
      const Location& location = locations_[at];
      if (location.position(other[at]) > location.position(view[at])) view[at] = other[at];
    }
  }

  void remember(std::uint64_t value) {
    Hash hash;
    hash.add(me().history);
    hash.add(value);
    me().history = hash.value();
  }

  std::uint64_t read(std::size_t at, std::size_t position, std::memory_order order) {
    const Message& message = locations_[at].messages[position];
    me().view[at] = message.id;
    if (is_acquire(order)) {
      join(me().clock, message.clock);
      join_view(me().view, message.view);
    }
    remember(message.value);
    return message.value;
  }

  std::uint64_t load_any(std::size_t at, std::memory_order order) {
    const Location& location = locations_[at];
    const std::size_t oldest = location.position(me().view[at]);
    const auto n = static_cast<std::uint32_t>(location.messages.size() - oldest);
    // The newest first: then most programs end soon.
    return read(at, location.messages.size() - 1 - choose(n), order);
  }

  // Messages that a read-modify-write may continue.
  std::vector<std::size_t> continuable(std::size_t at) {
    const std::vector<Message>& messages = locations_[at].messages;
    std::vector<std::size_t> found;
    for (std::size_t k = messages.size(); k-- > locations_[at].position(me().view[at]);) {
      if (k + 1 == messages.size() || !messages[k + 1].is_attached) found.push_back(k);
    }
    return found;
  }

  template <class F>
  std::uint64_t modify(std::size_t at, std::size_t source, std::memory_order order, F&& f) {
    const std::uint64_t old = read(at, source, order);
    const Message continued = locations_[at].messages[source];
    append(at, source + 1, f(old), true, order, &continued);
    return old;
  }

  void append(std::size_t at, std::size_t position, std::uint64_t value, bool is_attached,
              std::memory_order order, const Message* continued) {
    std::vector<Message>& messages = locations_[at].messages;
    const auto id = static_cast<std::uint16_t>(messages.size());
    Message message{id, is_attached, value, {}, {}};
    if (continued != nullptr) {
      message.clock = continued->clock;
      message.view = continued->view;
    }
    messages.insert(messages.begin() + static_cast<std::ptrdiff_t>(position), message);
    me().view[at] = id;
    Message& placed = messages[position];
    if (is_release(order)) {
      join(placed.clock, me().clock);
      join_view(placed.view, me().view);
    }
    placed.view[at] = id;
    ++me().clock[running_];  // later steps are not published by this message
  }

  // The mutex of the parking bucket: its holder sees everything that earlier holders saw.
  void synchronize_with_bucket(std::size_t at) {
    Location& location = locations_[at];
    join(me().clock, location.bucket_clock);
    join_view(me().view, location.bucket_view);
    location.bucket_clock = me().clock;
    location.bucket_view = me().view;
    ++me().clock[running_];
  }

  // -- the search ------------------------------------------------------------------------------
  std::uint32_t choose(std::uint32_t count) {
    if (count == 1) return 0;
    if (depth_ == path_.size()) path_.push_back({0, count});
    if (path_[depth_].count != count) throw std::logic_error("the program is not deterministic");
    return path_[depth_++].chosen;
  }

  bool next_path() {
    while (!path_.empty() && path_.back().chosen + 1 == path_.back().count) path_.pop_back();
    if (path_.empty()) return false;
    ++path_.back().chosen;
    return true;
  }

  // Every step of a thread begins here: others may run first.
  Location& step(std::size_t at) {
    if (locations_[at].only_user == kNobody) to_scheduler();
    return use(at);
  }

  void to_scheduler() { fibers_[running_].leave(); }

  void run_once() {
    locations_.clear();
    data_.clear();
    threads_.clear();
    depth_ = 0;
    running_ = kNobody;
    for (auto& body : program_.start()) {
      Thread thread;
      thread.body = std::move(body);
      thread.clock[threads_.size()] = 1;
      threads_.push_back(std::move(thread));
    }
    for (std::size_t t = 0; t < threads_.size(); ++t) {
      fibers_[t].start([this, t] {
        threads_[t].body();
        threads_[t].status = Thread::Status::done;
      });
    }
    // No other thread sees what a thread does before its first step.
    for (running_ = 0; running_ < threads_.size(); ++running_) fibers_[running_].enter();
    const bool is_complete = schedule();
    for (std::size_t t = 0; t < threads_.size(); ++t) fibers_[t].abandon();
    if (!is_complete || !report_.violation.empty()) return;
    running_ = kNobody;
    report_.outcomes.insert(program_.finish());
  }

  // False if this path leads to a state that was searched before.
  bool schedule() {
    for (int n_steps = 0;;) {
      std::array<std::size_t, kMaxThreads> ready{};
      std::uint32_t n_ready = 0;
      bool all_done = true;
      for (std::size_t t = 0; t < threads_.size(); ++t) {
        if (threads_[t].status == Thread::Status::ready) ready[n_ready++] = t;
        all_done = all_done && threads_[t].status == Thread::Status::done;
      }
      if (all_done) return true;
      if (n_ready == 0) {
        running_ = kNobody;
        require(false, "deadlock: a thread sleeps for ever");
        return true;
      }
      if (depth_ == path_.size() && !is_new_state()) return false;
      running_ = ready[choose(n_ready)];
      if (++n_steps > kMostSteps) {
        report_.violation = "no end: too many steps";
        return true;
      }
      remember(0);  // a step, even if it reads nothing
      fibers_[running_].enter();
      if (!report_.violation.empty()) return true;
    }
  }

  bool is_new_state() {
    Hash hash;
    const auto add_view = [&](const View& view) {
      for (std::size_t at = 0; at < locations_.size(); ++at) {
        hash.add(locations_[at].position(view[at]));
      }
    };
    for (const Thread& thread : threads_) {
      hash.add(thread.history);
      hash.add(static_cast<std::uint64_t>(thread.status));
      hash.add(thread.clock);
      add_view(thread.view);
    }
    for (const Location& location : locations_) {
      hash.add(location.messages.size() * 2 + (location.is_gone ? 1 : 0));
      hash.add(location.uses);
      hash.add(location.bucket_clock);
      add_view(location.bucket_view);
      for (const Message& message : location.messages) {
        hash.add(message.value);
        hash.add(message.is_attached ? 1 : 0);
        hash.add(message.clock);
        add_view(message.view);
      }
    }
    for (const Data& data : data_) {
      hash.add(static_cast<std::uint64_t>(data.value) * 2 + (data.is_gone ? 1 : 0));
      hash.add(data.reads);
      hash.add(data.writes);
    }
    if (!states_.insert(hash.value()).second) return false;
    if (++report_.states > most_states_) throw std::runtime_error("too many states");
    return true;
  }

  const Program& program_;
  const std::uint64_t most_states_;
  Report report_;

  std::vector<Location> locations_;
  std::vector<Data> data_;
  std::vector<Thread> threads_;
  std::array<Fiber, kMaxThreads> fibers_;
  std::size_t running_ = kNobody;

  std::vector<Choice> path_;
  std::size_t depth_ = 0;
  std::unordered_set<std::uint64_t> states_;
};

World* world = nullptr;

}  // namespace

Word::Word(std::uint64_t value, bool is_local) : location_(world->add_location(value, is_local)) {}

std::uint64_t Word::load(std::memory_order order) const { return world->load(location_, order); }

void Word::store(std::uint64_t value, std::memory_order order) {
  world->store(location_, value, order);
}

std::uint64_t Word::fetch_add(std::uint64_t n, std::memory_order order) {
  return world->add(location_, n, order);
}

std::uint64_t Word::fetch_sub(std::uint64_t n, std::memory_order order) {
  return world->add(location_, 0 - n, order);
}

bool Word::compare_exchange_weak(std::uint64_t& expected, std::uint64_t desired,
                                 std::memory_order success, std::memory_order failure) {
  return world->compare_exchange(location_, expected, desired, success, failure);
}

bool Word::compare_exchange_weak(std::uint64_t& expected, std::uint64_t desired,
                                 std::memory_order order) {
  const std::memory_order failure =
      is_acquire(order) ? std::memory_order_acquire : std::memory_order_relaxed;
  return world->compare_exchange(location_, expected, desired, order, failure);
}

void Word::destroy() { world->destroy_location(location_); }
std::uint64_t Word::final_value() const { return world->final_value(location_); }

Cell::Cell(int value) : index_(world->add_data(value)) {}
int Cell::read() const { return world->read_data(index_); }
void Cell::write(int value) { world->write_data(index_, value); }
void Cell::destroy() { world->destroy_data(index_); }

void require(bool condition, const char* what) { world->require(condition, what); }

void park(const Word& word, std::uint64_t seen) { world->park(word.location(), seen); }
void unpark(const Word* word) { world->unpark(word->location()); }

Report explore(const Program& program, std::uint64_t most_states) {
  World here(program, most_states);
  world = &here;
  Report report = here.run();
  world = nullptr;
  return report;
}

}  // namespace palimpsest::model
