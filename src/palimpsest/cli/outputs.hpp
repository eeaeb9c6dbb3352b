// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace palimpsest::cli {

/// The files that one run makes: all of them appear, or none.
///
/// Each is written beside its target under another name; commit() gives all of them theirs.
/// Devices and pipes are written directly.
class Outputs {
 public:
  Outputs() = default;
  Outputs(const Outputs&) = delete;
  Outputs& operator=(const Outputs&) = delete;
  /// Removes what was not committed.
  ~Outputs();

  /// Announces a file before any work is done; an empty path is no file.
  ///
  /// Errors   UsageError: the directory is missing, or the path is one; two outputs are the same
  /// file,
  ///          the ending is that of another format; IoError: the directory is read-only
  void announce(const std::string& path, const std::string& ending);
  /// Calls `writer` with the path to write to, unless `path` is empty.
  void write(const std::string& path, const std::function<void(const std::string&)>& writer);
  /// Errors   IoError; files not yet renamed are then removed
  void commit();
  /// What commit() has made.
  const std::vector<std::string>& committed() const { return committed_; }

 private:
  struct Pending {
    std::string path, temporary, target;
  };
  std::vector<std::string> announced_;
  std::vector<Pending> pending_;
  std::vector<std::string> committed_;
};

}  // namespace palimpsest::cli
