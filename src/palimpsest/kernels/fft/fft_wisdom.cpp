// SPDX-License-Identifier: Apache-2.0
// File format: a magic line, the machine, sizes and a checksum of the rest, then FFTW's texts for
// both precisions. FFTW would accept any text, hence the checksum.
#include "palimpsest/kernels/fft/fft_wisdom.hpp"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "palimpsest/base/atomic_file.hpp"
#include "palimpsest/base/error.hpp"
#include "palimpsest/base/immortal.hpp"
#include "palimpsest/kernels/fft/fftw.hpp"

namespace palimpsest {
namespace {

constexpr std::string_view kMagic = "palimpsest-fft-wisdom 1";

// FNV-1a, 64 bits.
std::uint64_t checksum(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

std::string hexadecimal(std::uint64_t number) {
  std::ostringstream text;
  text << std::hex << number;
  return text.str();
}

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  std::string line, name;
  while (std::getline(info, line)) {
    // A virtual machine may hide the model name; the flags still differ.
    if (line.starts_with("model name") || line.starts_with("flags")) name += line;
    if (line.empty()) break;
  }
  return name;
}

bool is_absolute(const char* path) { return path != nullptr && path[0] == '/'; }

}  // namespace

std::string machine_name() {
  return immortal([] { return hexadecimal(checksum(processor_name() + fft_library_version())); });
}

WisdomPlace wisdom_place(const char* setting, const char* cache_home, const char* home) {
  const std::string_view wanted = setting == nullptr ? "" : setting;
  if (wanted == "off") return {false, ""};
  if (wanted == "memory") return {true, ""};
  if (!wanted.empty()) return {true, std::string(wanted)};
  std::filesystem::path folder;
  if (is_absolute(cache_home)) {
    folder = cache_home;
  } else if (is_absolute(home)) {
    folder = std::filesystem::path(home) / ".cache";
  } else {
    return {true, ""};
  }
  return {true, (folder / "palimpsest" / ("fft-" + machine_name())).string()};
}

const WisdomPlace& wisdom_place() {
  return immortal([] {
    return wisdom_place(std::getenv("PALIMPSEST_FFT_WISDOM"), std::getenv("XDG_CACHE_HOME"),
                        std::getenv("HOME"));
  });
}

std::string wisdom_text(std::string_view single, std::string_view twice) {
  std::string both(single);
  both += twice;
  std::string text(kMagic);
  for (const std::string& word : {machine_name(), std::to_string(single.size()),
                                  std::to_string(twice.size()), hexadecimal(checksum(both))}) {
    text += ' ';
    text += word;
  }
  return text + '\n' + both;
}

bool parse_wisdom(std::string_view text, std::string& single, std::string& twice) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos || !text.starts_with(kMagic)) return false;
  std::istringstream head{std::string(text.substr(kMagic.size(), end - kMagic.size()))};
  std::string machine, sum;
  std::size_t first = 0, second = 0;
  if (!(head >> machine >> first >> second >> sum) || machine != machine_name()) return false;
  const std::string_view both = text.substr(end + 1);
  if (first > both.size() || both.size() - first != second) return false;
  if (hexadecimal(checksum(both)) != sum) return false;
  single = both.substr(0, first);
  twice = both.substr(first);
  return true;
}

bool load_wisdom(const std::string& path, WisdomPart part) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return false;
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::string single, twice;
  if (!parse_wisdom(text, single, twice)) return false;
  if (part == WisdomPart::single) twice.clear();
  if (part == WisdomPart::twice) single.clear();
  return import_wisdom(single, twice);
}

bool save_wisdom(const std::string& path) {
  try {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    std::error_code ignored;
    if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
    std::string single, twice;
    export_wisdom(single, twice);
    AtomicFile file(path);
    file.write(wisdom_text(single, twice));
    file.commit();
    return true;
  } catch (const IoError&) {
    return false;
  }
}

}  // namespace palimpsest
