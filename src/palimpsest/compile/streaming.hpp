// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/compile/function.hpp"

namespace palimpsest {

/// The most bytes of mapped files that one step of a plan of f reads. With a budget a call keeps no
/// more of the files in memory at a time: the pages that a step has read are released after it.
/// `arguments`: the arguments of the call will be arrays in mapped files.
index_t streamed_bytes(const Function& f, const Plan& plan, bool arguments = false);

}  // namespace palimpsest
