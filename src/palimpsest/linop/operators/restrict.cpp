// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/operators/restrict.hpp"

#include <algorithm>

#include "palimpsest/linop/containers/chain.hpp"
#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/linop/operators/identity.hpp"
#include "palimpsest/named/inner_dimension.hpp"

namespace palimpsest {
namespace {

struct CutRanges {
  explicit CutRanges(const NamedLinop& A)
      : axes(A.attr("axes").as_integers()),
        starts(A.attr("starts").as_integers()),
        stops(A.attr("stops").as_integers()) {}
  Axes axes;
  Extents starts, stops;
};

ND name_of_axis(const Dims& dims, index_t axis) {
  for (const ND& d : dims) {
    if (find_axis(dims, d, Axes{axis})) return d;
  }
  return ND::ellipsis();
}

Variable restrict_fn(const NamedLinop& A, const Variable& x) {
  const CutRanges cuts(A);
  const Axes positions = from_front(cuts.axes, x.rank());
  std::vector<Index> index(x.rank(), Index(all));
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const auto k = static_cast<std::size_t>(positions[i]);
    if (cuts.stops[i] > x.type().shape[k]) {
      const ND d = name_of_axis(A.is_flipped() ? A.oshape() : A.ishape(), cuts.axes[i]);
      throw ShapeError(who(A) + "slice " + std::to_string(cuts.starts[i]) + ":" +
                       std::to_string(cuts.stops[i]) + " of dim '" + d.str() +
                       "' is out of range: got " + x.type().str());
    }
    index[k] = slice(cuts.starts[i], cuts.stops[i]);
  }
  return ops::index(x, std::move(index));
}

Variable restrict_adj_fn(const NamedLinop& A, const Variable& y) {
  const CutRanges cuts(A);
  const Axes positions = from_front(cuts.axes, y.rank());
  const Dims& whole = A.is_flipped() ? A.oshape() : A.ishape();
  std::vector<std::pair<index_t, index_t>> widths(y.rank(), {0, 0});
  for (const ND& d : whole) {
    const auto i = find_axis(whole, d, cuts.axes);
    if (!i) continue;
    const auto n = A.size(d);
    if (!n) {
      throw ShapeError(who(A) + "size of dim '" + d.str() +
                       "' is unknown: the adjoint puts zeros around. Try with_sizes");
    }
    widths[static_cast<std::size_t>(positions[*i])] = {cuts.starts[*i], *n - cuts.stops[*i]};
  }
  return ops::pad(y, std::move(widths));
}

std::optional<index_t> restrict_size(const NamedLinop& A, const ND& d) {
  const CutRanges cuts(A);
  const auto i = find_axis(A.is_flipped() ? A.ishape() : A.oshape(), d, cuts.axes);
  if (!i) return std::nullopt;
  return cuts.stops[*i] - cuts.starts[*i];
}

// A cut axis of a tile. Coordinates: `start` .. `stop` of the tile's own input; `before` and
// `after` are the zeros around them in the tile's output.
struct CutTile {
  ND in, out;
  index_t start, stop, before, after;
  bool is_empty() const { return start >= stop; }
  bool is_padded() const { return before > 0 || after > 0; }
};

CutTile cut_tile(const NamedLinop& A, const Tile& tile, std::size_t i) {
  const CutRanges cuts(A);
  CutTile result{};
  for (std::size_t k = 0; k < A.ishape().size(); ++k) {
    const ND d = A.ishape()[k];
    if (!find_axis(A.ishape(), d, Axes{cuts.axes[i]})) continue;
    result.in = d;
    result.out = A.oshape()[k];
  }
  index_t first = cuts.starts[i], last = cuts.stops[i], origin = 0;
  if (const auto rows = range_of(tile, result.out)) {
    last = first + rows->stop;
    first += rows->start;
  }
  index_t from = first, to = last;
  if (const auto columns = range_of(tile, result.in)) {
    from = std::max(from, columns->start);
    to = std::min(to, columns->stop);
    origin = columns->start;
  }
  result.start = from - origin;
  result.stop = to - origin;
  result.before = from - first;
  result.after = last - to;
  return result;
}

DimMap sizes_among(const DimMap& sizes, const Dims& dims) {
  DimMap result;
  for (const auto& [d, n] : sizes) {
    if (dims.contains(d)) result.emplace(d, n);
  }
  return result;
}

// The operator on a tile. Zeros surround the cut-out where the output tile is larger.
NamedLinop restrict_split(const NamedLinop& A, const Tile& tile) {
  const std::size_t n = CutRanges(A).axes.size();
  DimMap sizes = cut_sizes(A.recorded_sizes(), tile);
  for (const auto& [d, range] : tile) sizes[d] = *range.stop - *range.start;
  std::vector<CutTile> cuts;
  for (std::size_t i = 0; i < n; ++i) {
    cuts.push_back(cut_tile(A, tile, i));
    sizes.emplace(cuts[i].out, *A.size(cuts[i].out));
  }
  std::vector<std::pair<ND, Slice>> taken, put;
  Dims names, padded;
  const Dims all = unite(A.ishape(), A.oshape());
  std::vector<ND> avoid(all.begin(), all.end());
  for (const CutTile& cut : cuts) {
    if (cut.is_empty()) return Zero(A.ishape(), A.oshape(), {.sizes = sizes});
    taken.emplace_back(cut.in, slice(cut.start, cut.stop));
    if (!cut.is_padded()) {
      names.push_back(cut.out);
      continue;
    }
    names.push_back(inner_dimension(cut.out, cut.stop - cut.start, 'w').fresh(avoid));
    avoid.push_back(names.back());
    padded.push_back(names.back());
    put.emplace_back(cut.out, slice(cut.before, cut.before + cut.stop - cut.start));
  }
  const NamedLinop restricted =
      Restrict(A.ishape(), taken, {.sizes = sizes_among(sizes, A.ishape()), .out = names});
  if (put.empty()) return restricted;
  return Chain(restricted,
               Embed(A.oshape(), put, {.sizes = sizes_among(sizes, A.oshape()), .out = padded}));
}

void check_restrict(const NamedLinop& A) {
  const CutRanges cuts(A);
  if (A.ishape().size() != A.oshape().size()) {
    throw ShapeError(who(A) + "got " + A.shape().str() + ", expected two shapes of one structure");
  }
  for (std::size_t i = 0; i < cuts.axes.size(); ++i) {
    const index_t start = cuts.starts[i], stop = cuts.stops[i];
    const std::string got = "slice: got " + std::to_string(start) + ":" + std::to_string(stop);
    if (start < 0) throw ValueError(who(A) + got + " is out of range, expected none negative");
    if (start >= stop) throw ValueError(who(A) + got + " is empty, expected start < stop");
  }
}

}  // namespace

const LinopType& linop_types::restrict_to() {
  return PALIMPSEST_LINOP_TYPE(.name = "Restrict",
                               .functions = {.fn = restrict_fn,
                                             .adj_fn = restrict_adj_fn,
                                             .split = restrict_split,
                                             .size = restrict_size},
                               .adj_normal_fn = unchanged, .normal = restriction_normal,
                               .check = check_restrict);
}

NamedLinop Restrict(Dims dims, std::vector<std::pair<ND, Slice>> cuts, RestrictOptions options) {
  Axes axes;
  Extents starts, stops;
  Dims taken = dims, out = dims;
  if (options.out && options.out->size() != cuts.size()) {
    throw ValueError("[Restrict] out: got names " + options.out->str() + ", expected " +
                     std::to_string(cuts.size()) + ", one per slice");
  }
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    const auto& [d, range] = cuts[i];
    if (range.step != 1) {
      throw ValueError("[Restrict] slice of dim '" + d.str() + "': step: got " +
                       std::to_string(range.step) + ", expected 1");
    }
    const auto size = options.sizes.find(d);
    if (!range.stop && size == options.sizes.end()) {
      throw ShapeError("[Restrict] size of dim '" + d.str() +
                       "' is unknown: a slice without end needs it. Try .sizes");
    }
    axes.push_back(axis_of(dims, d, "Restrict"));
    starts.push_back(range.start.value_or(0));
    stops.push_back(range.stop.value_or(size == options.sizes.end() ? 0 : size->second));
    if (size != options.sizes.end() && stops.back() > size->second) {
      throw ValueError("[Restrict] slice of dim '" + d.str() + "' is out of range: got " +
                       std::to_string(starts.back()) + ":" + std::to_string(stops.back()) +
                       ", expected at most " + std::to_string(size->second));
    }
    const ND name =
        options.out ? (*options.out)[i] : (d + 1).fresh(std::span(taken.data(), taken.size()));
    taken.push_back(name);
    out = out.replaced(d, Dims(name));
  }
  const NamedLinop made = make_linop(
      linop_types::restrict_to(), NamedShape(std::move(dims), std::move(out)), {},
      {{"axes", Attribute(axes)}, {"starts", Attribute(starts)}, {"stops", Attribute(stops)}});
  return options.sizes.empty() ? made : made.with_sizes(options.sizes);
}

NamedLinop Embed(Dims dims, std::vector<std::pair<ND, Slice>> cuts, RestrictOptions options) {
  return Restrict(std::move(dims), std::move(cuts), std::move(options)).H().named("Embed");
}

}  // namespace palimpsest
