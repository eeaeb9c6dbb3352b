// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/compile/function.hpp"

namespace palimpsest {

/// The most bytes of mapped files that one step of a plan of f reads. With a budget that is all of
/// the files that a call keeps in memory at a time: what a step has read is given back after it.
/// `arguments`: those of the call will be arrays in mapped files.
index_t streamed_bytes(const Function& f, const Plan& plan, bool arguments = false);

}  // namespace palimpsest
