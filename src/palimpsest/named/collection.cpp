// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/named/collection.hpp"

#include <algorithm>

#include "palimpsest/base/error.hpp"
#include "palimpsest/named/alignment.hpp"
#include "palimpsest/named/token.hpp"

// The pool is not stored: within a collection a name *is* its dimension, so the shapes hold names
// and a renaming replaces names in all of them. Invariants:
//   1. A single dimension is not an ellipsis; the keys of a map are names or ordinal anys.
//   2. Every modifying call builds the new shapes aside and installs them last.

namespace palimpsest {
namespace {

bool in_pool(const NamedDimension& d) { return d.is_concrete() || d.is_ordinal(); }

NamedDimension renamed(const NamedDimension& d, const Renaming& renaming) {
  const auto found = renaming.find(d);
  return found == renaming.end() ? d : found->second;
}

ShapeValue renamed(const ShapeValue& value, const Renaming& renaming, const std::string& who) {
  if (value.dims()) return value.dims()->renamed(renaming);
  if (value.dim()) return renamed(*value.dim(), renaming);
  DimMap result;
  for (const auto& [d, number] : *value.map()) {
    const NamedDimension target = renamed(d, renaming);
    if (result.emplace(target, number).second) continue;
    throw ShapeError(who + "renaming " + d.str() + " to " + target.str() +
                     " collides: got the key " + target.str() + " twice in the map " + value.str() +
                     ", expected different keys");
  }
  return result;
}

void check_value(const std::string& who, const ShapeValue& value) {
  if (value.dim() && value.dim()->is_ellipsis()) {
    throw ValueError(who +
                     "a single dimension must not be an ellipsis: got ..., expected one dimension");
  }
  if (!value.map()) return;
  for (const auto& [d, number] : *value.map()) {
    if (in_pool(d)) continue;
    throw ValueError(who + "a key of a map must be one dimension: got " + d.str() +
                     ", expected a name or an ordinal any");
  }
}

// The renaming that sets a shape. Identities stay in: a dimension that keeps its name has a target.
Renaming renaming_of(const std::string& who, const Dims& old_dims, const Dims& new_dims) {
  const auto alignment = named::align(old_dims, new_dims);
  if (!alignment) {
    throw ShapeError(who + "the new shape is not compatible with the old one: got " +
                     new_dims.str() + ", expected the structure of " + old_dims.str());
  }
  Renaming renaming;
  for (const auto& [from, to] : named::pairs(*alignment, old_dims, new_dims)) {
    if (!in_pool(from) || !to.is_concrete()) continue;
    const auto [known, inserted] = renaming.emplace(from, to);
    if (inserted || known->second == to) continue;
    throw ShapeError(who + "inconsistent mapping of " + from.str() + ": got " +
                     known->second.str() + " and " + to.str() + ", expected one name, setting " +
                     old_dims.str() + " to " + new_dims.str());
  }
  return renaming;
}

}  // namespace

bool ShapeValue::uses(const NamedDimension& d) const {
  if (dims()) return dims()->contains(d);
  return dim() ? *dim() == d : map()->contains(d);
}

Dims ShapeValue::tokens() const {
  if (dims()) return *dims();
  if (dim()) return *dim();
  Dims result;
  for (const auto& [d, number] : *map()) result.push_back(d);
  return result;
}

std::string ShapeValue::str() const {
  if (dims()) return dims()->str();
  if (dim()) return dim()->str();
  std::string text = "{";
  for (const auto& [d, number] : *map()) {
    if (text.size() > 1) text += ", ";
    text += d.str() + ": " + std::to_string(number);
  }
  return text + "}";
}

const ShapeValue* NamedDimCollection::find(std::string_view shape) const {
  const auto found = std::find_if(shapes_.begin(), shapes_.end(),
                                  [&](const auto& entry) { return entry.first == shape; });
  return found == shapes_.end() ? nullptr : &found->second;
}

ShapeValue* NamedDimCollection::find(std::string_view shape) {
  return const_cast<ShapeValue*>(std::as_const(*this).find(shape));
}

bool NamedDimCollection::contains(std::string_view shape) const { return find(shape) != nullptr; }

const ShapeValue& NamedDimCollection::value(std::string_view shape) const {
  if (const ShapeValue* found = find(shape)) return *found;
  throw ShapeError("[shape] unknown shape: got " + named::quoted(shape) + ", expected one of {" +
                   str() + "}");
}

const Dims& NamedDimCollection::dims(std::string_view shape) const {
  if (const Dims* found = value(shape).dims()) return *found;
  throw ShapeError("[dims] shape '" + std::string(shape) + "' is of another kind: got " +
                   value(shape).str() + ", expected a sequence of dimensions");
}

const NamedDimension& NamedDimCollection::dim(std::string_view shape) const {
  if (const NamedDimension* found = value(shape).dim()) return *found;
  throw ShapeError("[dim] shape '" + std::string(shape) + "' is of another kind: got " +
                   value(shape).str() + ", expected a single dimension");
}

const DimMap& NamedDimCollection::map(std::string_view shape) const {
  if (const DimMap* found = value(shape).map()) return *found;
  throw ShapeError("[map] shape '" + std::string(shape) + "' is of another kind: got " +
                   value(shape).str() + ", expected a map of dimensions");
}

std::vector<std::string> NamedDimCollection::names() const {
  std::vector<std::string> result;
  for (const auto& [name, value] : shapes_) result.push_back(name);
  return result;
}

Dims NamedDimCollection::pool() const {
  Dims result;
  for (const auto& [name, value] : shapes_) {
    for (const NamedDimension& d : value.tokens()) {
      if (in_pool(d) && !result.contains(d)) result.push_back(d);
    }
  }
  return result;
}

std::string NamedDimCollection::str() const {
  std::string text;
  for (const auto& [name, value] : shapes_) {
    if (!text.empty()) text += ", ";
    text += name + ": " + value.str();
  }
  return text;
}

std::string NamedDimCollection::users(const NamedDimension& d) const {
  std::string text;
  for (const auto& [name, value] : shapes_) {
    if (!value.uses(d)) continue;
    if (!text.empty()) text += ", ";
    text += name + " " + value.str();
  }
  return text;
}

void NamedDimCollection::add(std::string_view shape, ShapeValue value) {
  const std::string who = "[add " + named::quoted(shape) + "] ";
  if (const ShapeValue* known = find(shape)) {
    throw ValueError(who + "the shape is already in the collection: got " + value.str() +
                     ", expected a new name; it is " + known->str() + ". Try set");
  }
  check_value(who, value);
  shapes_.emplace_back(shape, std::move(value));
}

void NamedDimCollection::set(std::string_view shape, ShapeValue value) {
  const ShapeValue* known = find(shape);
  if (!known) return add(shape, std::move(value));
  const std::string who = "[set " + named::quoted(shape) + "] ";
  if (known->dims() && value.dim()) value = Dims(*value.dim());
  if (known->dim() && value.dims()) {
    const Dims& sequence = *value.dims();
    if (sequence.size() != 1) {
      throw ValueError(who + "a single dimension is set to a non-singleton sequence: got " +
                       sequence.str() + ", expected one dimension in place of " + known->str());
    }
    value = NamedDimension(sequence[0]);
  }
  if ((known->map() != nullptr) != (value.map() != nullptr)) {
    throw ValueError(who + "the kinds differ: got " + value.str() + ", expected " +
                     (known->map() ? "a map" : "dimensions") + " in place of " + known->str());
  }
  check_value(who, value);
  NamedDimCollection changed = *this;
  if (!value.map()) {
    changed.apply(renaming_of(who, known->tokens(), value.tokens()), OnCollision::refuse, who);
  }
  *changed.find(shape) = std::move(value);
  shapes_.swap(changed.shapes_);
}

void NamedDimCollection::rename(const Renaming& map, OnCollision on_collision) {
  const std::string who = "[rename] ";
  for (const auto& [from, to] : map) {
    if (!in_pool(from)) {
      throw ValueError(who + "only a name or an ordinal any has a new name: got " + from.str() +
                       " to " + to.str());
    }
    if (!to.is_concrete()) {
      throw ValueError(who + "a new name must not be a wildcard: got " + from.str() + " to " +
                       to.str() + ", expected a name. Try set");
    }
  }
  apply(map, on_collision, who);
}

void NamedDimCollection::apply(const Renaming& renaming, OnCollision on_collision,
                               const std::string& who) {
  const Dims used = pool();
  std::map<NamedDimension, NamedDimension> owner;  // new name -> the name that gets it
  for (const auto& [from, to] : renaming) {
    if (on_collision == OnCollision::merge || !from.is_concrete() || !used.contains(from)) continue;
    const auto [first, inserted] = owner.emplace(to, from);
    const bool stays = used.contains(to) && !renaming.contains(to);
    if (inserted && !stays) continue;
    const NamedDimension other = inserted ? to : first->second;
    throw ShapeError(who + "renaming " + from.str() + " to " + to.str() + " collides with " +
                     (inserted ? other.str() : "renaming " + other.str() + " to " + to.str()) +
                     ": got " + from.str() + " in " + users(from) + " and " + other.str() + " in " +
                     users(other) + ", expected different names. Try another name, or " +
                     "OnCollision::merge to make one dimension of the two");
  }
  std::vector<std::pair<std::string, ShapeValue>> changed;
  for (const auto& [name, value] : shapes_) {
    changed.emplace_back(name, renamed(value, renaming, who));
  }
  shapes_.swap(changed);
}

}  // namespace palimpsest
