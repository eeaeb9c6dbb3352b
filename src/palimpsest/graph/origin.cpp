// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/graph/origin.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "palimpsest/base/deep_release.hpp"

namespace palimpsest {
namespace {

constinit thread_local const OriginScope* innermost = nullptr;

std::shared_ptr<Origin> origin_at(std::shared_ptr<const Way> place,
                                  std::shared_ptr<const LaneLimit> limit) {
  auto origin = std::make_shared<Origin>();
  origin->place = std::move(place);
  origin->limit = std::move(limit);
  return origin;
}

}  // namespace

const Origin* origin_of(const Apply& node) {
  if (node.output_count() == 0) return nullptr;
  return dynamic_cast<const Origin*>(node.node()->outputs[0].attachment.get());
}

void pass_origin(const Apply& from, const Apply& to) {
  const Origin *const old = origin_of(from), *const present = origin_of(to);
  if (!old || (present && (present->limit || !old->limit))) return;
  copy_origin(from, to);
}

void copy_origin(const Apply& from, const Apply& to) {
  if (from.output_count() == 0 || to.output_count() == 0) return;
  to.node()->outputs[0].attachment = from.node()->outputs[0].attachment;
}

Way::~Way() { release_deep(std::move(outer)); }

std::string Way::str() const {
  std::vector<const Way*> parts;
  for (const Way* part = this; part; part = part->outer.get()) parts.push_back(part);
  std::string text;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) text += (*part)->steps;
  return text;
}

OriginScope::OriginScope(std::string place, std::shared_ptr<const Way> outer) : outer_(innermost) {
  origin_ = origin_at(std::make_shared<const Way>(Way{std::move(outer), std::move(place)}),
                      outer_ ? outer_->origin_->limit : nullptr);
  innermost = this;
}

OriginScope::OriginScope(int lanes) : outer_(innermost) {
  auto limit = std::make_shared<const LaneLimit>(
      LaneLimit{std::max(lanes, 1), outer_ ? outer_->origin_->limit : nullptr});
  origin_ = origin_at(outer_ ? outer_->origin_->place : nullptr, std::move(limit));
  innermost = this;
}

OriginScope::~OriginScope() { innermost = outer_; }

std::shared_ptr<Origin> OriginScope::present() { return innermost ? innermost->origin_ : nullptr; }

}  // namespace palimpsest
