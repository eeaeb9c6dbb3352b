// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace palimpsest::cli {

/// True if the path ends with this ending of a format, such as `.nii.gz`. Capitals count as small
/// letters for pictures; endings of a CFL must be small letters.
bool ends_in(const std::string& path, const std::string& ending);

/// The files that one run makes: all of them appear, or none.
///
/// Each is written beside its target under another name; commit() gives all of them theirs. Devices
/// and pipes are written directly. No output may be one of the inputs, under whatever name.
class Outputs {
 public:
  Outputs();
  Outputs(const Outputs&) = delete;
  Outputs& operator=(const Outputs&) = delete;
  /// Removes the files that were not committed.
  ~Outputs();

  /// Names a file that the run reads, both files for a BART CFL. An empty path is ignored.
  ///
  /// Errors   UsageError: an announced output, or standard output, is this file
  void reads(const std::string& path);
  /// Announces a file before any work is done. An empty path is ignored. A CFL is two files.
  ///
  /// Errors   UsageError: the name ends in none of `endings` or is too long, the directory is
  ///          missing, the path is a directory, two outputs are one file, the output is an input;
  ///          IoError: the directory or the file is read-only, links lead in a circle
  void announce(const std::string& path, const std::vector<std::string>& endings);
  void announce(const std::string& path, const std::string& ending) {
    announce(path, std::vector{ending});
  }
  /// Calls `writer` with the path to write to, unless `path` is empty. It ends as `path` does.
  void write(const std::string& path, const std::function<void(const std::string&)>& writer);
  /// The paths of the written files, as the caller gave them.
  const std::vector<std::string>& written() const { return written_; }
  /// Flushes standard output, then gives all files their names.
  ///
  /// Errors   IoError; the targets are then unchanged
  void commit();

 private:
  /// A file by device and inode; one that is not there yet by those of its directory and its name.
  struct File {
    dev_t device = 0;
    ino_t inode = 0;
    std::string name;
    bool operator==(const File&) const = default;
  };
  struct Known {
    std::string path;
    File file;
  };
  struct Pending {
    std::string path, temporary, target;
    /// A second name of the old file at the target.
    std::string backup = {};
    bool is_new = false;
  };

  static File file_of(const std::string& target);
  void announce_one(const std::string& path, const std::vector<std::string>& endings);
  std::string temporary_beside(const std::string& target, const std::string& ending);
  void replace(Pending& file);
  static void put_back(const Pending& file);

  std::vector<Known> inputs_, announced_;
  std::vector<Pending> pending_;
  std::vector<std::string> written_;
  int n_temporaries_ = 0;
};

}  // namespace palimpsest::cli
