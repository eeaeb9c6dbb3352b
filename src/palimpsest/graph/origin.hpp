// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <memory>
#include <string>

#include "palimpsest/graph/variable.hpp"

namespace palimpsest {

/// Limit on the steps of a group of applications that run at the same time.
struct LaneLimit {
  int lanes = 1;                           ///< at least 1
  std::shared_ptr<const LaneLimit> outer;  ///< of the group that this one is part of
};

/// The last steps of a way, behind those of `outer`. Ways of one tree of operators share their
/// beginnings, so that they take memory in proportion to the tree, however deep it is.
struct Way {
  std::shared_ptr<const Way> outer;
  std::string steps;
  ~Way();
  std::string str() const;
};

/// Origin of an application, attached to its first output. Metadata: ignored when nodes are
/// compared, merged or fused.
struct Origin final : Attachment {
  /// Way to the operator that built it, such as `Chain[2]/` and `Fft`; null if none did.
  std::shared_ptr<const Way> place;
  /// Null: none.
  std::shared_ptr<const LaneLimit> limit;
};

/// Null for an application without one.
const Origin* origin_of(const Apply& node);
/// Gives one application the origin of another one, unless it has one that has a limit.
void pass_origin(const Apply& from, const Apply& to);
/// Replaces its origin by that of another one.
void copy_origin(const Apply& from, const Apply& to);

/// Applications that this thread makes while it lives come from here. Scopes nest.
class OriginScope {
 public:
  /// Another place, under the same limit.
  explicit OriginScope(std::string place, std::shared_ptr<const Way> outer = nullptr);
  /// The same place, in a group of its own that takes at most this many lanes.
  explicit OriginScope(int lanes);
  ~OriginScope();
  OriginScope(const OriginScope&) = delete;
  OriginScope& operator=(const OriginScope&) = delete;

  /// Null outside of all scopes.
  static std::shared_ptr<Origin> present();

 private:
  const OriginScope* const outer_;
  std::shared_ptr<Origin> origin_;
};

}  // namespace palimpsest
