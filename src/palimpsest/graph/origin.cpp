// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/graph/origin.hpp"

#include <algorithm>
#include <utility>

namespace palimpsest {
namespace {

std::shared_ptr<Origin>& mine() {
  thread_local std::shared_ptr<Origin> origin;
  return origin;
}

std::shared_ptr<Origin> made(std::string place, std::shared_ptr<const LaneLimit> limit) {
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

OriginScope::OriginScope(std::string place) : outer_(mine()) {
  mine() = made(std::move(place), outer_ ? outer_->limit : nullptr);
}

OriginScope::OriginScope(int lanes) : outer_(mine()) {
  auto limit = std::make_shared<const LaneLimit>(
      LaneLimit{std::max(lanes, 1), outer_ ? outer_->limit : nullptr});
  mine() = made(outer_ ? outer_->place : "", std::move(limit));
}

OriginScope::~OriginScope() { mine() = std::move(outer_); }

const std::shared_ptr<Origin>& OriginScope::present() { return mine(); }

}  // namespace palimpsest
