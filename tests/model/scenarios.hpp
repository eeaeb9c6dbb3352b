// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/cow_scene.hpp"

namespace palimpsest::model {

/// Every pair of scripts of a list that covers all operations, and some that need more.
std::vector<Scenario> two_threads();
std::vector<Scenario> three_threads();
/// Handles and pins of one storage.
std::vector<Scenario> families();
/// Small ones, which together tell the protocol from each of its mutants.
std::vector<Scenario> telling();

/// Prints a text, whose first line says it all, and leaves it in DIR/TITLE/summary where DIR is the
/// value of PALIMPSEST_SUMMARIES, if that is set.
void summarize(const std::string& title, const std::string& text);

}  // namespace palimpsest::model
