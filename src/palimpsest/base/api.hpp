// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Marks the namespace of a public header: what is declared there is visible outside of the
/// library. Everything else is compiled with hidden visibility.
///
///     namespace PALIMPSEST_API palimpsest { .. }
#define PALIMPSEST_API [[gnu::visibility("default")]]
