// SPDX-License-Identifier: Apache-2.0
// Elements that index arrays name: Gather, UpdateAt, ScatterAdd, StridedAdjoint, and the terms of
// SparseProduct. Several values at one point are
// added in the order of the points, which is known for constant index arrays: their points are
// sorted by target.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "palimpsest/lower/kernel_writer.hpp"
#include "palimpsest/ops/index/gather_op.hpp"
#include "palimpsest/ops/products/sparse_op.hpp"
#include "palimpsest/ops/shape/strided_op.hpp"

namespace palimpsest::lower {
namespace {

// Values at points of an array: the axes of the array that are not indexed, in order, with the axes
// of the points among them.
struct Values {
  const ops::ArrayIndex& index;
  Extents extents;
  std::size_t n_points;                            // axes of the points
  std::vector<int> of_array = {}, of_points = {};  // per axis of the values: the other's, or -1

  Values(const ops::ArrayIndex& of, Extents values, std::size_t n)
      : index(of), extents(std::move(values)), n_points(n) {
    int axis = 0, point = 0;
    for (std::size_t k = 0; k < extents.size(); ++k) {
      const bool is_point = k >= index.position && k < index.position + n_points;
      of_points.push_back(is_point ? point++ : -1);
      while (!is_point && std::ranges::count(index.axes, axis) > 0) ++axis;
      of_array.push_back(is_point ? -1 : axis++);
    }
  }
  Extents points() const {
    const auto first = extents.begin() + static_cast<std::ptrdiff_t>(index.position);
    return {first, first + static_cast<std::ptrdiff_t>(n_points)};
  }
};

// A piece on the axes of the values: `places[k]` is the axis of the piece, or -1.
Piece on_axes(const Piece& piece, std::span<const index_t> extents, std::span<const int> places) {
  if (piece.is_number) return piece;
  Piece placed = piece;
  placed.layout.extents = Extents(extents.size(), 1);
  placed.layout.strides = Strides(extents.size());
  for (std::size_t k = 0; k < extents.size(); ++k) {
    if (places[k] < 0) continue;
    const auto axis = static_cast<std::size_t>(places[k]);
    placed.layout.extents[k] = piece.layout.extents[axis];
    placed.layout.strides[k] = piece.layout.strides[axis];
  }
  return placed;
}

// Writes the place of a point in `array`, as a text to be added; the first of its index arrays is
// piece `first` of the nest.
std::string place_of_point(KernelWriter& writer, Nest& nest, const ops::ArrayIndex& index,
                           const Piece& array, std::size_t first) {
  std::string further;
  for (std::size_t d = 0; d < index.axes.size(); ++d) {
    const auto k = static_cast<std::size_t>(index.axes[d]);
    const std::string n = writer.integer(array.layout.extents[k]);
    const std::string given = fmt::format("p{}", d), place = fmt::format("at{}", d);
    writer.line(fmt::format("const i64 {} = {};", given, nest.load(first + d, DType::int64)));
    std::string value = fmt::format("{} < 0 ? {} + {} : {}", given, given, n, given);
    if (index.wraps) {
      value = fmt::format("{}({}, {})", writer.numbers().function(ScalarOp::mod, DType::int64),
                          given, n);
    }
    writer.line(fmt::format("const i64 {} = {};", place, value));
    further += fmt::format(" + {} * {}", place, writer.integer(array.step(k)));
  }
  return further;
}

// The word that launches set where they find an index out of range.
Piece check_word(DeviceStep& step) {
  const Piece word = scratch_piece(step, DType::int32, {1});
  step.check_word = word.where.byte_offset;
  return word;
}

// Adds a launch that sets the word if a condition holds for an element of arrays of one shape:
// `condition` writes what it needs.
bool add_check(DeviceStep& step, std::string_view who, const Piece& word, std::vector<Piece> arrays,
               const std::function<std::string(KernelWriter&, Nest&)>& condition) {
  const Extents extents = arrays[0].layout.extents;
  if (element_count(extents) == 0) return true;
  arrays.push_back(on_axes(word, extents, std::vector<int>(extents.size(), -1)));
  KernelWriter writer("check", who);
  Nest nest(writer, extents, arrays);
  writer.open(fmt::format("if ({})", condition(writer, nest)));
  nest.store(arrays.size() - 1, "1", DType::int32);
  writer.close();
  const bool fits = nest.add_to(step);
  step.n_checking = step.launches.size();
  return fits;
}

// Adds the launches that look at index arrays of a device. The host looks at its own.
bool add_checks(DeviceStep& step, std::span<const Piece> inputs, std::size_t first,
                const ops::ArrayIndex& index, const Extents& array, std::string_view who) {
  const Piece word = check_word(step);
  for (std::size_t d = 0; d < index.axes.size(); ++d) {
    const index_t size = array[static_cast<std::size_t>(index.axes[d])];
    const Piece& given = inputs[first + d];
    if (given.where.kind != LaunchArgument::Kind::input) {
      step.checks.push_back({static_cast<int>(first + d), size, std::string(who)});
      continue;
    }
    const bool fits = add_check(step, who, word, {given}, [&](KernelWriter& writer, Nest& nest) {
      writer.line(fmt::format("const i64 p = {}, n = {};", nest.load(0, DType::int64),
                              writer.integer(size)));
      return "p < -n || p >= n";
    });
    if (!fits) return false;
  }
  return true;
}

std::optional<DeviceStep> lower_gather(const LowerRequest& request, const ops::Gather& op) {
  const ops::ArrayIndex& index = op.index();
  DeviceStep step;
  const std::vector<Piece> inputs = input_pieces(request, step);
  const Piece out = output_pieces(request)[0];
  const Piece& x = inputs[0];
  if (x.is_number) return std::nullopt;
  if (op.can_fail() && !add_checks(step, inputs, 1, index, x.layout.extents, "gather")) return {};
  const Values values(index, out.layout.extents, request.inputs[1].extents.size());
  if (element_count(values.extents) == 0) return step;
  std::vector<Piece> pieces{out, on_axes(x, values.extents, values.of_array)};
  for (std::size_t d = 1; d < inputs.size(); ++d) {
    pieces.push_back(on_axes(inputs[d], values.extents, values.of_points));
  }
  KernelWriter writer("gather", op.name());
  Nest nest(writer, values.extents, pieces);
  const std::string place = place_of_point(writer, nest, index, x, 2);
  nest.store(0, nest.load(1, x.layout.dtype, place), x.layout.dtype);
  if (!nest.add_to(step)) return std::nullopt;
  return step;
}

enum class Kind : std::uint8_t { set, add, add_to_zero };

// Points by their targets, which are `to` bytes from the start of the array: the values of target t
// are numbers first[t] to first[t + 1] of `from`, in bytes from the start of the values.
struct Groups {
  std::vector<index_t> to, first, from;
};

Groups grouped(std::span<const index_t> to, std::span<const index_t> from, Kind kind) {
  std::vector<std::size_t> order(to.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t p) { return to[p]; });
  Groups groups;
  for (const std::size_t p : order) {
    const bool is_new = groups.to.empty() || groups.to.back() != to[p];
    if (is_new) {
      groups.to.push_back(to[p]);
      groups.first.push_back(static_cast<index_t>(groups.from.size()));
    }
    if (!is_new && kind == Kind::set) groups.from.pop_back();  // the last value is set
    groups.from.push_back(from[p]);
  }
  groups.first.push_back(static_cast<index_t>(groups.from.size()));
  return groups;
}

// Nothing if an index array is no constant.
std::optional<Groups> groups_of(const LowerRequest& request, std::size_t first, Kind kind,
                                const Values& values, const Piece& array, const Piece& value) {
  const Extents points = values.points();
  std::vector<index_t> to(static_cast<std::size_t>(element_count(points)));
  for (std::size_t d = 0; d < values.index.axes.size(); ++d) {
    const Variable& given = request.node.input(first + d);
    if (!given.is_constant()) return std::nullopt;
    const auto axis = static_cast<std::size_t>(values.index.axes[d]);
    const std::vector<index_t> column = given.constant_value().expand(points).to_vector<index_t>();
    for (std::size_t p = 0; p < to.size(); ++p) {
      to[p] +=
          (column[p] < 0 ? column[p] + array.layout.extents[axis] : column[p]) * array.step(axis);
    }
  }
  std::vector<index_t> from(to.size());
  index_t inner = 1;
  for (std::size_t k = points.size(); k-- > 0; inner *= points[k]) {
    const std::size_t axis = values.index.position + k;
    const index_t step = value.is_number ? 0 : value.step(axis);
    for (std::size_t p = 0; p < from.size(); ++p) {
      from[p] += static_cast<index_t>(p) / inner % points[k] * step;
    }
  }
  return grouped(to, from, kind);
}

// Writes values to points of constant index arrays.
bool add_groups(DeviceStep& step, std::string_view what, Kind kind, Groups groups,
                const Values& values, const Piece& array, const Piece& value) {
  if (groups.to.empty()) return true;
  Extents extents;
  std::vector<int> of_array, of_values;
  for (std::size_t k = 0; k < values.extents.size(); ++k) {
    if (values.of_array[k] < 0) continue;
    extents.push_back(values.extents[k]);
    of_array.push_back(values.of_array[k]);
    of_values.push_back(static_cast<int>(k));
  }
  extents.push_back(static_cast<index_t>(groups.to.size()));
  of_array.push_back(-1);
  of_values.push_back(-1);
  std::vector<int> of_table(extents.size(), -1);
  const Piece from = on_axes(table_piece(step, std::move(groups.from)), extents, of_table);
  of_table.back() = 0;
  Piece first = table_piece(step, std::move(groups.first));
  first.layout.extents[0] = extents.back();
  const Piece to = table_piece(step, std::move(groups.to));
  const DType dtype = array.layout.dtype;
  KernelWriter writer("scatter", what);
  Nest nest(writer, extents,
            {on_axes(array, extents, of_array), on_axes(value, extents, of_values),
             on_axes(to, extents, of_table), on_axes(first, extents, of_table), from});
  writer.line(fmt::format("const i64 to = {};", nest.load(2, DType::int64)));
  writer.line(fmt::format("const i64 begin = {}, end = {};", nest.load(3, DType::int64),
                          nest.load(3, DType::int64, " + 8")));
  const std::string start = kind == Kind::add ? nest.load(0, dtype, " + to") : zero_of(dtype);
  writer.line(fmt::format("{} value = {};", type_of(dtype), start));
  writer.open("for (i64 i = begin; i < end; ++i)");
  writer.line(fmt::format("const i64 from = {};", nest.load(4, DType::int64, " + i * 8")));
  const std::string element = nest.load(1, dtype, " + from");
  writer.line(kind == Kind::set
                  ? fmt::format("value = {};", element)
                  : fmt::format("value = {}(value, {});",
                                writer.numbers().function(ScalarOp::add, dtype), element));
  writer.close();
  nest.store(0, "value", dtype, " + to");
  return nest.add_to(step);
}

// Writes the value of a single point.
bool add_point(DeviceStep& step, const ops::UpdateAt& op, const Values& values,
               std::span<const Piece> inputs, const Piece& array, const Piece& value) {
  if (element_count(values.extents) == 0) return true;
  std::vector<Piece> pieces{on_axes(array, values.extents, values.of_array), value};
  for (std::size_t d = 2; d < inputs.size(); ++d) {
    pieces.push_back(on_axes(inputs[d], values.extents, values.of_points));
  }
  const DType dtype = array.layout.dtype;
  KernelWriter writer("point", op.name());
  Nest nest(writer, values.extents, pieces);
  const std::string place = place_of_point(writer, nest, op.index(), array, 2);
  std::string result = nest.load(1, dtype);
  if (op.kind() == ops::UpdateAt::Kind::increase) {
    result = fmt::format("{}({}, {})", writer.numbers().function(ScalarOp::add, dtype),
                         nest.load(0, dtype, place), result);
  }
  nest.store(0, result, dtype, place);
  return nest.add_to(step);
}

Extents common_points(const LowerRequest& request, std::size_t first) {
  Extents points = request.inputs[first].extents;
  for (std::size_t i = first; i < request.inputs.size(); ++i) {
    for (std::size_t k = 0; k < points.size(); ++k) {
      if (request.inputs[i].extents[k] != 1) points[k] = request.inputs[i].extents[k];
    }
  }
  return points;
}

std::optional<DeviceStep> lower_update_at(const LowerRequest& request, const ops::UpdateAt& op) {
  const Extents points = common_points(request, 2);
  const bool is_point = element_count(points) == 1;
  if (!op.index().constant && !is_point) return std::nullopt;  // points may be equal
  DeviceStep step;
  const std::vector<Piece> inputs =
      input_pieces(request, step, is_point ? request.inputs.size() : 2);
  const Piece out = output_pieces(request)[0];
  Extents extents;
  std::size_t n_kept = 0;
  for (std::size_t k = 0; k <= out.layout.extents.size(); ++k) {
    if (k < out.layout.extents.size() &&
        std::ranges::count(op.index().axes, static_cast<index_t>(k)) > 0) {
      continue;
    }
    if (n_kept++ == op.index().position) {
      for (const index_t extent : points) extents.push_back(extent);
    }
    if (k < out.layout.extents.size()) extents.push_back(out.layout.extents[k]);
  }
  const Values values(op.index(), std::move(extents), points.size());
  if (op.can_fail() && !add_checks(step, inputs, 2, op.index(), out.layout.extents, op.title())) {
    return std::nullopt;
  }
  if (!op.in_place() && !add_copy(step, op.name(), inputs[0], out)) return std::nullopt;
  Piece value = inputs[1];
  if (op.is_buffered() && !value.is_number) {
    const Piece copy = scratch_piece(step, out.layout.dtype, value.layout.extents);
    if (!add_copy(step, op.name(), value, copy)) return std::nullopt;
    value = copy;
  }
  if (is_point) {
    if (!add_point(step, op, values, inputs, out, value)) return std::nullopt;
    return step;
  }
  const Kind kind = op.kind() == ops::UpdateAt::Kind::set ? Kind::set : Kind::add;
  auto groups = groups_of(request, 2, kind, values, out, value);
  if (!groups || !add_groups(step, op.name(), kind, std::move(*groups), values, out, value)) {
    return std::nullopt;
  }
  return step;
}

std::optional<DeviceStep> lower_scatter_add(const LowerRequest& request,
                                            const ops::ScatterAdd& op) {
  if (op.can_fail()) return std::nullopt;  // its index arrays are no constants
  DeviceStep step;
  const Piece value = input_pieces(request, step, 1)[0], out = output_pieces(request)[0];
  const std::size_t rank = out.layout.extents.size(), n = op.sizes().size();
  ops::ArrayIndex index{{}, rank - n, true};
  for (std::size_t d = rank - n; d < rank; ++d) index.axes.push_back(static_cast<index_t>(d));
  const Values values(index, request.inputs[0].extents, request.inputs[1].extents.size());
  auto groups = groups_of(request, 1, Kind::add_to_zero, values, out, value);
  if (!groups) return std::nullopt;
  if (!add_copy(step, op.name(), literal(out.layout.dtype, 0), out)) return std::nullopt;
  if (!add_groups(step, op.name(), Kind::add_to_zero, std::move(*groups), values, out, value)) {
    return std::nullopt;
  }
  return step;
}

// The elements of a view, whose strides are in elements, as values at points of one axis.
std::optional<DeviceStep> lower_strided_adjoint(const LowerRequest& request,
                                                const ops::StridedAdjoint& op) {
  constexpr index_t kMostElements = index_t{1} << 22;  // of tables
  DeviceStep step;
  const Piece w = input_pieces(request, step)[0], out = output_pieces(request)[0];
  const index_t n = element_count(w.layout.extents);
  if (w.is_number || w.layout.dtype != out.layout.dtype || n > kMostElements) return std::nullopt;
  std::vector<index_t> to(static_cast<std::size_t>(n), op.offset() * out.step(0)), from(to.size());
  index_t inner = 1;
  for (std::size_t k = w.layout.extents.size(); k-- > 0; inner *= w.layout.extents[k]) {
    for (std::size_t p = 0; p < to.size(); ++p) {
      const index_t i = static_cast<index_t>(p) / inner % w.layout.extents[k];
      to[p] += i * op.strides()[k] * out.step(0);
      from[p] += i * w.step(k);
    }
  }
  if (!add_copy(step, op.name(), literal(out.layout.dtype, 0), out)) return std::nullopt;
  const ops::ArrayIndex index{{0}, 0, true};
  const Values values(index, {n}, 1);
  if (!add_groups(step, op.name(), Kind::add_to_zero, grouped(to, from, Kind::add_to_zero), values,
                  out, w)) {
    return std::nullopt;
  }
  return step;
}

// Looks for columns and starts of rows out of range.
bool add_sparse_checks(DeviceStep& step, std::string_view who, std::span<const Piece> inputs) {
  const Piece word = check_word(step);
  const index_t columns = inputs[3].layout.extents.back(), n = inputs[0].layout.extents[0];
  const auto expect_column = [&](KernelWriter& writer, Nest& nest) {
    writer.line(fmt::format("const i64 c = {};", nest.load(0, DType::int64)));
    return fmt::format("c < 0 || c >= {}", writer.integer(columns));
  };
  const auto expect_range = [&](KernelWriter& writer, Nest& nest) {
    writer.line(fmt::format("const i64 k = {}, last = {};", nest.load(0, DType::int64),
                            nest.load(1, DType::int64)));
    return fmt::format("k < 0 || k > last || last > {}", writer.integer(n));
  };
  Layout starts = inputs[2].layout;
  --starts.extents[0];
  const Piece first = part_of(inputs[2], starts);
  starts.byte_offset += inputs[2].step(0);
  return add_check(step, who, word, {inputs[1]}, expect_column) &&
         add_check(step, who, word, {first, part_of(inputs[2], starts)}, expect_range);
}

// An item has a row. Even and odd terms have separate sums, as on the host.
std::optional<DeviceStep> lower_sparse(const LowerRequest& request, const ops::SparseProduct& op) {
  if (op.is_adjoint()) return std::nullopt;  // rows add to columns in any order
  DeviceStep step;
  const std::vector<Piece> inputs = input_pieces(request, step);
  const Piece out = output_pieces(request)[0];
  const Piece &v = inputs[0], &x = inputs[3];
  const std::size_t last = out.layout.extents.size() - 1;
  if (std::ranges::any_of(inputs, &Piece::is_number) || x.layout.extents[last] == 0) return {};
  if (!add_sparse_checks(step, op.name(), inputs)) return std::nullopt;
  if (element_count(out.layout.extents) == 0) return step;
  Piece rows = x, starts = inputs[2];
  rows.layout.extents = out.layout.extents;
  rows.layout.strides[last] = 0;
  --starts.layout.extents[0];
  const auto whole = [](const Piece& piece) {
    return part_of(piece, {piece.layout.dtype, {}, {}, 0});
  };
  KernelWriter writer("sparse", op.name());
  Nest nest(writer, out.layout.extents,
            {out, rows, with_rank(starts, last + 1), with_rank(whole(v), last + 1),
             with_rank(whole(inputs[1]), last + 1)});
  const DType dtype = out.layout.dtype;
  const std::string to_start = writer.integer(inputs[2].step(0)),
                    to_value = writer.integer(v.step(0));
  const std::string to_column = writer.integer(inputs[1].step(0)),
                    to_x = writer.integer(x.step(last));
  const std::string add = writer.numbers().function(ScalarOp::add, dtype);
  writer.line(fmt::format("i64 k = {};", nest.load(2, DType::int64)));
  writer.line(fmt::format("const i64 last = {};", nest.load(2, DType::int64, " + " + to_start)));
  writer.line(
      fmt::format("{} even = {}, odd = {};", type_of(dtype), zero_of(dtype), zero_of(dtype)));
  const auto add_term = [&](std::string_view sum, std::string_view k) {
    writer.line(fmt::format("const i64 c_{} = {};", sum,
                            nest.load(4, DType::int64, fmt::format(" + {} * {}", k, to_column))));
    const std::string value = nest.load(3, v.layout.dtype, fmt::format(" + {} * {}", k, to_value));
    const std::string element = nest.load(1, dtype, fmt::format(" + c_{} * {}", sum, to_x));
    writer.line(fmt::format("const {} x_{} = {};", type_of(dtype), sum, element));
    std::string term =
        fmt::format("{}_({} * x_{}.x, {} * x_{}.y)", type_of(dtype), value, sum, value, sum);
    if (v.layout.dtype == dtype) {
      term =
          fmt::format("{}({}, x_{})", writer.numbers().function(ScalarOp::mul, dtype), value, sum);
    }
    writer.line(fmt::format("{} = {}({}, {});", sum, add, sum, term));
  };
  writer.open("for (; k + 1 < last; k += 2)");
  add_term("even", "k");
  add_term("odd", "(k + 1)");
  writer.close();
  writer.open("if (k < last)");
  add_term("even", "k");
  writer.close();
  nest.store(0, add + "(even, odd)", dtype);
  if (!nest.add_to(step)) return std::nullopt;
  return step;
}

}  // namespace

std::optional<DeviceStep> lower_indexed(const LowerRequest& request) {
  const Op& op = request.node.op();
  if (const auto* gather = dynamic_cast<const ops::Gather*>(&op)) {
    return lower_gather(request, *gather);
  }
  if (const auto* update = dynamic_cast<const ops::UpdateAt*>(&op)) {
    return lower_update_at(request, *update);
  }
  if (const auto* scatter = dynamic_cast<const ops::ScatterAdd*>(&op)) {
    return lower_scatter_add(request, *scatter);
  }
  if (const auto* strided = dynamic_cast<const ops::StridedAdjoint*>(&op)) {
    return lower_strided_adjoint(request, *strided);
  }
  if (const auto* sparse = dynamic_cast<const ops::SparseProduct*>(&op)) {
    return lower_sparse(request, *sparse);
  }
  return std::nullopt;
}

}  // namespace palimpsest::lower
