// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace palimpsest::cli {

/// Takes the code and the constants of the program and its libraries out of the process's memory.
/// What runs again comes back from their files, piece by piece; what only planning needed stays
/// away.
void release_code_pages();

}  // namespace palimpsest::cli
