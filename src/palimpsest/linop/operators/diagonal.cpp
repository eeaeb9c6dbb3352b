// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/operators/diagonal.hpp"

#include <algorithm>
#include <sstream>

#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/linop/operators/diagonal_factors.hpp"

namespace palimpsest {
namespace {

// "weight", "weight1", "weight2", ...
std::string numbered_key(const char* key, std::size_t i) {
  return i == 0 ? key : key + std::to_string(i);
}

Variable applied(const Variable& w, std::string_view function, std::istringstream& rest) {
  if (function == "abs2") return ops::abs2(w);
  if (function == "pow") {
    double exponent = 0;
    rest >> exponent;
    return ops::elementwise(ScalarOp::pow,
                            {w, WeakNumber(exponent).as_variable(w.dtype(), w.type().device)});
  }
  throw InternalError("[Diagonal] unknown function '" + std::string(function) + "' of a weight");
}

// The product with all factors. Values under the ellipsis may not add axes to x.
Variable times_factors(const NamedLinop& A, const Variable& x, bool conjugated) {
  Variable result = x;
  for (const DiagonalFactor& factor : diagonal_factors(A)) {
    if (factor.axes.size() > x.rank()) {
      throw ShapeError(who(A) + "expects at least " + std::to_string(factor.axes.size()) +
                       " axes, those of the weight: got " + to_string(x.type().shape));
    }
    Variable values = factor_values(factor, conjugated);
    if (A.attr("adapts").as_bool()) values = ops::astype(values, real_of(x.dtype()));
    result = result * put_in_place(values, factor.axes, x.rank());
  }
  return result;
}

Variable diagonal_fn(const NamedLinop& A, const Variable& x) { return times_factors(A, x, false); }
Variable diagonal_adj_fn(const NamedLinop& A, const Variable& y) {
  return times_factors(A, y, true);
}

DiagonalParts power_of(const NamedLinop& A) {
  DiagonalParts parts{NamedShape(A.ishape()), diagonal_factors(A), A.attr("adapts").as_bool()};
  for (DiagonalFactor& factor : parts.factors) {
    factor.form += factor.form.empty() ? "abs2" : " abs2";
  }
  return parts;
}

// |w|^2, times a diagonal in between.
NamedLinop diagonal_normal(const NamedLinop& A, const NamedLinop* inner) {
  DiagonalParts parts = power_of(A);
  if (inner) {
    constexpr std::size_t kMostFactors = 32;  // a product of more is several diagonals
    const bool folds = inner->params().size() < kMostFactors &&
                       &inner->type() == &linop_types::diagonal() && !inner->is_flipped() &&
                       !inner->attr("adapts").as_bool() && !parts.adapts;
    if (!folds) return {};
    for (DiagonalFactor& factor : diagonal_factors(*inner)) {
      parts.factors.push_back(std::move(factor));
    }
  }
  return with_records_of(A, make_diagonal(std::move(parts)));
}

std::optional<index_t> diagonal_size(const NamedLinop& A, const ND& d) {
  for (const DiagonalFactor& factor : diagonal_factors(A)) {
    const auto i = find_axis(A.ishape(), d, factor.axes);
    if (i && factor.weight.shape()[*i] != 1) return factor.weight.shape()[*i];
  }
  return std::nullopt;
}

NamedLinop diagonal_split(const NamedLinop& A, const Tile& tile) {
  LinopData data = tile_data(A, tile);
  const std::vector<DiagonalFactor> factors = diagonal_factors(A);
  for (std::size_t i = 0; i < factors.size(); ++i) {
    Parameter weight = factors[i].weight;
    for (const auto& [d, range] : tile) {
      const auto axis = find_axis(A.ishape(), d, factors[i].axes);
      if (!axis || weight.shape()[*axis] == 1) continue;
      weight = weight.narrow(*axis, *range.start, *range.stop - *range.start);
    }
    put_param(data, numbered_key("weight", i), std::move(weight));
  }
  return from_data(std::move(data));
}

void check_diagonal(const NamedLinop& A) {
  for (const DiagonalFactor& factor : diagonal_factors(A)) {
    const TensorType& type = factor.weight.type();
    if (type.rank() != factor.axes.size()) {
      throw ShapeError(who(A) + "weight: got " + type.str() + ", expected " +
                       std::to_string(factor.axes.size()) + " axes");
    }
    if (!is_inexact(type.dtype)) {
      throw DTypeError(who(A) + "weight: got " + type.str() + ", expected floating or complex");
    }
  }
}

std::string error_about(const Dims& dims) { return "[Diagonal] dims " + dims.str() + ": "; }

// The positions of a weight's axes: the last ones, or those of weight_shape.
Axes weight_axes(const TensorType& w, const Dims& dims, const DiagonalOptions& options) {
  if (!options.weight_shape) {
    const std::size_t names = dims.size() - dims.count(ND::ellipsis());
    if (w.rank() > names && !dims.has_ellipsis()) {
      throw ValueError(error_about(dims) + "all dimensions must be named: got a weight " + w.str() +
                       ", expected at most " + std::to_string(names) + " axes");
    }
    return last_axes(w.rank());
  }
  const Dims& names = *options.weight_shape;
  if (names.size() != w.rank()) {
    throw ValueError(error_about(dims) + "all dimensions must be named: got a weight " + w.str() +
                     " and weight_shape " + names.str());
  }
  Axes axes;
  std::size_t next = 0;
  for (const ND& d : names) {
    const auto position = dims.index_of(d);
    if (!position || d.is_ellipsis() || *position < next) {
      throw ValueError(error_about(dims) + "weight_shape: got " + names.str() +
                       ", expected some of the dimensions in their order");
    }
    next = *position + 1;
    axes.push_back(axis_of(dims, d, "Diagonal"));
  }
  return axes;
}

// A stretched dimension has no axis of the weight, or one of one element.
void check_broadcast(const TensorType& w, const Axes& axes, const Dims& dims,
                     const Dims& broadcast) {
  for (const ND& d : broadcast) {
    const auto axis = find_axis(dims, d, axes);
    if (dims.contains(d) && (!axis || w.shape[*axis] == 1)) continue;
    throw ValueError(error_about(dims) + "broadcast: dim '" + d.str() + "': got a weight " +
                     w.str() + ", expected one element along it, and the dimension among dims");
  }
}

}  // namespace

std::vector<DiagonalFactor> diagonal_factors(const NamedLinop& A) {
  std::vector<DiagonalFactor> factors;
  for (std::size_t i = 0; A.has_param(numbered_key("weight", i)); ++i) {
    factors.push_back({A.param(numbered_key("weight", i)),
                       A.attr(numbered_key("axes", i)).as_integers(),
                       A.attr(numbered_key("form", i)).as_string()});
  }
  return factors;
}

NamedLinop make_diagonal(DiagonalParts parts) {
  Parameters params;
  Attributes attrs{{"adapts", parts.adapts}};
  for (std::size_t i = 0; i < parts.factors.size(); ++i) {
    DiagonalFactor& factor = parts.factors[i];
    params.emplace_back(numbered_key("weight", i), std::move(factor.weight));
    attrs.emplace_back(numbered_key("axes", i), Attribute(factor.axes));
    attrs.emplace_back(numbered_key("form", i), std::move(factor.form));
  }
  return make_linop(linop_types::diagonal(), std::move(parts.shape), std::move(params),
                    std::move(attrs));
}

Variable factor_values(const DiagonalFactor& factor, bool conjugated) {
  Variable values = factor.weight.var();
  std::istringstream functions(factor.form);
  for (std::string function; functions >> function;) {
    values = applied(values, function, functions);
  }
  return conjugated ? ops::conj(values) : values;
}

Variable put_in_place(const Variable& values, const Axes& axes, std::size_t rank) {
  if (axes.empty()) return values;
  const Axes positions = from_front(axes, rank);
  Axes missing;  // counted from the first axis of the values; leading ones are implied
  for (index_t k = positions[0]; k < static_cast<index_t>(rank); ++k) {
    const bool present = std::find(positions.begin(), positions.end(), k) != positions.end();
    if (!present) missing.push_back(k - positions[0]);
  }
  return missing.empty() ? values : ops::expand_dims(values, missing);
}

const LinopType& linop_types::diagonal() {
  return PALIMPSEST_LINOP_TYPE(.name = "Diagonal",
                               .functions = {.fn = diagonal_fn,
                                             .adj_fn = diagonal_adj_fn,
                                             .split = diagonal_split,
                                             .size = diagonal_size},
                               .normal = diagonal_normal, .check = check_diagonal,
                               .one_shape = true);
}

NamedLinop Diagonal(Parameter w, Dims dims, DiagonalOptions options) {
  const TensorType type = w.type();
  Axes axes = weight_axes(type, dims, options);
  check_broadcast(type, axes, dims, options.broadcast);
  const NamedLinop made = make_diagonal(
      {NamedShape(std::move(dims)), {{std::move(w), std::move(axes), ""}}, /*adapts=*/false});
  return options.sizes.empty() ? made : made.with_sizes(options.sizes);
}

}  // namespace palimpsest
