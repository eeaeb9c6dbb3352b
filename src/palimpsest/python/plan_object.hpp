// SPDX-License-Identifier: Apache-2.0
// Internal: plans as objects, and texts of budgets.
#pragma once

#include <memory>
#include <span>

#include "palimpsest/base/config.hpp"
#include "palimpsest/plan/plan.hpp"
#include "palimpsest/python/convert.hpp"

namespace palimpsest::python {

struct PlanObject {
  std::shared_ptr<const Plan> plan;
};

/// Adds the copies of results that share their data when arrays of NumPy show them, unless they are
/// lent.
void add_copies_of_arrays(Plan& plan, std::span<const char> lent = {});

/// A number of bytes: an integer, or a text such as `300M`, `1.5G`, `256MiB`.
index_t bytes_of(nb::handle object, const char* who = "budget");
/// `raise`, `warn` or `ignore`.
Reaction reaction_named(const std::string& name);

}  // namespace palimpsest::python
