// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/outputs.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>

#include "palimpsest/base/atomic_file.hpp"
#include "palimpsest/cli/failure.hpp"
#include "palimpsest/cli/standard_output.hpp"

namespace palimpsest::cli {
namespace {

namespace fs = std::filesystem;

bool is_special(const fs::path& target) {
  std::error_code ignored;
  const fs::file_status status = fs::status(target, ignored);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

fs::path directory_of(const fs::path& target) {
  return target.has_parent_path() ? target.parent_path() : fs::path(".");
}

bool ends_in(const std::string& path, const std::string& ending) {
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  return path.size() > ending.size() &&
         std::equal(path.end() - std::ssize(ending), path.end(), ending.begin(), same) &&
         path[path.size() - ending.size() - 1] != '/';
}

// The files that a path may stand for: a BART CFL is two, named by either or by their stem.
std::vector<std::string> files_behind(const std::string& path) {
  std::vector<std::string> files = {path, path + ".cfl", path + ".hdr"};
  for (const std::string ending : {".cfl", ".hdr"}) {
    if (!path.ends_with(ending)) continue;
    files.push_back(path.substr(0, path.size() - ending.size()) +
                    (ending == ".cfl" ? ".hdr" : ".cfl"));
  }
  return files;
}

}  // namespace

Outputs::Outputs() {
  struct stat status = {};
  if (::fstat(STDOUT_FILENO, &status) != 0 || !S_ISREG(status.st_mode)) return;
  announced_.push_back({"standard output", {status.st_dev, status.st_ino, {}}});
}

Outputs::~Outputs() {
  std::error_code ignored;
  for (const Pending& file : pending_) fs::remove(file.temporary, ignored);
}

Outputs::File Outputs::file_of(const std::string& target) {
  struct stat status = {};
  if (::stat(target.c_str(), &status) == 0) return {status.st_dev, status.st_ino, {}};
  if (::stat(directory_of(target).c_str(), &status) != 0) return {0, 0, target};
  return {status.st_dev, status.st_ino, fs::path(target).filename().string()};
}

void Outputs::reads(const std::string& path) {
  if (path.empty()) return;
  for (const std::string& name : files_behind(path)) {
    struct stat status = {};
    if (::stat(name.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    inputs_.push_back({name, {status.st_dev, status.st_ino, {}}});
    for (const Known& output : announced_) {
      if (output.file != inputs_.back().file) continue;
      throw UsageError(fmt::format(
          "[{}] is an input of this run and would be overwritten by {}. Try another output", name,
          output.path));
    }
  }
}

void Outputs::check_target(const std::string& path, const std::string& target,
                           const std::string& ending) const {
  std::error_code ignored;
  if (fs::is_directory(target, ignored)) {
    throw UsageError(fmt::format("[{}] is a directory, expected the name of a file. Try '{}'", path,
                                 (fs::path(path) / ("output" + ending)).string()));
  }
  if (!ends_in(path, ending)) {
    throw UsageError(
        fmt::format("[{}] this output is written as {}: got the ending '{}', expected "
                    "'{}'. Try '{}'",
                    path, ending.substr(1), fs::path(path).extension().string(), ending,
                    fs::path(path).replace_extension(ending).string()));
  }
  const fs::path directory = directory_of(target);
  if (!fs::is_directory(directory, ignored)) {
    throw UsageError(fmt::format("[{}] there is no directory '{}'. Try mkdir -p '{}'", path,
                                 directory.string(), directory.string()));
  }
  const auto length = static_cast<long>(fs::path(target).filename().string().size());
  const long longest = ::pathconf(directory.c_str(), _PC_NAME_MAX);
  if (longest > 0 && length > longest) {
    throw UsageError(
        fmt::format("[{}] the name is too long: got {} bytes, expected at most {}. "
                    "Try a shorter one",
                    path, length, longest));
  }
  if (::access(directory.c_str(), W_OK | X_OK) != 0) {
    throw IoError(fmt::format(
        "[{}] the directory '{}' cannot be written. Try another directory, or chmod u+w", path,
        directory.string()));
  }
  if (::access(target.c_str(), F_OK) == 0 && ::access(target.c_str(), W_OK) != 0) {
    throw IoError(fmt::format(
        "[{}] is there already and cannot be written. Try another name, or chmod u+w", path));
  }
}

void Outputs::announce(const std::string& path, const std::string& ending) {
  if (path.empty()) return;
  const std::string target = link_target(path);
  const Known output{path, file_of(target)};
  const auto is_same = [&](const Known& other) { return other.file == output.file; };
  const auto input = std::find_if(inputs_.begin(), inputs_.end(), is_same);
  if (input != inputs_.end()) {
    throw UsageError(fmt::format("[{}] this output would overwrite the input {}. Try another name",
                                 path, input->path));
  }
  if (is_special(target)) return;
  check_target(path, target, ending);
  const auto other = std::find_if(announced_.begin(), announced_.end(), is_same);
  if (other != announced_.end()) {
    throw UsageError(fmt::format("[{}] two outputs are the same file: got {} as well. Try another",
                                 path, other->path));
  }
  announced_.push_back(output);
}

// A name of its own: that of the target may be as long as names can be.
std::string Outputs::temporary_beside(const std::string& target) {
  return (directory_of(target) / fmt::format(".palimpsest-{}-{}.tmp", ::getpid(), n_temporaries_++))
      .string();
}

void Outputs::write(const std::string& path,
                    const std::function<void(const std::string&)>& writer) {
  if (path.empty()) return;
  const std::string target = link_target(path);
  written_.push_back(path);
  if (is_special(target)) return writer(path);
  const std::string temporary = temporary_beside(target);
  pending_.push_back({.path = path, .temporary = temporary, .target = target});
  try {
    writer(temporary);
  } catch (const IoError& error) {
    std::string text = error.what();
    const std::size_t at = text.find(temporary);
    if (at != std::string::npos) text.replace(at, temporary.size(), path);
    throw IoError(text);
  }
}

void Outputs::replace(Pending& file) {
  std::error_code error;
  const fs::file_status old = fs::status(file.target, error);
  file.is_new = !fs::exists(old);
  if (!file.is_new) {
    fs::permissions(file.temporary, old.permissions(), error);
    const std::string backup = temporary_beside(file.target);
    fs::create_hard_link(file.target, backup, error);
    if (!error) file.backup = backup;
  }
  fs::rename(file.temporary, file.target, error);
  if (!error) return;
  std::error_code ignored;
  if (!file.backup.empty()) fs::remove(file.backup, ignored);
  throw IoError(fmt::format("[{}] cannot get its name: {}. Try another directory", file.path,
                            error.message()));
}

void Outputs::put_back(const Pending& file) {
  std::error_code ignored;
  if (!file.backup.empty()) fs::rename(file.backup, file.target, ignored);
  if (file.is_new) fs::remove(file.target, ignored);
}

void Outputs::commit() {
  flush_standard_output();
  std::size_t n_done = 0;
  try {
    for (; n_done < pending_.size(); ++n_done) replace(pending_[n_done]);
  } catch (...) {
    while (n_done-- > 0) put_back(pending_[n_done]);
    throw;
  }
  std::error_code ignored;
  for (const Pending& file : pending_) {
    if (!file.backup.empty()) fs::remove(file.backup, ignored);
  }
  pending_.clear();
}

}  // namespace palimpsest::cli
