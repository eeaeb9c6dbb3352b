// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace palimpsest::cli {

/// Releases the pages of code and constants of the program and its libraries from the process's
/// memory. The system reads a page again from its file when it is next used; pages that only
/// planning used stay out.
void release_code_pages();

}  // namespace palimpsest::cli
