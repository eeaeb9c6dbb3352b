// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/core/named_linop.hpp"

#include <algorithm>
#include <array>
#include <ostream>

#include "palimpsest/base/deep_release.hpp"
#include "palimpsest/linop/core/builtin_types.hpp"
#include "palimpsest/linop/core/derived.hpp"
#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/linop/core/parameter_parts.hpp"

namespace palimpsest {
namespace {

template <class T>
const T* find_named(const std::vector<std::pair<std::string, T>>& list, std::string_view name) {
  for (const auto& [key, value] : list) {
    if (key == name) return &value;
  }
  return nullptr;
}

template <class T>
const T& get_named(const NamedLinop& A, const std::vector<std::pair<std::string, T>>& list,
                   std::string_view name, const char* kind) {
  if (const T* found = find_named(list, name)) return *found;
  std::string known;
  for (const auto& [key, value] : list) known += (known.empty() ? "'" : ", '") + key + "'";
  throw NameError(who(A) + "no " + kind + " '" + std::string(name) + "': expected " +
                  (known.empty() ? "none" : "one of " + known));
}

std::string printed_dims(const Dims& dims) {
  std::string text;
  for (const ND& d : dims) text += (text.empty() ? "" : ", ") + d.str();
  return text;
}

void print(std::string& text, const NamedLinop& A, int depth) {
  text.append(static_cast<std::size_t>(2 * depth), ' ');
  text += A.name() + "(" + printed_dims(A.ishape()) + " -> " + printed_dims(A.oshape()) + ")";
  if (A.type().remark) text += " " + A.type().remark(A);
  for (const NamedLinop& child : A.linops()) {
    text += '\n';
    print(text, child, depth + 1);
  }
}

}  // namespace

LinopNode::LinopNode(LinopData d) : data(std::move(d)) {}

LinopNode::~LinopNode() {
  for (NamedLinop& child : data.children) {
    std::shared_ptr<const void> node = child.node();
    child = NamedLinop();
    release_deep(std::move(node));
  }
}

// Shapes that operators keep for themselves: lists of dimensions.
static constexpr std::array kHiddenDims{"summed", "absorbed"};

NamedLinop from_data(LinopData data) {
  for (const char* const hidden : kHiddenDims) {
    if (data.shape.contains(hidden)) data.shape.dims(hidden);
  }
  return NamedLinop(std::make_shared<const LinopNode>(std::move(data)));
}

NamedLinop from_arguments(LinopData data) {
  const LinopType& type = *data.type;
  NamedLinop made = from_data(std::move(data));
  if (type.check) type.check(made);
  if (!type.derive) return made;
  Parameters derived = derived_parameters(made);
  const bool is_any = !derived.empty();
  LinopData completed = copy_data(made);
  std::erase_if(completed.params, [&](const auto& p) {
    return std::any_of(derived.begin(), derived.end(),
                       [&](const auto& d) { return d.first == p.first; });
  });
  for (auto& d : derived) completed.params.push_back(std::move(d));
  made = from_data(std::move(completed));
  if (is_any) remember_derived(made);
  return made;
}

LinopData copy_data(const NamedLinop& A) { return A.node()->data; }

std::string usual_name(const LinopType& type) { return type.name.substr(type.name.rfind('.') + 1); }

bool is_real_linear(const NamedLinop& A) {
  return A.type().real_linear || std::any_of(A.linops().begin(), A.linops().end(), is_real_linear);
}

bool has_trainable(const NamedLinop& A) {
  return std::any_of(A.params().begin(), A.params().end(),
                     [](const auto& p) { return p.second.is_trainable(); });
}

DimMap sizes_in(const NamedShape& shape) {
  return shape.contains("sizes") ? shape.map("sizes") : DimMap();
}

NamedShape with_sizes_in(const NamedShape& shape, const DimMap& sizes) {
  NamedShape::Others others;
  for (auto& other : shape.others()) {
    if (other.first != "sizes") others.push_back(std::move(other));
  }
  if (!sizes.empty()) others.emplace_back("sizes", sizes);
  return NamedShape(shape.ishape(), shape.oshape(), others);
}

Dims absorbed_dims(const NamedLinop& A) {
  return A.shape().contains("absorbed") ? A.shape().dims("absorbed") : Dims();
}

NamedLinop with_absorbed(const NamedLinop& A, const Dims& dims) {
  const Dims absorbed = unite(absorbed_dims(A), dims);
  if (absorbed.empty() || absorbed == absorbed_dims(A)) return A;
  LinopData data = copy_data(A);
  NamedShape::Others others{{"absorbed", absorbed}};
  for (auto& other : data.shape.others()) {
    if (other.first != "absorbed") others.push_back(std::move(other));
  }
  data.shape = NamedShape(data.shape.ishape(), data.shape.oshape(), others);
  return from_data(std::move(data));
}

NamedLinop with_records_of(const NamedLinop& A, const NamedLinop& made) {
  const NamedLinop marked = with_absorbed(made, absorbed_dims(A));
  const Dims dims = marked.dims();
  DimMap recorded = A.recorded_sizes();
  std::erase_if(recorded, [&](const auto& entry) { return !dims.contains(entry.first); });
  return recorded.empty() ? marked : marked.with_sizes(recorded);
}

bool follows_from_others(const NamedLinop& A, std::string_view name, const Parameter& p) {
  if (!p.is_derived() || !A.type().derive) return false;
  const DeferredDerivations deferred;
  const Parameters derived = A.type().derive(A);
  return std::any_of(derived.begin(), derived.end(),
                     [&](const auto& d) { return d.first == name; });
}

NamedLinop make_linop(const LinopType& type, NamedShape shape, Parameters parameters,
                      Attributes attributes) {
  LinopData data;
  data.type = &type;
  data.functions = type.functions;
  data.adj_normal_fn = type.adj_normal_fn;
  data.name = usual_name(type);
  data.shape = std::move(shape);
  data.params = std::move(parameters);
  data.attrs = std::move(attributes);
  return from_arguments(std::move(data));
}

NamedLinop make_container(const LinopType& type, std::vector<NamedLinop> children,
                          Attributes attributes, NamedShape::Others others) {
  for (const NamedLinop& child : children) {
    if (!child.defined()) throw ValueError("[" + type.name + "] got an undefined operator");
  }
  LinopData data;
  data.type = &type;
  data.functions = type.functions;
  data.adj_normal_fn = type.adj_normal_fn;
  data.name = usual_name(type);
  const Assembly how{.others = std::move(others), .attrs = attributes};
  const NamedShape shape = type.assemble(children, how);
  data.shape = NamedShape(shape.ishape(), shape.oshape(), how.others);
  data.children = std::move(children);
  data.attrs = std::move(attributes);
  const NamedLinop made = from_data(std::move(data));
  if (type.check) type.check(made);
  return made;
}

const LinopData& NamedLinop::data() const {
  if (!node_) throw ValueError("[NamedLinop] undefined: expected an operator that was made");
  return node_->data;
}

void NamedLinop::replace(LinopData data) { *this = from_data(std::move(data)); }

const LinopType& NamedLinop::type() const { return *data().type; }
const std::string& NamedLinop::name() const { return data().name; }
const LinopFunctions& NamedLinop::functions() const { return data().functions; }
bool NamedLinop::is_flipped() const { return data().flipped; }
const NamedShape& NamedLinop::shape() const { return data().shape; }
const Parameters& NamedLinop::params() const { return data().params; }
const Attributes& NamedLinop::attrs() const { return data().attrs; }
const std::vector<NamedLinop>& NamedLinop::linops() const { return data().children; }
DimMap NamedLinop::recorded_sizes() const { return sizes_in(shape()); }

Dims NamedLinop::dims() const {
  Dims result = unite(ishape(), oshape());
  for (const char* const hidden : kHiddenDims) {
    if (shape().contains(hidden)) result = unite(result, shape().dims(hidden));
  }
  if (linops().empty()) return result;
  {
    const std::lock_guard guard(node_->mutex);
    if (node_->dims) return *node_->dims;
  }
  check_stack(*this);
  for (const NamedLinop& child : linops()) result = unite(result, child.dims());
  const std::lock_guard guard(node_->mutex);
  node_->dims = result;
  return result;
}

namespace {

std::optional<index_t> find_size(const NamedLinop& A, const ND& d) {
  // The size of an absorbed dimension in the operator's parts is not the size of the whole.
  if (A.functions().size && !absorbed_dims(A).contains(d)) {
    if (const auto known = A.functions().size(A, d)) return known;
  }
  if (!A.shape().contains("sizes")) return std::nullopt;
  const DimMap& recorded = A.shape().map("sizes");
  const auto found = recorded.find(d);
  return found == recorded.end() ? std::nullopt : std::optional<index_t>(found->second);
}

}  // namespace

// Parameters have fixed shapes. A tree may be very deep, so containers keep what they have found.
std::optional<index_t> NamedLinop::size(const ND& d) const {
  if (data().children.empty()) return find_size(*this, d);
  {
    const std::lock_guard guard(node_->mutex);
    const auto found = node_->sizes.find(d);
    if (found != node_->sizes.end()) return found->second;
  }
  const std::optional<index_t> n = find_size(*this, d);
  const std::lock_guard guard(node_->mutex);
  node_->sizes.emplace(d, n);
  return n;
}

const Parameter& NamedLinop::param(std::string_view name) const {
  return get_named(*this, params(), name, "parameter");
}
bool NamedLinop::has_param(std::string_view name) const {
  return find_named(params(), name) != nullptr;
}
const Attribute& NamedLinop::attr(std::string_view name) const {
  return get_named(*this, attrs(), name, "attribute");
}
bool NamedLinop::has_attr(std::string_view name) const {
  return find_named(attrs(), name) != nullptr;
}

const NamedLinop& NamedLinop::operator[](std::size_t i) const {
  if (i < linop_count()) return linops()[i];
  throw ValueError(who(*this) + "child " + std::to_string(i) +
                   " is out of range: expected less than " + std::to_string(linop_count()));
}

NamedLinop NamedLinop::slice(std::size_t first, std::size_t last) const {
  if (first >= last || last > linop_count()) {
    throw ValueError(who(*this) + "slice " + std::to_string(first) + ":" + std::to_string(last) +
                     " is out of range: expected a part of 0:" + std::to_string(linop_count()));
  }
  const auto begin = linops().begin();
  return make_container(
      type(),
      {begin + static_cast<std::ptrdiff_t>(first), begin + static_cast<std::ptrdiff_t>(last)},
      attrs(), with_sizes_in(shape(), {}).others());
}

NamedLinop NamedLinop::copy() const { return from_data(data()); }

std::string NamedLinop::str() const {
  std::string text;
  print(text, *this, 0);
  return text;
}

std::ostream& operator<<(std::ostream& stream, const NamedLinop& A) { return stream << A.str(); }

bool identical(const NamedLinop& a, const NamedLinop& b) {
  if (a.is(b)) return true;
  if (&a.type() != &b.type() || a.name() != b.name() || a.is_flipped() != b.is_flipped()) {
    return false;
  }
  const auto same_params = [](const auto& p, const auto& q) {
    return p.first == q.first && p.second.is(q.second);
  };
  return identical(a.shape(), b.shape()) && a.attrs() == b.attrs() &&
         a.node()->data.user == b.node()->data.user &&
         std::equal(a.params().begin(), a.params().end(), b.params().begin(), b.params().end(),
                    same_params) &&
         std::equal(a.linops().begin(), a.linops().end(), b.linops().begin(), b.linops().end(),
                    [](const NamedLinop& c, const NamedLinop& d) { return identical(c, d); });
}

}  // namespace palimpsest
