// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/frame/problem.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "palimpsest/base/error.hpp"
#include "palimpsest/named/matching.hpp"
#include "palimpsest/solve/prox/node.hpp"

namespace palimpsest {
namespace {

template <class List>
auto find_named(List& list, std::string_view name) {
  return std::find_if(list.begin(), list.end(),
                      [&](const auto& entry) { return entry.first == name; });
}

template <class List, class Value>
void put(List& list, std::string_view name, Value value) {
  const auto found = find_named(list, name);
  if (found == list.end()) {
    list.emplace_back(std::string(name), std::move(value));
  } else {
    found->second = std::move(value);
  }
}

template <class List>
const auto& get(const List& list, std::string_view name, const char* kind) {
  const auto found = find_named(list, name);
  if (found == list.end()) {
    throw NameError("problem: there is no " + std::string(kind) + " '" + std::string(name) + "'");
  }
  return found->second;
}

TensorType image_of(const NamedLinop& A, const TensorType& x) {
  return A(make_input(x, "x")).type();
}

// The oshape of K, with the dimensions of x that its ellipsis stands for.
Dims dims_spelled_out(const NamedLinop& K, const Dims& x) {
  const ND dots = ND::ellipsis();
  if (!K.ishape().has_ellipsis() || x.has_ellipsis()) return K.oshape();
  const Partition parts = partition(K.ishape(), dots);
  const std::size_t named = parts.before.size() + parts.after.size();
  if (named > x.size()) return K.oshape();
  return K.oshape().replaced(dots, x.slice(parts.before.size(), x.size() - parts.after.size()));
}

// d of each term and c of each quadratic.
void check_shifts(const Problem& p, const std::string& who) {
  for (const auto& [name, B] : p.ops()) {
    const char kind = name.front() == 'K' ? 'd' : name.front() == 'L' ? 'c' : 0;
    const std::string shift = kind + name.substr(1);
    if (kind == 0 || !p.has_attr(shift)) continue;
    const Tensor& given = p.attr(shift).as_tensor();
    const TensorType range = p.range_of(name).type();
    bool fits = given.rank() <= range.rank();
    for (std::size_t k = 0; fits && k < given.rank(); ++k) {
      const index_t n = given.shape()[given.rank() - 1 - k];
      fits = n == range.shape[range.rank() - 1 - k] || (n == 1 && kind == 'd');
    }
    if (!fits || (kind == 'c' && given.rank() != range.rank())) {
      throw ShapeError(who + shift + ": got shape " + to_string(given.shape()) + ", expected " +
                       to_string(range.shape));
    }
    if (is_complex(given.dtype()) && !is_complex(range.dtype)) {
      throw DTypeError(who + shift + ": got " + std::string(name_of(given.dtype())) +
                       ", expected " + std::string(name_of(range.dtype)));
    }
  }
}

}  // namespace

Problem& Problem::set(std::string_view name, NamedLinop A) {
  put(ops_, name, std::move(A));
  return *this;
}

Problem& Problem::set(std::string_view name, Prox g) {
  put(proxes_, name, std::move(g));
  return *this;
}

Problem& Problem::set(std::string_view name, Attribute value) {
  put(attrs_, name, std::move(value));
  return *this;
}

bool Problem::has_op(std::string_view name) const { return find_named(ops_, name) != ops_.end(); }
const NamedLinop& Problem::op(std::string_view name) const { return get(ops_, name, "operator"); }
bool Problem::has_prox(std::string_view name) const {
  return find_named(proxes_, name) != proxes_.end();
}
const Prox& Problem::prox(std::string_view name) const {
  return get(proxes_, name, "proximal function");
}
bool Problem::has_attr(std::string_view name) const {
  return find_named(attrs_, name) != attrs_.end();
}
const Attribute& Problem::attr(std::string_view name) const {
  return get(attrs_, name, "attribute");
}

double Problem::real(std::string_view name, double otherwise) const {
  return has_attr(name) ? attr(name).as_real() : otherwise;
}
index_t Problem::integer(std::string_view name, index_t otherwise) const {
  return has_attr(name) ? attr(name).as_integer() : otherwise;
}
bool Problem::flag(std::string_view name, bool otherwise) const {
  return has_attr(name) ? attr(name).as_bool() : otherwise;
}

void Problem::resolve(const Dims& batch, bool has_x0, std::string_view solver) {
  const std::string who = "[" + std::string(solver) + "] ";
  const NamedLinop& A = op("A");
  // Shapes with wildcards may match and yet have other ranks.
  TensorType x = A.ishape() == A.oshape() ? b_type_ : image_of(A.H(), b_type_);
  TensorType b = b_type_;
  const auto make_complex = [&] {
    x.dtype = complex_of(x.dtype);
    b.dtype = complex_of(b.dtype);
  };
  if (is_complex(x.dtype)) make_complex();
  for (const auto& [name, B] : ops_) {
    const bool is_of_b = name == "W";
    if (name == "M" || isequal(B.ishape(), is_of_b ? A.oshape() : A.ishape())) continue;
    throw ShapeError(who + "Mismatched shape of " + name + ": got " + B.ishape().str() +
                     ", expected that of " +
                     (is_of_b ? "b, " + A.oshape().str() : "x, " + A.ishape().str()));
  }
  for (const auto& [name, B] : ops_) {
    const bool is_of_x = name != "W" && isequal(B.ishape(), A.ishape());
    if (is_of_x && is_complex(image_of(B, x).dtype)) make_complex();
  }
  for (const ND& d : batch) {
    if (batch.count(d) > 1) {
      throw ShapeError(who + "batch: got " + batch.str() + ", expected each dimension once");
    }
    for (const auto& [name, B] : ops_) {
      if (can_split(B, d)) continue;
      throw SplitError(who + "batch: " + d.str() + ": expected a dimension along which " +
                       B.name() + " can be split, " + arrow(B.ishape(), B.oshape()));
    }
  }
  batch_ = batch;
  has_x0_ = has_x0;
  x_ = Space(x, A.ishape(), batch).of(A, VectorSide::input);
  b_ = Space(b, A.oshape(), batch).of(A, VectorSide::output);
  check_shifts(*this, who);
  for (auto& [name, g] : proxes_) {
    const Space argument = argument_of(name);
    g = g.bound_to(argument.dims());
    for (const ND& d : argument.cut_dims()) {
      if (g.type().is_elementwise || g.is_separable(d)) continue;
      throw SplitError(fmt::format(
          "{}{}: {} is not separable along {}, along which processes have parts. Try another "
          "dimension in distribute()",
          who, name, g.str(), d.str()));
    }
    for (const ND& d : batch) {
      if (!is_refused_along(g, d)) continue;
      throw SplitError(who + "batch: " + d.str() + ": expected a dimension along which " + g.str() +
                       " is separable");
    }
  }
}

Space Problem::range_of(std::string_view name) const {
  const NamedLinop& K = op(name);
  const Space range(image_of(K, x_.type()), dims_spelled_out(K, x_.dims()), batch_);
  const Dims cut = x_.cut_dims();
  if (cut.empty() || is_in_parts(K)) return range.of(K, VectorSide::output);
  // Each process applies K to its part.
  for (const ND& d : cut) {
    if (range.dims().contains(d) && can_split(K, d)) continue;
    throw SplitError(
        fmt::format("[Problem] {}: {} {} cannot be applied to parts along {}. Try "
                    "distribute() of it as well",
                    name, K.name(), arrow(K.ishape(), K.oshape()), d.str()));
  }
  return range.of(op("A"), VectorSide::input);
}

Space Problem::argument_of(std::string_view prox) const {
  if (prox == "h") return x_;
  if (prox == "f") return b_;
  return range_of("K" + std::string(prox.substr(1)));
}

Space Problem::numbers() const { return Space(x_.number_type(), batch_, batch_); }

void Problem::replace(std::string_view name, NamedLinop A) {
  find_named(ops_, name)->second = std::move(A);
}

namespace {

// The widest precision of the floating parameters; none: double.
std::optional<DType> precision_of(const NamedLinop& A) {
  std::optional<DType> widest;
  const auto note = [&](std::optional<DType> of) {
    if (!of || !is_inexact(*of)) return;
    if (!widest || real_of(*of) == DType::float64) widest = real_of(*of);
  };
  for (const auto& [name, parameter] : A.params()) {
    if (parameter.present()) note(parameter.dtype());
  }
  for (const NamedLinop& child : A.linops()) note(precision_of(child));
  return widest;
}

}  // namespace

TensorType data_type(const NamedLinop& A, const Dims& dims, std::optional<DType> dtype,
                     const char* who) {
  A.matrix_size();  // says which size is unknown
  DimSizes sizes;
  for (const ND& d : dims) {
    if (const auto n = A.size(d)) sizes.set(d, *n);
  }
  return {
      dtype.value_or(precision_of(A).value_or(DType::float64)), extents_of(dims, sizes, who), {}};
}

}  // namespace palimpsest
