// SPDX-License-Identifier: Apache-2.0
// The setters. Each builds the data of a changed shallow copy and replaces the node of its handle
// when nothing can fail any more.
#include <algorithm>

#include "palimpsest/linop/core/builtin_types.hpp"
#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/named/alignment.hpp"

namespace palimpsest {
namespace {

constexpr const char* kPool = "children";  // the names of children, while a container is renamed

// True if d is a name of A outside its record of absorbed dimensions.
bool shows(const NamedLinop& A, const ND& d) {
  const bool is_summed = A.shape().contains("summed") && A.shape().dims("summed").contains(d);
  return is_summed || A.ishape().contains(d) || A.oshape().contains(d) ||
         std::any_of(A.linops().begin(), A.linops().end(),
                     [&](const NamedLinop& child) { return shows(child, d); });
}

// The names of the children, without absorbed dimensions that give way to incoming names.
Dims names_of(const std::vector<NamedLinop>& children, const Dims& incoming) {
  Dims result;
  for (const NamedLinop& child : children) {
    for (const ND& d : child.dims()) {
      if (!d.is_concrete() || result.contains(d)) continue;
      if (!incoming.contains(d) || shows(child, d)) result.push_back(d);
    }
  }
  return result;
}

NamedShape without(const NamedShape& shape, std::string_view name) {
  NamedShape::Others others;
  for (auto& other : shape.others()) {
    if (other.first != name) others.push_back(std::move(other));
  }
  return NamedShape(shape.ishape(), shape.oshape(), others);
}

// Renames dimensions that only further shapes use if their names are incoming: they are not
// visible.
void make_room(NamedShape& shape, const Dims& incoming, const Dims& of_children = {}) {
  const Dims visible = unite(unite(shape.ishape(), shape.oshape()), of_children);
  std::vector<ND> taken(incoming.begin(), incoming.end());
  taken.insert(taken.end(), visible.begin(), visible.end());
  Dims hidden;
  for (const auto& [name, value] : shape.others()) {
    for (const ND& d : value.tokens()) {
      taken.push_back(d);
      if (d.is_concrete() && incoming.contains(d) && !visible.contains(d)) hidden.push_back(d);
    }
  }
  Renaming renaming;
  for (const ND& d : hidden) {
    if (renaming.contains(d)) continue;
    const ND other = (d + 1).fresh(taken);
    renaming.emplace(d, other);
    taken.push_back(other);
  }
  if (!renaming.empty()) shape.rename(renaming);
}

// Changes the shape of an operator, which then has the names `incoming`. For a container `change`
// gets a NamedShape with the names of all children, so that they follow.
template <class Change>
void reshape(LinopData& data, const Dims& incoming, Change&& change) {
  NamedShape shape = data.shape;
  if (!data.type->assemble) {
    make_room(shape, incoming);
    change(shape);
    data.shape = std::move(shape);
    return;
  }
  const Dims before = names_of(data.children, incoming);
  make_room(shape, incoming, before);
  shape.add(kPool, before);
  change(shape);
  const Dims& after = shape.dims(kPool);
  Renaming renaming;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] != after[i]) renaming.emplace(before[i], after[i]);
  }
  const NamedShape wanted = without(shape, kPool);
  if (!renaming.empty()) {
    for (NamedLinop& child : data.children) child = child.renamed(renaming);
  }
  const NamedShape assembled =
      data.type->assemble(data.children, {&wanted, wanted.others(), data.attrs});
  data.shape = NamedShape(assembled.ishape(), assembled.oshape(), wanted.others());
}

// Keeps the mark of a self-adjoint operator only if both its shapes are still equal.
void renew_self_adjoint(LinopData& data) {
  data.self_adjoint = data.self_adjoint && data.shape.ishape() == data.shape.oshape();
}

NamedShape one_shape(const NamedShape& shape, const Dims& dims) {
  return NamedShape(dims, dims, shape.others());
}

// Adds the renaming that makes one sequence another one to the known ones.
void add_renaming(const Dims& from, const Dims& to, const std::string& who, Renaming& renaming) {
  const auto alignment = named::align(from, to);
  if (!alignment) {
    throw ShapeError(who + "shapes are not compatible: got " + to.str() + ", expected one like " +
                     from.str());
  }
  for (const auto& [old, with] : named::pairs(*alignment, from, to)) {
    if (!(old.is_concrete() || old.is_ordinal()) || !with.is_concrete()) continue;
    const auto [known, is_new] = renaming.emplace(old, with);
    if (!is_new && known->second != with) {
      throw ShapeError(who + "inconsistent mapping of dim '" + old.str() + "': got " + with.str() +
                       " and " + known->second.str() + ", expected one name");
    }
  }
}

// Sets `shape` to `wanted`; all names change at once, so that two can be exchanged.
void set_both(NamedShape& shape, const NamedShape& wanted, const std::string& who) {
  Renaming renaming;
  add_renaming(shape.ishape(), wanted.ishape(), who, renaming);
  add_renaming(shape.oshape(), wanted.oshape(), who, renaming);
  shape.rename(renaming);
  if (shape.ishape() != wanted.ishape()) shape.set_ishape(wanted.ishape());
  if (shape.oshape() != wanted.oshape()) shape.set_oshape(wanted.oshape());
  if (shape.ishape() != wanted.ishape() || shape.oshape() != wanted.oshape()) {
    throw ShapeError(who + "inconsistent mapping: got " + wanted.str() +
                     ", which gives one dimension two names");
  }
  for (const auto& [name, value] : wanted.others()) shape.set(name, value);
}

template <class T>
void put(std::vector<std::pair<std::string, T>>& list, std::string_view name, T value) {
  for (auto& [key, old] : list) {
    if (key != name) continue;
    old = std::move(value);
    return;
  }
  list.emplace_back(name, std::move(value));
}

// The operator of changed arguments, checked as a new one is.
NamedLinop checked(LinopData data) {
  data.self_adjoint = false;
  return from_arguments(std::move(data));
}

}  // namespace

void NamedLinop::set_ishape(const Dims& dims) {
  LinopData changed = data();
  reshape(changed, dims, [&](NamedShape& shape) {
    shape.set_ishape(dims);
    if (type().one_shape) shape = one_shape(shape, dims);
  });
  renew_self_adjoint(changed);
  replace(std::move(changed));
}

void NamedLinop::set_oshape(const Dims& dims) {
  LinopData changed = data();
  reshape(changed, dims, [&](NamedShape& shape) {
    shape.set_oshape(dims);
    if (type().one_shape) shape = one_shape(shape, dims);
  });
  renew_self_adjoint(changed);
  replace(std::move(changed));
}

void NamedLinop::set_shape(const NamedShape& wanted) {
  LinopData changed = data();
  const std::string prefix = who(*this) + "set_shape: ";
  if (type().one_shape && wanted.ishape() != wanted.oshape()) {
    throw ShapeError(prefix + "got " + wanted.str() + ", expected two equal shapes");
  }
  reshape(changed, unite(wanted.ishape(), wanted.oshape()),
          [&](NamedShape& shape) { set_both(shape, wanted, prefix); });
  renew_self_adjoint(changed);
  replace(std::move(changed));
}

void NamedLinop::rename(const Renaming& names) {
  LinopData changed = data();
  Dims incoming;
  for (const auto& [from, to] : names) incoming.push_back(to);
  reshape(changed, incoming, [&](NamedShape& shape) { shape.rename(names); });
  renew_self_adjoint(changed);
  replace(std::move(changed));
}

void NamedLinop::set_name(std::string name) {
  LinopData changed = data();
  changed.name = std::move(name);
  replace(std::move(changed));
}

void NamedLinop::set_param(std::string_view name, Parameter value) {
  LinopData changed = data();
  put(changed.params, name, std::move(value));
  *this = checked(std::move(changed));
}

void NamedLinop::erase_param(std::string_view name) {
  param(name);
  LinopData changed = data();
  std::erase_if(changed.params, [&](const auto& p) { return p.first == name; });
  *this = checked(std::move(changed));
}

void NamedLinop::set_attr(std::string_view name, Attribute value) {
  LinopData changed = data();
  put(changed.attrs, name, std::move(value));
  *this = checked(std::move(changed));
}

void NamedLinop::set_linops(std::vector<NamedLinop> children) {
  if (!type().assemble) throw ValueError(who(*this) + "set_linops: it is not a container");
  LinopData changed = data();
  const NamedShape::Others others = with_sizes_in(shape(), {}).others();
  const NamedShape assembled = type().assemble(children, {.others = others, .attrs = attrs()});
  changed.shape = NamedShape(assembled.ishape(), assembled.oshape(), others);
  changed.children = std::move(children);
  *this = checked(std::move(changed));
}

NamedLinop NamedLinop::renamed(const Renaming& names) const {
  NamedLinop result = *this;
  result.rename(names);
  return result;
}

NamedLinop NamedLinop::named(std::string name) const {
  NamedLinop result = *this;
  result.set_name(std::move(name));
  return result;
}

NamedLinop NamedLinop::with_sizes(const DimMap& sizes) const {
  DimMap recorded = recorded_sizes();
  const Dims known = dims();
  for (const auto& [d, n] : sizes) {
    if (!known.contains(d)) {
      throw NameError(who(*this) + "sizes: no dim '" + d.str() + "': expected one of " +
                      known.str());
    }
    if (n < 0) {
      throw ValueError(who(*this) + "sizes: dim '" + d.str() + "': got " + std::to_string(n) +
                       ", expected none negative");
    }
    const auto present = size(d);
    if (present && *present != n) {
      throw ShapeError(who(*this) + "Conflicting sizes of dim '" + d.str() + "': got " +
                       std::to_string(n) + ", expected " + std::to_string(*present));
    }
    recorded[d] = n;
  }
  LinopData changed = data();
  changed.shape = with_sizes_in(changed.shape, recorded);
  const Dims own = absorbed_dims(*this);
  const bool is_chain = &type() == &linop_types::chain();
  for (std::size_t i = 0; i < changed.children.size(); ++i) {
    NamedLinop& child = changed.children[i];
    const Dims dims_of_child = child.dims();
    DimMap missing;
    for (const auto& [d, n] : sizes) {
      // Operators in between have unnamed dimensions of their own.
      const bool is_at_end = (i == 0 && ishape().contains(d)) ||
                             (i + 1 == changed.children.size() && oshape().contains(d));
      if (is_chain && !d.is_concrete() && !is_at_end) continue;
      if (dims_of_child.contains(d) && !own.contains(d) && !child.size(d)) missing.emplace(d, n);
    }
    if (!missing.empty()) child = child.with_sizes(missing);
  }
  return from_data(std::move(changed));
}

NamedLinop completed(const NamedLinop& A, const DimMap& sizes) {
  DimMap missing = sizes;
  std::erase_if(missing, [&](const auto& entry) { return A.size(entry.first).has_value(); });
  return missing.empty() ? A : A.with_sizes(missing);
}

NamedLinop sized_for(const NamedLinop& A, const TensorType& x) {
  const DimSizes bound = bind_of(A, A.ishape(), x.shape);
  DimMap sizes;
  for (const ND& d : A.ishape()) {
    if (d.is_concrete() || d.is_ordinal()) sizes.emplace(d, *bound.size(d));
  }
  return completed(A, sizes);
}

}  // namespace palimpsest
