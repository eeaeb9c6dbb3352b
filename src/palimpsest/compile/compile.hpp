// SPDX-License-Identifier: Apache-2.0
// Internal: from a graph to a program.
#pragma once

#include <memory>
#include <vector>

#include "palimpsest/compile/function.hpp"
#include "palimpsest/run/program.hpp"

namespace palimpsest {

/// From the graph that a user built to a program and the cells it works on.
struct Compiled {
  std::shared_ptr<const Program> program;
  std::vector<std::shared_ptr<Container>> containers;
};
Compiled compile(std::vector<In> inputs, Outputs outputs, FunctionOptions options);

/// A program of this graph with these options, nothing else filled in.
std::shared_ptr<Program> make_program(FunctionGraph graph, ProgramOptions options = {});

/// The program without its updates and the inputs that only they needed; `kept` tells which
/// containers remain.
std::shared_ptr<const Program> without_updates(const Program& program, std::vector<int>* kept);

}  // namespace palimpsest
