// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/named/sizes.hpp"

#include "palimpsest/base/error.hpp"

namespace palimpsest {
namespace {

std::string bracketed(std::string_view who) { return "[" + std::string(who) + "] "; }

// A single dimension prints as a number, an ellipsis as a tuple.
std::string printed(const NamedDimension& d, const Extents& extents) {
  return d.is_ellipsis() ? to_string(extents) : std::to_string(extents[0]);
}

}  // namespace

DimSizes::DimSizes(std::initializer_list<value_type> sizes) {
  for (const auto& [d, size] : sizes) set(d, size);
}

DimSizes::DimSizes(const std::map<NamedDimension, index_t>& sizes) {
  for (const auto& [d, size] : sizes) set(d, size);
}

std::optional<index_t> DimSizes::size(const NamedDimension& d) const {
  const auto found = entries_.find(d);
  if (d.is_ellipsis() || found == entries_.end()) return std::nullopt;
  return found->second[0];
}

const Extents& DimSizes::operator[](const NamedDimension& d) const {
  const auto found = entries_.find(d);
  if (found != entries_.end()) return found->second;
  throw ShapeError("[sizes] size of dim '" + d.str() + "' is unknown: got " + str() +
                   ", expected a size for it");
}

void DimSizes::set(const NamedDimension& d, index_t size) {
  if (!d.is_concrete() && !d.is_ordinal()) {
    throw ValueError("[sizes] a size belongs to one dimension: got " + d.str() +
                     ", expected a name or an ordinal any");
  }
  entries_.insert_or_assign(d, Extents{size});
}

void DimSizes::set_ellipsis(const Extents& extents) {
  entries_.insert_or_assign(NamedDimension::ellipsis(), extents);
}

std::string DimSizes::str() const {
  std::string text = "{";
  for (const auto& [d, extents] : entries_) {
    if (text.size() > 1) text += ", ";
    text += d.str() + ": " + printed(d, extents);
  }
  return text + "}";
}

DimSizes bind(const Dims& dims, const Extents& extents, const DimSizes& known,
              std::string_view who) {
  const std::size_t n_ellipses = dims.count(NamedDimension::ellipsis());
  if (n_ellipses > 1) {
    throw ShapeError(bracketed(who) +
                     "Cannot infer sizes from a shape with several ellipses: got " + dims.str() +
                     ", expected at most one");
  }
  const std::size_t n_single = dims.size() - n_ellipses;
  if (extents.size() < n_single || (n_ellipses == 0 && extents.size() > n_single)) {
    throw ShapeError(bracketed(who) + "shape " + dims.str() + " expects " +
                     (n_ellipses ? "at least " : "") + std::to_string(n_single) +
                     (n_single == 1 ? " axis" : " axes") + ": got " +
                     std::to_string(extents.size()) + ", extents " + to_string(extents));
  }
  DimSizes result = known;
  std::size_t axis = 0;
  for (const NamedDimension& d : dims) {
    const std::size_t taken = d.is_ellipsis() ? extents.size() - n_single : 1;
    const Extents found(extents.begin() + axis, extents.begin() + axis + taken);
    axis += taken;
    if (d.is_any() && !d.is_ordinal()) continue;
    if (result.contains(d) && result[d] != found) {
      throw ShapeError(bracketed(who) + "size of dim '" + d.str() + "': expected " +
                       printed(d, result[d]) + ", got " + printed(d, found) + " (shape " +
                       dims.str() + ", extents " + to_string(extents) + ")");
    }
    if (d.is_ellipsis()) {
      result.set_ellipsis(found);
    } else {
      result.set(d, found[0]);
    }
  }
  return result;
}

Extents extents_of(const Dims& dims, const DimSizes& sizes, std::string_view who) {
  Extents result;
  for (const NamedDimension& d : dims) {
    if (d.is_ellipsis() && !sizes.contains(d)) continue;
    if (!sizes.contains(d)) {
      throw ShapeError(bracketed(who) + "size of dim '" + d.str() + "' is unknown: got sizes " +
                       sizes.str() + ", expected one for every dimension of " + dims.str());
    }
    for (index_t extent : sizes[d]) result.push_back(extent);
  }
  return result;
}

index_t axis_of(const Dims& dims, const NamedDimension& d, std::string_view who) {
  const auto position = dims.index_of(d);
  if (!position) {
    throw ShapeError(bracketed(who) + "no dimension '" + d.str() + "': got shape " + dims.str() +
                     ", expected one that has it");
  }
  bool before = false, after = false;  // an ellipsis
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i].is_ellipsis()) (i < *position ? before : after) = true;
  }
  if (d.is_ellipsis() || (before && after)) {
    throw ShapeError(bracketed(who) + "Cannot infer the axis of dim '" + d.str() + "': got shape " +
                     dims.str() + ", expected an ellipsis on one side of it only");
  }
  const auto axis = static_cast<index_t>(*position);
  return before ? axis - static_cast<index_t>(dims.size()) : axis;
}

}  // namespace palimpsest
