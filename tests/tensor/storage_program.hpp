// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

// Random programs over tensors, run by the library and by a simulator without strides, blocks or
// laziness: a simulated storage is a vector of bytes, a simulated tensor the list of the positions
// of its elements, and every clone copies. It records which storages were cloned from each other
// and not written since (a family). This gives the minimum number of copies if shared bytes are
// never written.
namespace palimpsest::testing {

/// A program: one number per step, which determines the step. So any part of a program is a
/// program, too.
using Program = std::vector<std::uint64_t>;

Program random_program(std::uint64_t seed, std::size_t n_steps);

/// Planted into the simulator, to check that differences are found.
enum class Fault {
  none,
  clones_alias,        ///< a lazy clone is a view
  views_are_clones,    ///< a view is a lazy clone
  last_one_copies,     ///< the last member that shares data needs a copy
  overwriting_copies,  ///< an overwrite of everything moves the old bytes
  failures_write,      ///< a write without memory has an effect
  pins_are_ignored,    ///< the clone of a pinned storage is lazy
};

/// The first difference between library and simulator, in bytes, aliases, copies made, freed memory
/// or errors; empty if there is none. Writes the steps down in `*listing` unless it is null.
std::string difference(const Program& program, Fault fault = Fault::none,
                       std::string* listing = nullptr);

/// A part of a program that still differs, without needless steps.
Program shrunk(Program program, Fault fault = Fault::none);

}  // namespace palimpsest::testing
