// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/cow_scene.hpp"

namespace palimpsest::model {

/// Every pair of scripts from a list that covers all operations, and some larger ones.
std::vector<Scenario> two_threads();
std::vector<Scenario> three_threads();
/// Handles and pins of one storage.
std::vector<Scenario> families();
/// Small scenarios that together distinguish the protocol from each of its mutants.
std::vector<Scenario> telling();

/// Prints a text whose first line is the summary, and writes it to DIR/TITLE/summary if
/// PALIMPSEST_SUMMARIES is set to DIR.
void summarize(const std::string& title, const std::string& text);

}  // namespace palimpsest::model
