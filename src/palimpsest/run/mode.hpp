// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "palimpsest/base/api.hpp"
#include "palimpsest/rewrite/pipeline.hpp"

namespace PALIMPSEST_API palimpsest {

/// Observer of the calls of a function; made by MonitorMode(), NanGuardMode() and DebugMode().
class Inspection;

/// Selection of the rewrites of function(), and the observer of its calls, if any. A value: each
/// member returns a changed copy.
///
///     FastRun().excluding({"fusion"}).with_rewrite(mine, 2.5)
class Mode {
 public:
  enum Base {
    fast_run,      // everything
    fast_compile,  // merging, dropping useless nodes, library calls; no fusion, nothing in place
    no_rewrite     // plan only
  };
  using Tags = std::set<std::string>;

  Mode(Base base = fast_run);
  /// The same with an object that observes calls.
  /// Errors  ValueError: the mode has one already
  Mode(const Mode& base, std::shared_ptr<const Inspection> inspection);

  /// The mode with the rewrites that have one of these tags; of including and excluding the last
  /// call counts.
  Mode including(Tags tags) const;
  /// The mode without rewrites that have one of these tags.
  Mode excluding(Tags tags) const;
  /// Only those that have all of these tags.
  Mode requiring(Tags tags) const;
  /// With a rewrite of one's own, after those of the library that have its position. It takes the
  /// place of all that have its name.
  /// Errors  ValueError: it overwrites something and its position is below 49.5; it has no name,
  ///         nothing to run, or a negative position
  Mode with_rewrite(NodeRewrite rewrite, double position, Tags tags = {}) const;
  Mode with_rewrite(Rewrite rewrite) const;
  /// With a feature on every graph from this position on, made anew for each. It sees the graph of
  /// the function, not the bodies of loops.
  Mode with_feature(FeatureMaker make, double position) const;
  /// Without passes that reorder arithmetic: results are bit for bit those of NoRewrite().
  Mode exact() const { return excluding({"reorders"}); }

  /// The mode without its inspections.
  Mode base() const;
  Base preset() const { return preset_; }
  /// The mode that it was made from: `FastRun`, `FastCompile` or `NoRewrite`.
  std::string_view name() const;
  const RewriteSelection& selection() const { return selection_; }
  /// The passes that run, in their order.
  std::vector<Rewrite> rewrites() const { return selection_.list(); }
  /// Null: nothing looks.
  const std::shared_ptr<const Inspection>& inspection() const { return inspection_; }

  /// Same preset and tags, rewrites of the same names at the same positions, as many features, and
  /// the same inspection.
  friend bool operator==(const Mode& a, const Mode& b);

 private:
  Base preset_;
  RewriteSelection selection_;
  std::shared_ptr<const Inspection> inspection_;
};

inline Mode FastRun() { return Mode::fast_run; }
inline Mode FastCompile() { return Mode::fast_compile; }
inline Mode NoRewrite() { return Mode::no_rewrite; }

std::string_view name_of(Mode::Base base);

}  // namespace palimpsest
