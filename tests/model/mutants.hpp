// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/cow_scene.hpp"

namespace palimpsest::model {

/// The protocol with one change.
struct Mutant {
  std::string name;  ///< function, and the statement with [old -> new]
  Protocol protocol;
};

/// All mutants that make_mutants.py derives from the production header.
const std::vector<Mutant>& mutants();

}  // namespace palimpsest::model
