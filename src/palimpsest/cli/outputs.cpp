// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/outputs.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "palimpsest/cli/failure.hpp"

namespace palimpsest::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 7> kKnownEndings = {".png", ".npy", ".h5", ".json",
                                                           ".cfl", ".nii", ".hdr"};

// What a link leads to, so that the link stays a link.
fs::path target_of(const std::string& path) {
  std::error_code ignored;
  const fs::path resolved = fs::weakly_canonical(path, ignored);
  return ignored ? fs::path(path) : resolved;
}

bool is_special(const fs::path& target) {
  std::error_code ignored;
  const fs::file_status status = fs::status(target, ignored);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

}  // namespace

Outputs::~Outputs() {
  for (const Pending& file : pending_) {
    std::error_code ignored;
    fs::remove(file.temporary, ignored);
  }
}

void Outputs::announce(const std::string& path, const std::string& ending) {
  if (path.empty()) return;
  const fs::path target = target_of(path);
  const std::string actual = target.extension().string();
  if (actual != ending &&
      std::find(kKnownEndings.begin(), kKnownEndings.end(), actual) != kKnownEndings.end()) {
    throw UsageError(fmt::format("[{}] this output is written as {}: got the ending '{}'. Try '{}'",
                                 path, ending.substr(1), actual,
                                 fs::path(path).replace_extension(ending).string()));
  }
  std::error_code ignored;
  if (fs::is_directory(target, ignored)) {
    throw UsageError(fmt::format("[{}] is a directory, expected the name of a file. Try '{}'", path,
                                 (fs::path(path) / ("output" + ending)).string()));
  }
  const fs::path directory = target.has_parent_path() ? target.parent_path() : fs::path(".");
  if (!fs::is_directory(directory, ignored)) {
    throw UsageError(fmt::format("[{}] there is no directory '{}'. Try mkdir -p '{}'", path,
                                 directory.string(), directory.string()));
  }
  if (is_special(target)) return;
  if (access(directory.c_str(), W_OK | X_OK) != 0) {
    throw IoError(fmt::format(
        "[{}] the directory '{}' cannot be written. Try another directory, or chmod u+w", path,
        directory.string()));
  }
  if (std::find(announced_.begin(), announced_.end(), target.string()) != announced_.end()) {
    throw UsageError(fmt::format("[{}] two outputs have the same name. Try another", path));
  }
  announced_.push_back(target.string());
}

void Outputs::write(const std::string& path,
                    const std::function<void(const std::string&)>& writer) {
  if (path.empty()) return;
  const fs::path target = target_of(path);
  if (is_special(target)) {
    writer(path);
    committed_.push_back(path);
    return;
  }
  const fs::path temporary =
      target.parent_path() / fmt::format(".{}.{}", target.filename().string(), getpid());
  pending_.push_back({path, temporary.string(), target.string()});
  try {
    writer(temporary.string());
  } catch (const IoError& error) {
    std::string text = error.what();
    const std::size_t at = text.find(temporary.string());
    if (at != std::string::npos) text.replace(at, temporary.string().size(), path);
    throw IoError(text);
  }
}

void Outputs::commit() {
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    const Pending& file = pending_[i];
    std::error_code error;
    const fs::file_status old = fs::status(file.target, error);
    if (fs::exists(old)) fs::permissions(file.temporary, old.permissions(), error);
    fs::rename(file.temporary, file.target, error);
    if (error) {
      pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(i));
      throw IoError(fmt::format("[{}] cannot be renamed to: {}. Try another directory", file.path,
                                error.message()));
    }
    committed_.push_back(file.path);
  }
  pending_.clear();
}

}  // namespace palimpsest::cli
