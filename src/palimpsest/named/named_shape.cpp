// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/named/named_shape.hpp"

#include <algorithm>
#include <optional>
#include <ostream>

#include "palimpsest/base/error.hpp"
#include "palimpsest/named/alignment.hpp"
#include "palimpsest/named/matching.hpp"

namespace palimpsest {
namespace {

bool is_side(std::string_view shape) { return shape == "ishape" || shape == "oshape"; }

// The dimensions of `to` that the `...` of `from` stands for.
Dims run_of(const std::string& who, const Dims& from, const Dims& to) {
  const auto alignment = named::align(from, to);
  if (!alignment) throw InternalError(who + "shapes that were set have no alignment");
  std::optional<Dims> run;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (!from[i].is_ellipsis()) continue;
    Dims received = named::received_at(*alignment, to, i);
    if (run && *run != received) {
      throw ShapeError(who + "inconsistent mapping of ...: got " + run->str() + " and " +
                       received.str() + ", expected one run of dimensions, setting " + from.str() +
                       " to " + to.str());
    }
    run = std::move(received);
  }
  return *run;
}

}  // namespace

NamedShape::NamedShape(Dims ishape, Dims oshape, const Others& others) {
  shapes_.add("ishape", std::move(ishape));
  shapes_.add("oshape", std::move(oshape));
  for (const auto& [name, value] : others) shapes_.add(name, value);
}

NamedShape::Others NamedShape::others() const {
  Others result;
  for (const std::string& name : names()) {
    if (!is_side(name)) result.emplace_back(name, shapes_.value(name));
  }
  return result;
}

void NamedShape::set(std::string_view shape, ShapeValue value) {
  if (!is_side(shape)) return shapes_.set(shape, std::move(value));
  if (value.map()) {
    throw ValueError("[set " + std::string(shape) + "] the kinds differ: got " + value.str() +
                     ", expected dimensions in place of " + dims(shape).str());
  }
  if (shape == "ishape") return set_ishape(value.tokens());
  set_oshape(value.tokens());
}

void NamedShape::set_side(std::string_view side, std::string_view other, const Dims& dims) {
  const Dims old = shapes_.dims(side);
  NamedDimCollection changed = shapes_;
  changed.set(side, dims);
  if (old.has_ellipsis() && shapes_.dims(other).has_ellipsis()) {
    const std::string who = "[set_" + std::string(side) + "] ";
    const Dims run = run_of(who, old, dims);
    Dims linked;
    for (const NamedDimension& token : changed.dims(other)) {
      if (!token.is_ellipsis()) {
        linked.push_back(token);
        continue;
      }
      for (const NamedDimension& d : run) {
        if (d.is_concrete() && (linked.contains(d) || changed.dims(other).contains(d))) {
          throw ShapeError(who + "... became " + run.str() + ", which collides with " + d.str() +
                           " in " + std::string(other) + ": got " + changed.dims(other).str() +
                           ", expected a shape without " + d.str() + ". Try another name");
        }
      }
      linked += run;
    }
    *changed.find(other) = std::move(linked);
  }
  shapes_ = std::move(changed);
}

NamedShape NamedShape::H() const { return NamedShape(oshape(), ishape(), others()); }

NamedShape NamedShape::N(Output output) const {
  if (output == Output::same) return NamedShape(ishape(), ishape(), others());
  Dims chosen;
  // Not Dims: tokens are only looked up here, so no ellipsis may merge away.
  std::vector<NamedDimension> avoid(ishape().begin(), ishape().end());
  avoid.insert(avoid.end(), oshape().begin(), oshape().end());
  for (const NamedDimension& d : ishape()) {
    const bool kept = d.is_wildcard() || oshape().contains(d);
    chosen.push_back(kept ? d : (d + 1).fresh(avoid));
    avoid.push_back(chosen.back());
  }
  return NamedShape(ishape(), std::move(chosen), others());
}

PALIMPSEST_API NamedShape operator+(const NamedShape& a, const NamedShape& b) {
  NamedShape sum(a.ishape() + b.ishape(), a.oshape() + b.oshape(), a.others());
  for (const auto& [name, value] : b.others()) {
    if (!sum.contains(name)) {
      sum.add(name, value);
    } else if (const ShapeValue& known = sum.shapes_.value(name); !(known == value)) {
      throw ShapeError("[NamedShape +] '" + name + "' is already in the sum: got " + value.str() +
                       ", expected " + known.str() + ". Try another name for one of them");
    }
  }
  return sum;
}

PALIMPSEST_API bool operator==(const NamedShape& a, const NamedShape& b) {
  return isequal(a.ishape(), b.ishape()) && isequal(a.oshape(), b.oshape());
}

PALIMPSEST_API bool identical(const NamedShape& a, const NamedShape& b) {
  const std::vector<std::string> names = a.names();
  if (names.size() != b.names().size()) return false;
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return b.contains(name) && a.shapes().value(name) == b.shapes().value(name);
  });
}

std::ostream& operator<<(std::ostream& stream, const NamedShape& shape) {
  return stream << shape.str();
}

}  // namespace palimpsest
