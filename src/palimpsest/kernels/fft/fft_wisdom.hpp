// SPDX-License-Identifier: Apache-2.0
// Internal: measurements of transforms, kept from process to process.
#pragma once

#include <string>
#include <string_view>

namespace palimpsest {

/// Storage of measurements.
struct WisdomPlace {
  bool measures = true;  // else all plans are estimates, which are the same on every run
  std::string path;      // empty: for this process only
  friend bool operator==(const WisdomPlace&, const WisdomPlace&) = default;
};

/// The place that these values of environment variables select; null pointers are unset variables.
///
///     PALIMPSEST_FFT_WISDOM   off: estimates only; memory: measured, not kept; else a file
///     XDG_CACHE_HOME, HOME    where the file is otherwise: palimpsest/fft-<machine> there
WisdomPlace wisdom_place(const char* setting, const char* cache_home, const char* home);
/// The place for this process, asked for once.
const WisdomPlace& wisdom_place();

/// A text that differs between machines whose measurements differ: processor and library.
std::string machine_name();

/// The file's content for measurements of both precisions; and back. A text that is damaged, cut
/// off or from another machine gives false and no measurements.
std::string wisdom_text(std::string_view single, std::string_view twice);
bool parse_wisdom(std::string_view text, std::string& single, std::string& twice);

enum class WisdomPart { both, single, twice };
/// Adds the measurements of a file, of one precision or both, to those of this process. False: no
/// such file, or one of another kind. A precision that is left out costs no memory of the library.
bool load_wisdom(const std::string& path, WisdomPart part = WisdomPart::both);
/// Writes the measurements of this process; the file appears whole or stays as it was. False: it
/// cannot be written; that is not an error.
bool save_wisdom(const std::string& path);

}  // namespace palimpsest
