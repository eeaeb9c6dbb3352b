// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/base/failure.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace palimpsest::io_detail {

namespace {

std::string advice(int error_number) {
  switch (error_number) {
    case ENOENT: {
      std::error_code ignored;
      const auto here = std::filesystem::current_path(ignored);
      return fmt::format("Try another spelling; relative paths start at {}", here.string());
    }
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return "Try a place with more free space";
    case EACCES:
    case EPERM:
    case EROFS:
      return "Try another directory, or change the permissions";
    case EISDIR:
    case ENOTDIR:
      return "Try the path of a file in an existing directory";
    case ENAMETOOLONG:
      return "Try a shorter name";
    case EMFILE:
    case ENFILE:
      return "Try again with fewer open files";
    default:
      return "Try another place";
  }
}

}  // namespace

void fail_io(std::string_view path, std::string_view tried, int error_number) {
  const std::string reason = error_number == ENOENT ? "no such file or directory"
                                                    : std::generic_category().message(error_number);
  throw IoError(fmt::format("[{}] {}: {}. {}.", path, tried, reason, advice(error_number)));
}

void fail_format(std::string_view path, std::string_view what) {
  throw FormatError(fmt::format("[{}] {}", path, what));
}

std::string quoted(std::string_view text) {
  constexpr std::size_t kLongest = 48;
  std::string result = "'";
  for (const char c : text.substr(0, kLongest)) {
    if (c >= 0x20 && c < 0x7f) {
      result += c;
    } else {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  if (text.size() > kLongest) result += "...";
  return result + "'";
}

}  // namespace palimpsest::io_detail
