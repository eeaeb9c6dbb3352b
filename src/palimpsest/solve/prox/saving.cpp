// SPDX-License-Identifier: Apache-2.0
// A function is copied and saved as an operator that holds its parts: sharing, copying of bytes and
// the file format are those of operators.
#include "palimpsest/solve/prox/saving.hpp"

#include <algorithm>

#include "palimpsest/base/error.hpp"
#include "palimpsest/base/immortal.hpp"
#include "palimpsest/linop/copies/saving.hpp"
#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/solve/prox/node.hpp"

namespace palimpsest {
namespace {

constexpr int kMaxDepth = 500;
// In front of the names of a function's own attributes.
constexpr std::string_view kOwn = "of ";

Variable refused(const NamedLinop& A, const Variable&) {
  throw ValueError(who(A) + "it holds a proximal function, expected an operator");
}

NamedShape any_shape(std::vector<NamedLinop>&, const Assembly& how) {
  return NamedShape(Dims("..."), Dims("..."), how.others);
}

const LinopType& holder_type() {
  return immortal([] {
    return LinopType{.name = "palimpsest.Prox",
                     .functions = {.fn = refused, .adj_fn = refused},
                     .assemble = any_shape};
  });
}
[[maybe_unused]] const bool is_registered = register_linop(holder_type());

NamedLinop holder_of(const Prox& g) {
  LinopData data;
  data.type = &holder_type();
  data.functions = data.type->functions;
  data.name = g.name();
  data.shape = NamedShape(Dims("..."), Dims("..."));
  data.params = g.params();
  data.attrs = {{"type", std::string(g.type().name)},
                {"version", g.type().version},
                {"parts", static_cast<index_t>(g.parts().size())},
                {"dims", g.dims() ? Attribute(*g.dims()) : Attribute()}};
  for (const auto& [name, a] : g.attrs()) data.attrs.emplace_back(std::string(kOwn) + name, a);
  for (const Prox& part : g.parts()) data.children.push_back(holder_of(part));
  data.children.insert(data.children.end(), g.linops().begin(), g.linops().end());
  return from_data(std::move(data));
}

const ProxType& type_of_holder(const NamedLinop& holder) {
  if (&holder.type() != &holder_type()) {
    throw FormatError(who(holder) +
                      "got an operator, expected a file of a proximal function; it "
                      "is not a proximal function");
  }
  std::string name = holder.attr("type").as_string();
  // A composition with a state may be named so.
  constexpr std::string_view kSuffix = "_with_state";
  if (name.ends_with(kSuffix)) name.resize(name.size() - kSuffix.size());
  const ProxType* type = find_prox(name);
  if (type == nullptr) {
    throw FormatError(who(holder) + "load: unknown type '" + name +
                      "'. Try PALIMPSEST_REGISTER_PROX");
  }
  if (holder.attr("version").as_integer() > type->version) {
    throw FormatError(who(holder) + "load: it is newer than the type '" + name + "' here");
  }
  return *type;
}

// The Prox of a holder, with the type and the functions of `original` if there is one.
Prox held_by(const NamedLinop& holder, const Prox* original = nullptr, int depth = 0) {
  if (depth > kMaxDepth) throw FormatError(who(holder) + "load: too deep");
  const ProxType& type = original != nullptr ? original->type() : type_of_holder(holder);
  ProxParts data{.name = holder.name(), .params = holder.params()};
  if (original != nullptr) data.functions = original->node().data.functions;
  if (const Attribute& dims = holder.attr("dims"); !dims.absent()) data.dims = dims.as_dims();
  for (const auto& [name, a] : holder.attrs()) {
    if (name.starts_with(kOwn)) data.attrs.emplace_back(name.substr(kOwn.size()), a);
  }
  const index_t n_parts = holder.attr("parts").as_integer();
  const auto n_children = static_cast<index_t>(holder.linops().size());
  if (n_parts < 0 || n_parts > n_children) {
    throw FormatError(who(holder) + "parts: got " + std::to_string(n_parts) +
                      ", expected at most " + std::to_string(n_children));
  }
  for (index_t k = 0; k < n_children; ++k) {
    const auto at = static_cast<std::size_t>(k);
    const NamedLinop& child = holder.linops()[at];
    if (k >= n_parts) {
      data.linops.push_back(child);
      continue;
    }
    data.parts.push_back(
        held_by(child, original != nullptr ? &original->parts()[at] : nullptr, depth + 1));
  }
  return make_prox(type, std::move(data));
}

void check_can_be_saved(const Prox& g) {
  if (g.node().data.functions) {
    throw FormatError(who(g) +
                      "save: it is made of a closure, which has no name to be found by. Try to "
                      "register a ProxType");
  }
  if (find_prox(g.type().name) != &g.type()) {
    throw FormatError(who(g) + "save: unknown type '" + std::string(g.type().name) +
                      "'. Try PALIMPSEST_REGISTER_PROX");
  }
  for (const Prox& part : g.parts()) check_can_be_saved(part);
}

Prox read(const NamedLinop& holder) {
  try {
    return held_by(holder);
  } catch (const FormatError&) {
    throw;
  } catch (const Error& error) {
    throw FormatError(who(holder) + "load: it cannot be made: " + error.what());
  }
}

}  // namespace

void save(const Prox& g, const std::string& path) {
  check_can_be_saved(g);
  save(holder_of(g), path);
}

std::vector<std::byte> to_bytes(const Prox& g) {
  check_can_be_saved(g);
  return to_bytes(holder_of(g));
}

Prox load_prox(const std::string& path, const ArchiveOptions& options) {
  return read(load(path, options));
}

Prox prox_from_bytes(std::span<const std::byte> bytes, const ArchiveOptions& options) {
  return read(from_bytes(bytes, options));
}

Prox Prox::deepcopy(Copy when) const {
  type();
  return held_by(holder_of(*this).deepcopy(when), this);
}

}  // namespace palimpsest
