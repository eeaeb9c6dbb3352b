// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/run/mode.hpp"

#include <algorithm>

#include "palimpsest/run/inspection.hpp"

namespace palimpsest {
namespace {

std::set<std::string> tags_of(Mode::Base base) {
  switch (base) {
    case Mode::fast_run:
      return {"fast_run"};
    case Mode::fast_compile:
      return {"fast_compile"};
    case Mode::no_rewrite:
      return {};
  }
  throw InternalError("[Mode] no base");
}

}  // namespace

std::string_view name_of(Mode::Base base) {
  static constexpr std::string_view kNames[] = {"FastRun", "FastCompile", "NoRewrite"};
  return kNames[static_cast<std::size_t>(base)];
}

Mode::Mode(Base base) : preset_(base) { selection_.including = tags_of(base); }

Mode::Mode(const Mode& base, std::shared_ptr<const Inspection> inspection) : Mode(base) {
  if (inspection && inspection_) {
    throw ValueError("[" + std::string(inspection->name()) + "] base: got a mode in which " +
                     std::string(inspection_->name()) +
                     " looks at the calls, expected one in which nothing does. Try its base()");
  }
  inspection_ = std::move(inspection);
}

Mode Mode::including(Tags tags) const {
  Mode result = *this;
  for (const std::string& tag : tags) {
    result.selection_.excluding.erase(tag);
    result.selection_.including.insert(tag);
  }
  return result;
}

Mode Mode::excluding(Tags tags) const {
  Mode result = *this;
  for (const std::string& tag : tags) {
    result.selection_.including.erase(tag);
    result.selection_.excluding.insert(tag);
  }
  return result;
}

Mode Mode::requiring(Tags tags) const {
  Mode result = *this;
  result.selection_.requiring.merge(tags);
  return result;
}

Mode Mode::with_rewrite(NodeRewrite rewrite, double position, Tags tags) const {
  Mode result = *this;
  result.selection_.add(std::move(rewrite), position, std::move(tags));
  return result;
}

Mode Mode::with_rewrite(Rewrite rewrite) const {
  Mode result = *this;
  result.selection_.add(std::move(rewrite));
  return result;
}

Mode Mode::with_feature(FeatureMaker make, double position) const {
  if (!make) throw ValueError("[with_feature] got nothing that makes a feature");
  Mode result = *this;
  result.selection_.features.emplace_back(position, std::move(make));
  return result;
}

Mode Mode::base() const {
  Mode result = *this;
  result.inspection_ = nullptr;
  return result;
}

std::string_view Mode::name() const { return name_of(preset_); }

PALIMPSEST_API bool operator==(const Mode& a, const Mode& b) {
  const RewriteSelection &s = a.selection_, &t = b.selection_;
  const auto is_same = [](const Rewrite& x, const Rewrite& y) {
    return x.name == y.name && x.position == y.position && x.tags == y.tags;
  };
  return a.preset_ == b.preset_ && a.inspection_ == b.inspection_ && s.including == t.including &&
         s.excluding == t.excluding && s.requiring == t.requiring &&
         s.features.size() == t.features.size() &&
         std::equal(s.added.begin(), s.added.end(), t.added.begin(), t.added.end(), is_same);
}

}  // namespace palimpsest
