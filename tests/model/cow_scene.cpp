// SPDX-License-Identifier: Apache-2.0
#include "model/cow_scene.hpp"

#include <deque>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

namespace palimpsest::model {

struct ModelBlock {
  ModelBlock(cow::Bits bits, int value, std::size_t n_chunks, bool is_local)
      : word(bits, is_local), is_fixed(cow::is_fixed(bits)) {
    for (std::size_t k = 0; k < n_chunks; ++k) data.emplace_back(value);
  }

  void free() noexcept {
    require(!is_freed, "a block is freed twice");
    is_freed = true;
    for (Cell& cell : data) cell.destroy();
    word.destroy();
  }

  Word word;
  std::deque<Cell> data;
  const bool is_fixed;
  bool is_freed = false;
};

// The counterpart of Storage, on blocks of the model.
struct ModelStorage {
  ModelBlock* block = nullptr;  // null once dropped
  int expected = 0;             // expected data
};

// The storage that all threads have handles of.
struct ModelFamily {
  ModelStorage storage;
  Cell members{0};  // changed by a materialization, read by all others
  Word uses, pins, signals{0};

  ModelFamily(ModelBlock* block, int value, std::size_t n_uses, std::size_t n_pins)
      : storage{block, value}, uses(n_uses), pins(n_pins) {}
  void end() noexcept {
    require(!is_ended, "a storage ends twice");
    is_ended = true;
    members.destroy();
    uses.destroy();
    pins.destroy();
  }

  bool is_ended = false;
};

namespace {

constexpr int kFirstValue = 7;

struct Failed {};

}  // namespace

class Scene {
 public:
  Scene(const Scenario& scenario, const Protocol& protocol)
      : scenario_(scenario),
        protocol_(protocol),
        n_owners_((scenario.family && !scenario.clones ? 0 : scenario.scripts.size()) +
                  (scenario.family ? 1 : 0)),
        first_(&blocks_.emplace_back(scenario.others + n_owners_, kFirstValue, scenario.chunks,
                                     false)),
        storages_(scenario.scripts.size()),
        holds_(scenario.scripts.size()) {
    if (!scenario.family || scenario.clones) {
      for (auto& storages : storages_) storages.push_back({first_, kFirstValue});
    }
    if (!scenario.family) return;
    family_.emplace(first_, kFirstValue, scenario.scripts.size(), scenario.pins);
    for (std::size_t t = 0; t < holds_.size(); ++t) {
      holds_[t].handles = 1;
      if (t < scenario.pins) holds_[t].pinned.push_back(first_);
    }
  }

  void run(std::size_t thread) {
    const std::string& script = scenario_.scripts[thread];
    std::vector<ModelStorage>& mine = storages_[thread];
    for (std::size_t at = 0; at < script.size(); at += 2) {
      if (script[at] == '.') return;
      const auto which = static_cast<std::size_t>(script[at + 1] - '0');
      const int value = static_cast<int>(100 * (thread + 1) + at);
      if (script[at] == 'A') {
        if (family_->signals.load(std::memory_order_acquire) == 0) break;
      } else if (script[at] >= 'A' && script[at] <= 'Z') {
        act_on_family(script[at], thread, value);
      } else {
        act(script[at], mine, which, value);
      }
    }
    for (ModelStorage& storage : mine) drop(storage);
    while (!holds_[thread].pinned.empty()) lower_pin(holds_[thread]);
    while (holds_[thread].handles > 0) drop_handle(holds_[thread]);
  }

  std::string finish() const {
    std::size_t live = 0, referring = 0, unfreed = 0;
    std::vector<ModelStorage> all;
    for (const auto& thread : storages_) all.insert(all.end(), thread.begin(), thread.end());
    if (family_ && !family_->is_ended) all.push_back(family_->storage);
    for (const ModelStorage& storage : all) {
      if (storage.block == nullptr) continue;
      ++live;
      referring += storage.block == first_ ? 1 : 0;
      require(!storage.block->is_freed, "a storage refers to a freed block");
      if (storage.block->is_freed) return "";
      check(storage);
    }
    for (const ModelBlock& block : blocks_) unfreed += block.is_freed ? 0 : 1;
    if (family_) {
      int handles = 0;
      for (const Hold& hold : holds_) handles += hold.handles;
      require(family_->is_ended == (handles == 0), "a storage outlives its handles");
    }
    const cow::Bits others = scenario_.others;
    require(first_->is_freed == (referring + cow::refs(others) == 0),
            "the block leaks, or is gone");
    require(first_->is_freed || first_->word.final_value() == others + referring,
            "the word is wrong at the end");
    require(unfreed <= live + 1, "a copy leaks");
    return "copies " + std::to_string(counts_.copies) + ", given up " +
           std::to_string(counts_.discards) + ", taken over " + std::to_string(counts_.take_overs) +
           ", wakes " + std::to_string(counts_.wakes) + ", storages " + std::to_string(live) +
           (family_ ? ", pinned " + std::to_string(counts_.pinned) : "");
  }

 private:
  friend class Environment;

  using Failure = Environment::Failure;

  void act(char action, std::vector<ModelStorage>& mine, std::size_t which, int value) {
    switch (action) {
      case 'c':
        return clone(mine, mine[which]);
      case 'k':
        return clone(mine, {first_, kFirstValue});
      case 'd':
        return drop(mine[which]);
      case 'r':
        return check(mine[which]);
      case 'w':
        return write(mine[which], value, Failure::none, protocol_.materialize);
      case 'f':
        return write(mine[which], value, Failure::of_allocation, protocol_.materialize);
      case 'g':
        return write(mine[which], value, Failure::of_copy, protocol_.materialize);
      case 'o':
        return write(mine[which], value, Failure::none, protocol_.replace);
      case 'p':
        return write(mine[which], value, Failure::of_allocation, protocol_.replace);
      default:
        throw std::logic_error("unknown action");
    }
  }

  static void check(const ModelStorage& storage) {
    if (storage.block == nullptr) return;  // the clone was not made
    for (const Cell& cell : storage.block->data) {
      require(cell.read() == storage.expected, "a storage shows somebody else's data");
    }
  }

  void clone(std::vector<ModelStorage>& mine, ModelStorage source) {
    if (!protocol_.add_ref(source.block->word)) source = {};
    mine.push_back(source);
  }

  void drop(ModelStorage& storage) {
    if (storage.block == nullptr) return;
    if (protocol_.drop_ref(storage.block->word)) storage.block->free();
    storage.block = nullptr;
  }

  // Like Storage::mutable_data and overwrite_data, then a write.
  void write(ModelStorage& storage, int value, Failure failure, bool (*own)(Word&, Environment&)) {
    if (storage.block == nullptr) return;
    if (!protocol_.is_sole(storage.block->word)) {
      Environment environment(*this, storage, failure);
      try {
        if (own(storage.block->word, environment)) {
          storage.block = environment.copy();
          require(storage.block != nullptr, "a write that has no memory");
        } else {
          ++counts_.take_overs;
        }
      } catch (const Failed&) {
        return;
      }
    }
    require(!storage.block->is_fixed, "fixed data are written");
    for (Cell& cell : storage.block->data) cell.write(value);
    storage.expected = value;
  }

  // The handles and pins of a thread.
  struct Hold {
    int handles = 0;
    std::vector<ModelBlock*> pinned;  // for each pin: the promised place of the data
  };

  // Like the members of Storage.
  void act_on_family(char action, std::size_t thread, int value) {
    Hold& hold = holds_[thread];
    std::vector<ModelStorage>& mine = storages_[thread];
    require(!family_->is_ended, "a handle on a storage that is gone");
    switch (action) {
      case 'R':
        family_->members.read();
        return check(family_->storage);
      case 'W':
        return write_family(value);
      case 'C':
        family_->members.read();
        return clone_family(mine);
      case 'E':
        family_->members.read();
        if (!protocol_.join_pin(family_->pins)) return clone_family(mine);
        return hold.pinned.push_back(family_->storage.block);
      case 'Z':
        family_->signals.load(std::memory_order_relaxed);  // a step: others may run before
        for (const ModelStorage& storage : mine) check(storage);
        for (const ModelBlock* block : hold.pinned) require_in_place(block);
        return;
      case 'N':
        protocol_.add_use(family_->uses);
        ++hold.handles;
        return;
      case 'D':
        return drop_handle(hold);
      case 'P':
        own_family();
        protocol_.raise_pin(family_->pins);
        return hold.pinned.push_back(family_->storage.block);
      case 'X':
        for (ModelBlock* block : hold.pinned) {
          require_in_place(block);
          for (Cell& cell : block->data) cell.write(value);
          family_->storage.expected = value;
        }
        return;
      case 'U':
        if (!hold.pinned.empty()) lower_pin(hold);
        return;
      case 'S':
        family_->signals.fetch_add(1, std::memory_order_release);
        return;
      default:
        throw std::logic_error("unknown action");
    }
  }

  void require_in_place(const ModelBlock* block) const {
    require(!block->is_freed && block == family_->storage.block, "a promised address is stale");
  }

  void clone_family(std::vector<ModelStorage>& mine) {
    if (!protocol_.is_pinned(family_->pins)) return clone(mine, family_->storage);
    ++counts_.pinned;
    mine.push_back({});
  }

  // Reserves room for a write, which changes the members if there is none.
  void own_family() {
    family_->members.read();
    if (protocol_.is_sole(family_->storage.block->word)) return;
    Environment environment(*this, family_->storage, Failure::none);
    const bool is_copied = protocol_.materialize(family_->storage.block->word, environment);
    if (is_copied) {
      family_->members.write(0);
      family_->storage.block = environment.copy();
    } else {
      ++counts_.take_overs;
    }
  }

  void write_family(int value) {
    own_family();
    for (Cell& cell : family_->storage.block->data) cell.write(value);
    family_->storage.expected = value;
  }

  void lower_pin(Hold& hold) {
    hold.pinned.pop_back();
    protocol_.lower_pin(family_->pins);
  }

  void drop_handle(Hold& hold) {
    --hold.handles;
    if (!protocol_.drop_use(family_->uses)) return;
    family_->end();
    drop(family_->storage);
  }

  struct Counts {
    int copies = 0, discards = 0, take_overs = 0, wakes = 0, pinned = 0;
  };

  const Scenario& scenario_;
  const Protocol& protocol_;
  std::deque<ModelBlock> blocks_;
  const std::size_t n_owners_;
  ModelBlock* first_;
  std::vector<std::vector<ModelStorage>> storages_;
  std::vector<Hold> holds_;
  std::optional<ModelFamily> family_;
  Counts counts_;
};

void Environment::allocate() {
  if (failure_ == Failure::of_allocation) throw Failed{};
  // A copy for one thread's storage is local; a copy for a family may be freed by any thread.
  copy_ = &scene_.blocks_.emplace_back(cow::kOneRef, 0, scene_.scenario_.chunks,
                                       !scene_.scenario_.family);
  ++scene_.counts_.copies;
}

bool Environment::copy_chunk() {
  if (chunk_ == scene_.scenario_.chunks) return false;
  require(copy_ != nullptr, "a copy to nowhere");
  const int value = storage_.block->data[chunk_].read();
  require(value == storage_.expected, "a copy has somebody else's data");
  copy_->data[chunk_++].write(value);
  if (failure_ == Failure::of_copy) throw Failed{};
  return true;
}

void Environment::discard() noexcept {
  if (copy_ == nullptr) return;
  std::exchange(copy_, nullptr)->free();
  --scene_.counts_.copies;
  ++scene_.counts_.discards;
}

void Environment::free_old() noexcept { storage_.block->free(); }

void Environment::wait(const Word& word, cow::Bits seen) { park(word, seen); }

void Environment::wake(const Word* word) noexcept {
  ++scene_.counts_.wakes;
  unpark(word);
}

std::string Scenario::name() const {
  std::string all;
  for (const std::string& script : scripts) all += (all.empty() ? "" : " | ") + script;
  if (cow::is_fixed(others)) all += ", fixed";
  if (cow::refs(others) > 0) all += ", " + std::to_string(cow::refs(others)) + " others";
  if (chunks != 1) all += ", " + std::to_string(chunks) + " chunks";
  if (family) all += ", one storage, " + std::to_string(pins) + " pins";
  if (clones) all += ", clones";
  return all;
}

Report run(const Scenario& scenario, const Protocol& protocol) {
  std::optional<Scene> scene;
  Program program;
  program.start = [&] {
    scene.reset();
    scene.emplace(scenario, protocol);
    std::vector<std::function<void()>> threads;
    for (std::size_t t = 0; t < scenario.scripts.size(); ++t) {
      threads.emplace_back([&scene, t] { scene->run(t); });
    }
    return threads;
  };
  program.finish = [&] { return scene->finish(); };
  return explore(program);
}

}  // namespace palimpsest::model
