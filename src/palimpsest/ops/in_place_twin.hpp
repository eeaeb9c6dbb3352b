// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <memory>

#include "palimpsest/ops/common.hpp"
#include "palimpsest/ops/parameters.hpp"

namespace palimpsest::ops {

/// The base of an op that can lay its output into the memory of input 0.
///
/// Aliases  in place: the output lies in the memory of input 0, which is overwritten
template <class T, class Base = Declared<T>>
class InPlaceTwin : public Base {
 public:
  explicit InPlaceTwin(bool in_place) : in_place_(in_place) {}
  bool in_place() const { return in_place_; }
  AliasMap destroy_map(const Apply&) const final {
    return in_place_ ? AliasMap{{0, {0}}} : AliasMap();
  }
  OpPtr inplace_on_inputs(const Apply& apply, const std::set<int>& allowed) const final {
    if (!allowed.contains(0) || may_overlap_itself(apply.input(0)) || !can_overwrite(apply)) {
      return nullptr;
    }
    return twin(&apply);
  }
  OpPtr pure() const final { return in_place_ ? twin(nullptr) : this->shared_from_this(); }

 protected:
  /// A further condition for overwriting input 0.
  virtual bool can_overwrite(const Apply&) const { return true; }
  /// Sets the members that working in place on that application needs; null: not in place.
  virtual void adapt(const Apply*) {}

  bool in_place_;

 private:
  OpPtr twin(const Apply* apply) const {
    const auto made = std::make_shared<T>(static_cast<const T&>(*this));
    InPlaceTwin& twin = *made;
    twin.in_place_ = apply != nullptr;
    twin.adapt(apply);
    return made;
  }
};

}  // namespace palimpsest::ops
