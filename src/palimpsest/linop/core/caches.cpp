// SPDX-License-Identifier: Apache-2.0
// Adjoints and normal operators, and the caches that keep them.
#include <algorithm>

#include "palimpsest/base/config.hpp"
#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/core/builtin_types.hpp"
#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/named/matching.hpp"

namespace palimpsest {
namespace {

constexpr std::string_view kAdjointSuffix = ".H";

std::string toggled(std::string name) {
  if (name.ends_with(kAdjointSuffix)) {
    name.resize(name.size() - kAdjointSuffix.size());
    return name;
  }
  return name + std::string(kAdjointSuffix);
}

// The shallow copy with the shape flipped and the functions exchanged.
NamedLinop flipped_copy(const NamedLinop& A) {
  LinopData data = copy_data(A);
  data.shape = data.shape.H();
  exchange_functions(data);
  data.name = toggled(std::move(data.name));
  return from_data(std::move(data));
}

NamedLinop make_adjoint(const NamedLinop& A) {
  const auto hook = A.type().adjoint;
  if (!hook) return flipped_copy(A);
  NamedLinop made = hook(A);
  if (!made.defined()) return flipped_copy(A);
  // A name of its own is kept; the type's says enough.
  const std::string usual = usual_name(made.type());
  if (made.is(A) || A.name() == usual || made.name() != usual) return made;
  return made.named(toggled(A.name()));
}

bool is_adjoint_linked(const NamedLinop& A) {
  const std::lock_guard guard(A.node()->mutex);
  return A.node()->adjoint != nullptr || !A.node()->adjoint_of.expired();
}

bool contains(const NamedLinop& tree, const std::shared_ptr<const LinopNode>& node) {
  if (tree.node() == node) return true;
  return std::any_of(tree.linops().begin(), tree.linops().end(),
                     [&](const NamedLinop& child) { return contains(child, node); });
}

NamedLinop marked_self_adjoint(const NamedLinop& A) {
  if (A.node()->data.self_adjoint || A.type().adjoint == own_adjoint) return A;
  LinopData data = copy_data(A);
  data.self_adjoint = true;
  return from_data(std::move(data));
}

// Completes the result of a simplifying rule: adds the known sizes that it lacks, and marks the
// dimensions that it lost as absorbed. A sum over absorbed dimensions cannot be cut any more.
NamedLinop completed_from(const NamedLinop& made, const NamedLinop& A, const NamedLinop* inner) {
  if (made.is(A)) return made;
  const Dims before = inner ? unite(A.dims(), inner->dims()) : A.dims();
  Dims gone, named;
  for (const ND& d : before) {
    if (!d.is_concrete() && !d.is_ordinal()) continue;
    named.push_back(d);
    if (!made.dims().contains(d)) gone.push_back(d);
  }
  const NamedLinop marked = with_absorbed(made, unite(gone, absorbed_dims(A)));
  DimMap sizes;
  for (const ND& d : named) {
    auto n = A.size(d);
    if (!n && inner) n = inner->size(d);
    if (n) sizes.emplace(d, *n);
  }
  return completed(marked, sizes);
}

NamedLinop make_normal(const NamedLinop& A, const NamedLinop* inner) {
  if (A.type().normal) {
    const NamedLinop made = A.type().normal(A, inner);
    if (made.defined()) return completed_from(made, A, inner);
  }
  return completed_from(composed_normal(A, inner), A, inner);
}

// A^H A in a form that A may keep: it holds neither A nor an owner of A.
NamedLinop make_cacheable_normal(const NamedLinop& A) {
  NamedLinop made = make_normal(A, nullptr);
  if (made.is(A)) return made;
  std::shared_ptr<const LinopNode> owner;
  {
    const std::lock_guard guard(A.node()->mutex);
    owner = A.node()->adjoint_of.lock();
  }
  if (contains(made, A.node()) || (owner && contains(made, owner))) {
    made = make_normal(A.copy(), nullptr);
  }
  return marked_self_adjoint(made);
}

}  // namespace

void exchange_functions(LinopData& data) {
  std::swap(data.functions.fn, data.functions.adj_fn);
  std::swap(data.functions.normal_fn, data.adj_normal_fn);
  std::swap(data.functions.split, data.functions.adj_split);
  data.flipped = !data.flipped;
}

NamedLinop own_adjoint(const NamedLinop& A) { return A; }

NamedLinop NamedLinop::H() const {
  if (data().self_adjoint) return *this;
  check_stack(*this);
  if (!config().cache_adjoint_normal) return make_adjoint(*this);
  const auto cached = [&]() -> NamedLinop {  // the caller holds the mutex
    if (auto original = node_->adjoint_of.lock()) return NamedLinop(std::move(original));
    return NamedLinop(node_->adjoint);
  };
  {
    const std::lock_guard guard(node_->mutex);
    NamedLinop found = cached();
    if (found.defined()) return found;
  }
  NamedLinop made = make_adjoint(*this);
  if (made.is(*this)) return made;
  if (is_adjoint_linked(made)) made = made.copy();
  const std::lock_guard guard(node_->mutex);
  NamedLinop found = cached();  // another thread may have been first
  if (found.defined()) return found;
  {
    const std::lock_guard inner(made.node()->mutex);  // no other thread has it yet
    made.node()->adjoint_of = node_;
  }
  node_->adjoint = made.node();
  return made;
}

NamedLinop NamedLinop::N(Output output) const {
  if (output == Output::fresh) {
    // Names inside are taken too.
    Dims taken = oshape();
    for (const ND& d : dims()) {
      if (!ishape().contains(d) && !taken.contains(d)) taken.push_back(d);
    }
    NamedLinop adjoint = H();
    adjoint.set_oshape(NamedShape(ishape(), taken).N(Output::fresh).oshape());
    return Chain(*this, adjoint);
  }
  if (!config().cache_adjoint_normal) return make_cacheable_normal(*this);
  data();
  {
    const std::lock_guard guard(node_->mutex);
    if (node_->normal) return NamedLinop(node_->normal);
  }
  const NamedLinop made = make_cacheable_normal(*this);
  if (made.is(*this)) return made;
  const std::lock_guard guard(node_->mutex);
  if (!node_->normal) node_->normal = made.node();
  return NamedLinop(node_->normal);
}

NamedLinop NamedLinop::normal(const NamedLinop& inner) const {
  if (!isequal(inner.ishape(), oshape())) {
    throw ShapeError(who(*this) + "normal: Mismatched shape of the inner operator: got " +
                     inner.ishape().str() + ", expected " + oshape().str());
  }
  const LinopType& kind = inner.type();
  if (&kind == &linop_types::identity() && config().reduce_identity_in_normal) return N();
  if (&kind == &linop_types::scalar() && !is_real_linear(*this)) {
    // A number commutes with A^H.
    LinopData scalar = copy_data(inner);
    scalar.shape = NamedShape(ishape());
    const NamedLinop outer = from_data(std::move(scalar));
    const NamedLinop plain = N();
    const bool is_number = &plain.type() == &linop_types::identity();
    return completed_from(is_number ? outer : outer.compose(plain), *this, &inner);
  }
  return make_normal(*this, &inner);
}

NamedLinop NamedLinop::inverse() const {
  if (!type().inverse) throw NotSupported(who(*this) + "inverse: this type has none");
  return type().inverse(*this);
}

NamedLinop composed_normal(const NamedLinop& A, const NamedLinop* inner) {
  if (!inner) return make_container(linop_types::normal(), {A});
  NamedLinop adjoint = A.H();
  if (!isequal(inner->oshape(), adjoint.ishape())) adjoint.set_ishape(inner->oshape());
  std::vector<NamedLinop> parts = flatten(A);
  for (const NamedLinop& part : {*inner, adjoint}) {
    for (NamedLinop& piece : flatten(part)) parts.push_back(std::move(piece));
  }
  return Chain(std::move(parts));
}

}  // namespace palimpsest
