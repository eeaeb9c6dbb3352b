// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/prox/low_rank.hpp"

#include "palimpsest/linop/core/axes.hpp"
#include "palimpsest/named/sizes.hpp"
#include "palimpsest/solve/frame/prelude.hpp"
#include "palimpsest/solve/prox/node.hpp"

namespace palimpsest {
namespace {

constexpr index_t kWhole = std::numeric_limits<index_t>::max();

Axes named_axes(const Prox& g, const char* attribute, std::size_t rank) {
  const Dims rows = g.attr("rows").as_dims(), columns = g.attr("columns").as_dims();
  const Dims dims = g.dims().value_or(rows + columns + Dims("..."));
  Axes axes;
  for (const ND& d : g.attr(attribute).as_dims()) axes.push_back(axis_of(dims, d));
  return from_front(axes, rank);
}

// The role of each axis, as in ops::soften_singular_values.
Extents matrix_axes(const Prox& g, std::size_t rank) {
  Extents axes(rank, ops::kMatrixBatch);
  const Axes rows = named_axes(g, "rows", rank);
  const Extents block = g.attr("block").as_integers();
  for (std::size_t k = 0; k < rows.size(); ++k) axes[static_cast<std::size_t>(rows[k])] = block[k];
  for (const index_t axis : named_axes(g, "columns", rank)) {
    axes[static_cast<std::size_t>(axis)] = ops::kMatrixColumns;
  }
  return axes;
}

// Extents of a block in this operand, in the order of its axes: that of the shifts.
Extents block_in(const Extents& axes, const Variable& v) {
  Extents block;
  for (std::size_t k = 0; k < axes.size(); ++k) {
    if (axes[k] > 0) block.push_back(std::min(axes[k], v.type().shape[k]));
  }
  return block;
}

double scale_of(const Prox& g, const Extents& axes, const Variable& v) {
  if (g.attr("scale").as_string() == "none") return 1;
  double rows = 1, columns = 1, blocks = 1;
  for (std::size_t k = 0; k < axes.size(); ++k) {
    const index_t n = v.type().shape[k];
    if (axes[k] == ops::kMatrixColumns) columns *= static_cast<double>(n);
    if (axes[k] <= 0) continue;
    const index_t block = std::min(axes[k], n);
    rows *= static_cast<double>(block);
    blocks *= static_cast<double>((n + block - 1) / block);
  }
  return std::sqrt(rows) + std::sqrt(columns) +
         std::sqrt(std::log(blocks * std::min(rows, columns)));
}

// The mean over all shifts of the blocks.
Variable overlapped(const Variable& v, const Variable& threshold, const Extents& axes) {
  const Extents block = block_in(axes, v);
  const index_t count = element_count(block);
  ops::LoopOptions options;
  options.states = {ops::zeros_like(v), constant(Tensor::zeros({}, DType::int64))};
  options.n_steps = Operand(count);
  const auto body = [&](const std::vector<Variable>& a) -> std::vector<Variable> {
    std::vector<Variable> shift;
    Variable rest = a[1];
    for (std::size_t k = block.size(); k-- > 0;) {
      shift.insert(shift.begin(), ops::expand_dims(ops::mod(rest, block[k]), {0}));
      rest = ops::floor_div(rest, block[k]);
    }
    const Variable all = shift.size() == 1 ? shift[0] : ops::join(0, shift);
    return {a[0] + ops::soften_singular_values(v, threshold, all, axes), a[1] + index_t{1}};
  };
  return ops::loop(body, options).last(0) * (1.0 / static_cast<double>(count));
}

Variable low_rank_prox(const Prox& g, const Variable& v, const Variable& t, StateScope& s) {
  const DType real = real_of(v.dtype());
  const Extents axes = matrix_axes(g, v.rank());
  const Variable threshold = t.astype(real) * weight_of(g, "lambda", real) * scale_of(g, axes, v);
  if (g.attr("overlap").as_bool()) return overlapped(v, threshold, axes);
  const Extents block = block_in(axes, v);
  const auto count = static_cast<index_t>(block.size());
  if (!g.has_state()) {
    const Variable none = constant(Tensor::zeros({count}, DType::int64));
    return ops::soften_singular_values(v, threshold, none, axes);
  }
  const Variable drawn = ops::random_integers(s["key"], {count}, 0, index_t{1} << 30);
  s.set("key", ops::next_key(s["key"]));
  const Variable extents = constant(Tensor::from(std::vector<index_t>(block.begin(), block.end())));
  return ops::soften_singular_values(v, threshold, ops::mod(drawn, extents), axes);
}

Variable low_rank_value(const Prox& g, const Variable& x, const Axes& batch) {
  const Extents axes = matrix_axes(g, x.rank());
  return sum_besides(ops::nuclear_norms(x, axes), batch) *
         (weight_of(g, "lambda", real_of(x.dtype())) * scale_of(g, axes, x));
}

void check_low_rank(const Prox& g) {
  check_weight(g, "lambda");
  const Dims &rows = g.attr("rows").as_dims(), &columns = g.attr("columns").as_dims();
  const bool is_shared =
      std::any_of(rows.begin(), rows.end(), [&](const ND& d) { return columns.contains(d); });
  if (rows.empty() || is_shared) {
    throw ShapeError(who(g) + "rows: got " + rows.str() + " and columns " + columns.str() +
                     ", expected at least one dimension that is not among the columns");
  }
  const Extents block = g.attr("block").as_integers();
  if (block.size() != rows.size()) {
    throw ValueError(who(g) + "block: got " + std::to_string(block.size()) + " extents, expected " +
                     std::to_string(rows.size()));
  }
  for (const index_t n : block) {
    if (n > 0) continue;
    throw ValueError(who(g) + "block: got " + std::to_string(n) + ", expected at least 1");
  }
}

bool is_separable_low_rank(const Prox& g, const ND& d) {
  return !g.attr("rows").as_dims().contains(d) && !g.attr("columns").as_dims().contains(d);
}

constexpr ProxType low_rank(std::string_view name) {
  return {.name = name,
          .prox = low_rank_prox,
          .value = low_rank_value,
          .check = check_low_rank,
          .is_separable = is_separable_low_rank};
}
constexpr ProxType kNuclear = low_rank("Nuclear");
constexpr ProxType kLocallyLowRank = low_rank("LocallyLowRank");
constexpr ProxType kShiftedLocallyLowRank = [] {
  ProxType type = low_rank("ShiftedLocallyLowRank");
  type.declare = [](const Prox&, const Space&, StateList& state) { state.add_key("key"); };
  return type;
}();
PALIMPSEST_REGISTER_PROX(kNuclear);
PALIMPSEST_REGISTER_PROX(kLocallyLowRank);
PALIMPSEST_REGISTER_PROX(kShiftedLocallyLowRank);

}  // namespace

Prox Nuclear(const Weight& lambda, const Dims& rows, const Dims& columns,
             std::optional<Dims> dims) {
  ProxParts parts{.dims = std::move(dims),
                  .attrs = {{"rows", rows},
                            {"columns", columns},
                            {"block", Attribute(Extents(rows.size(), kWhole))},
                            {"scale", "none"},
                            {"overlap", false}}};
  put_weight(parts, "lambda", lambda);
  return make_prox(kNuclear, std::move(parts));
}

Prox LocallyLowRank(const Weight& lambda, const BlockExtents& block, const Dims& across,
                    const LocallyLowRankOptions& options) {
  const bool is_random = options.shift == Shift::random;
  if (is_random && options.overlap) {
    throw ValueError("[LocallyLowRank] shift: got random with overlap, expected one of the two");
  }
  Dims rows;
  Extents extents;
  for (const auto& [d, n] : block) {
    rows.push_back(d);
    extents.push_back(n);
  }
  ProxParts parts{.name = "LocallyLowRank",
                  .dims = options.dims,
                  .attrs = {{"rows", rows},
                            {"columns", across},
                            {"block", Attribute(extents)},
                            {"scale", options.scale == LowRankScale::bart ? "bart" : "none"},
                            {"overlap", options.overlap}}};
  put_weight(parts, "lambda", lambda);
  return make_prox(is_random ? kShiftedLocallyLowRank : kLocallyLowRank, std::move(parts));
}

}  // namespace palimpsest
