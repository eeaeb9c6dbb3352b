// SPDX-License-Identifier: Apache-2.0
// Internal: measurements of transforms, kept from process to process.
#pragma once

#include <string>
#include <string_view>

namespace palimpsest {

/// Where measurements are kept.
struct WisdomPlace {
  bool measures = true;  // else all plans are estimates, which are the same in every process
  std::string path;      // empty: kept in this process only
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

/// Converts measurements of both precisions to the content of a file; and back. Text that is
/// damaged, truncated or from another machine gives false and no measurements.
std::string wisdom_text(std::string_view single, std::string_view twice);
bool parse_wisdom(std::string_view text, std::string& single, std::string& twice);

enum class WisdomPart { both, single, twice };
/// Adds the measurements of a file, of one precision or both, to those of this process. False if
/// the file is missing or of another kind. A precision that is not read costs no memory of the
/// library.
bool load_wisdom(const std::string& path, WisdomPart part = WisdomPart::both);
/// Writes the measurements of this process. The file is replaced as a whole or left unchanged.
/// False if it cannot be written, which is not an error.
bool save_wisdom(const std::string& path);

}  // namespace palimpsest
