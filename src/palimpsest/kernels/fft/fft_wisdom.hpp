// SPDX-License-Identifier: Apache-2.0
// Internal: where measurements of transforms are kept from process to process.
#pragma once

#include <string>

namespace palimpsest {

/// Place where measurements are kept.
struct WisdomPlace {
  bool measures = true;  // else all plans are estimates, which are the same in every process
  std::string path;      // of double precision; that of single precision ends in `f`. Empty: none
  friend bool operator==(const WisdomPlace&, const WisdomPlace&) = default;
};

/// The place selected by environment variables, given by value; null: unset.
///
///     PALIMPSEST_FFT_WISDOM   off: estimates only; memory: measured, not kept; else a file
///     XDG_CACHE_HOME, HOME    where the file is otherwise: palimpsest/fft-<machine> there
WisdomPlace wisdom_place(const char* setting, const char* cache_home, const char* home);
/// The place for this process, determined once.
const WisdomPlace& wisdom_place();

/// A text that identifies the processor and the library: measurements of different machines differ.
std::string machine_name();

}  // namespace palimpsest
