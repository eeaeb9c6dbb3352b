// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Marks the namespace of a public header: its declarations are visible outside of the library. All
/// other code is compiled with hidden visibility.
///
///     namespace PALIMPSEST_API palimpsest { .. }
#define PALIMPSEST_API [[gnu::visibility("default")]]
