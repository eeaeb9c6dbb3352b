// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/outputs.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <filesystem>
#include <system_error>

#include "palimpsest/base/atomic_file.hpp"
#include "palimpsest/cli/prelude.hpp"

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

// The two files of a CFL that is named by either; else the file itself.
std::vector<std::string> files_of_output(const std::string& path) {
  for (const std::string ending : {".cfl", ".hdr"}) {
    if (!ends_in(path, ending)) continue;
    const std::string stem = path.substr(0, path.size() - ending.size());
    return {stem + ".hdr", stem + ".cfl"};
  }
  return {path};
}

std::string either_of(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += i == 0 ? "" : i + 1 == words.size() ? " or " : ", ";
    text += "'" + words[i] + "'";
  }
  return text;
}

std::string ending_of(const std::string& path, const std::vector<std::string>& endings) {
  const auto found = std::find_if(endings.begin(), endings.end(),
                                  [&](const std::string& e) { return ends_in(path, e); });
  return found == endings.end() ? "" : *found;
}

void check_ending(const std::string& path, const std::vector<std::string>& endings) {
  if (endings.empty() || !ending_of(path, endings).empty()) return;
  const std::string as = endings.size() == 1 ? " is written as " + endings.front().substr(1) : "";
  throw UsageError(fmt::format("[{}] this output{}: got the ending '{}', expected {}. Try '{}'",
                               path, as, fs::path(path).extension().string(), either_of(endings),
                               fs::path(path).replace_extension(endings.front()).string()));
}

void check_target(const std::string& path, const std::string& target,
                  const std::vector<std::string>& endings) {
  std::error_code ignored;
  if (fs::is_directory(target, ignored)) {
    throw UsageError(fmt::format(
        "[{}] is a directory, expected the name of a file. Try '{}'", path,
        (fs::path(path) / ("output" + (endings.empty() ? "" : endings.front()))).string()));
  }
  check_ending(path, endings);
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

}  // namespace

bool ends_in(const std::string& path, const std::string& ending) {
  // The two files of a CFL have names that others look for.
  const bool is_exact = ending == ".cfl" || ending == ".hdr";
  const auto same = [is_exact](char a, char b) {
    return (is_exact ? a : std::tolower(static_cast<unsigned char>(a))) == b;
  };
  return path.size() > ending.size() &&
         std::equal(path.end() - std::ssize(ending), path.end(), ending.begin(), same) &&
         path[path.size() - ending.size() - 1] != '/';
}

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

void Outputs::announce(const std::string& path, const std::vector<std::string>& endings) {
  if (path.empty()) return;
  const std::vector<std::string> files = files_of_output(path);
  if (files.size() == 1) return announce_one(path, endings);
  check_ending(path, endings);
  announce_one(files[0], {".hdr"});
  announce_one(files[1], {".cfl"});
}

void Outputs::announce_one(const std::string& path, const std::vector<std::string>& endings) {
  const std::string target = link_target(path);
  const Known output{path, file_of(target)};
  const auto is_same = [&](const Known& other) { return other.file == output.file; };
  const auto input = std::find_if(inputs_.begin(), inputs_.end(), is_same);
  if (input != inputs_.end()) {
    throw UsageError(fmt::format("[{}] this output would overwrite the input {}. Try another name",
                                 path, input->path));
  }
  if (is_special(target)) return;
  check_target(path, target, endings);
  const auto other = std::find_if(announced_.begin(), announced_.end(), is_same);
  if (other != announced_.end()) {
    throw UsageError(fmt::format("[{}] two outputs are the same file: got {} as well. Try another",
                                 path, other->path));
  }
  announced_.push_back(output);
}

// A name of its own: that of the target may be as long as names can be.
std::string Outputs::temporary_beside(const std::string& target, const std::string& ending) {
  return (directory_of(target) /
          fmt::format(".palimpsest-{}-{}{}", ::getpid(), n_temporaries_++, ending))
      .string();
}

void Outputs::write(const std::string& path,
                    const std::function<void(const std::string&)>& writer) {
  if (path.empty()) return;
  written_.push_back(path);
  const std::vector<std::string> files = files_of_output(path);
  const std::string target = link_target(path);
  if (files.size() == 1 && is_special(target)) return writer(path);
  // Compressed files are told by their ending.
  const std::string ending = ends_in(path, ".gz") ? ".nii.gz" : fs::path(path).extension().string();
  const std::string temporary = temporary_beside(target, ending);
  if (files.size() == 1) {
    pending_.push_back({.path = path, .temporary = temporary, .target = target});
  } else {
    for (const std::string& file : files) {
      pending_.push_back(
          {.path = file,
           .temporary = fs::path(temporary).replace_extension(fs::path(file).extension()).string(),
           .target = link_target(file)});
    }
  }
  try {
    writer(temporary);
  } catch (const IoError& error) {
    const auto stem = [&](const std::string& name) {
      return files.size() == 1 ? name : name.substr(0, name.rfind('.'));
    };
    std::string text = error.what();
    const std::size_t at = text.find(stem(temporary));
    if (at != std::string::npos) text.replace(at, stem(temporary).size(), stem(path));
    throw IoError(text);
  }
}

void Outputs::replace(Pending& file) {
  std::error_code error;
  const fs::file_status old = fs::status(file.target, error);
  file.is_new = !fs::exists(old);
  if (!file.is_new) {
    fs::permissions(file.temporary, old.permissions(), error);
    const std::string backup = temporary_beside(file.target, ".tmp");
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
