// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/run/function_state.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_set>

namespace palimpsest {
namespace {

// The containers that values of the cells are derived from, directly or through others; without the
// cells.
std::vector<std::shared_ptr<Container>> sources_of(
    const std::vector<std::shared_ptr<Container>>& cells) {
  std::vector<std::shared_ptr<Container>> sources, open = cells;
  std::unordered_set<const Container*> known;
  for (const auto& cell : cells) known.insert(cell.get());
  while (!open.empty()) {
    const Derivation* derivation = open.back()->derivation();
    open.pop_back();
    if (!derivation) continue;
    for (const auto& source : derivation->sources()) {
      if (!known.insert(source.get()).second) continue;
      sources.push_back(source);
      open.push_back(source);
    }
  }
  return sources;
}

}  // namespace

FunctionState::FunctionState(std::shared_ptr<const Program> made,
                             std::vector<std::shared_ptr<Container>> cells, std::string called,
                             bool is_profiled)
    : program(std::move(made)),
      containers(std::move(cells)),
      sources(sources_of(containers)),
      lock_order(cell_count()),
      name(std::move(called)),
      title(std::make_shared<const std::string>(name.empty() ? "function" : name)) {
  std::iota(lock_order.begin(), lock_order.end(), std::size_t{0});
  std::sort(lock_order.begin(), lock_order.end(),
            [&](std::size_t a, std::size_t b) { return cell(a)->id() < cell(b)->id(); });
  for (std::size_t c = 0; c < containers.size(); ++c) {
    if (containers[c]->derivation()) derived.push_back(c);
  }
  pool->set_allow_gc(program->config->allow_gc);
  if (is_profiled) profiler = std::make_unique<Profiler>(program->config->profile_memory);
}

std::string FunctionState::who(std::size_t argument) const {
  const std::string& keyword = program->arguments[argument].name;
  return who() + " argument " + std::to_string(argument) +
         (keyword.empty() ? "" : " '" + keyword + "'");
}

}  // namespace palimpsest
