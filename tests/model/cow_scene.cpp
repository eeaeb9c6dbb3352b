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

// What Storage is, on blocks of the model.
struct ModelStorage {
  ModelBlock* block = nullptr;  // null once dropped
  int expected = 0;             // what its data must be
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
        first_(&blocks_.emplace_back(scenario.others + scenario.scripts.size(), kFirstValue,
                                     scenario.chunks, false)),
        storages_(scenario.scripts.size(), {{first_, kFirstValue}}) {}

  void run(std::size_t thread) {
    const std::string& script = scenario_.scripts[thread];
    std::vector<ModelStorage>& mine = storages_[thread];
    for (std::size_t at = 0; at < script.size(); at += 2) {
      if (script[at] == '.') return;
      const auto which = static_cast<std::size_t>(script[at + 1] - '0');
      act(script[at], mine, which, static_cast<int>(100 * (thread + 1) + at));
    }
    for (ModelStorage& storage : mine) drop(storage);
  }

  std::string finish() const {
    std::size_t live = 0, referring = 0, unfreed = 0;
    for (const auto& thread : storages_) {
      for (const ModelStorage& storage : thread) {
        if (storage.block == nullptr) continue;
        ++live;
        referring += storage.block == first_ ? 1 : 0;
        require(!storage.block->is_freed, "a storage refers to a freed block");
        if (storage.block->is_freed) return "";
        check(storage);
      }
    }
    for (const ModelBlock& block : blocks_) unfreed += block.is_freed ? 0 : 1;
    const cow::Bits others = scenario_.others;
    require(first_->is_freed == (referring + cow::refs(others) == 0),
            "the block leaks, or is gone");
    require(first_->is_freed || first_->word.final_value() == others + referring,
            "the word is wrong at the end");
    require(unfreed <= live + 1, "a copy leaks");
    return "copies " + std::to_string(counts_.copies) + ", given up " +
           std::to_string(counts_.discards) + ", taken over " + std::to_string(counts_.take_overs) +
           ", wakes " + std::to_string(counts_.wakes) + ", storages " + std::to_string(live);
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

  // As Storage::mutable_data and overwrite_data do, and then a write.
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

  struct Counts {
    int copies = 0, discards = 0, take_overs = 0, wakes = 0;
  };

  const Scenario& scenario_;
  const Protocol& protocol_;
  std::deque<ModelBlock> blocks_;
  ModelBlock* first_;
  std::vector<std::vector<ModelStorage>> storages_;
  Counts counts_;
};

void Environment::allocate() {
  if (failure_ == Failure::of_allocation) throw Failed{};
  copy_ = &scene_.blocks_.emplace_back(cow::kOneRef, 0, scene_.scenario_.chunks, true);
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
