// SPDX-License-Identifier: Apache-2.0
// Internal: state of a Function.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "palimpsest/run/frame_pool.hpp"
#include "palimpsest/run/profiler.hpp"
#include "palimpsest/run/program.hpp"

namespace palimpsest {

/// A program, the cells it works on, and the frames of its calls.
struct FunctionState {
  FunctionState(std::shared_ptr<const Program> made, std::vector<std::shared_ptr<Container>> cells,
                std::string called, bool is_profiled);

  std::shared_ptr<const Program> program;
  std::vector<std::shared_ptr<Container>> containers;
  /// Containers that values of `containers` are derived from and the program does not read.
  std::vector<std::shared_ptr<Container>> sources;
  std::vector<std::size_t> lock_order;  // cells by id
  std::vector<std::size_t> derived;     // containers with values derived from others
  std::shared_ptr<FramePool> pool = std::make_shared<FramePool>();
  std::string name;
  std::shared_ptr<const std::string> title;  // the name, or `function`; results refer to it
  std::unique_ptr<Profiler> profiler;        // null: calls are not measured

  /// The containers, then the sources.
  std::size_t cell_count() const { return containers.size() + sources.size(); }
  const std::shared_ptr<Container>& cell(std::size_t c) const {
    return c < containers.size() ? containers[c] : sources[c - containers.size()];
  }
  /// The start of every message about a call: the name, or `function`.
  const std::string& who() const { return *title; }
  /// `name argument 2 'image'`.
  std::string who(std::size_t argument) const;
};

}  // namespace palimpsest
