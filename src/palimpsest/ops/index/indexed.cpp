// SPDX-License-Identifier: Apache-2.0
// Indices that mix basic entries and arrays.

#include "palimpsest/ops/index/gather_op.hpp"
#include "palimpsest/ops/index/index_op.hpp"
#include "palimpsest/ops/loop/run_time_extent_op.hpp"
#include "palimpsest/ops/prelude.hpp"

namespace palimpsest {
namespace ops {
namespace {

// An index array per axis of where an array of bools is true that indexes x from this axis on.
std::vector<Variable> where_true(const Variable& mask, const Variable& x, std::size_t axis) {
  if (!mask.is_constant()) {
    const Variable inputs[] = {mask, x};
    return std::make_shared<Nonzero>(axis)->make_node(inputs).outputs();
  }
  const Tensor& value = mask.constant_value();
  const std::vector<bool> flags = value.to_vector<bool>();
  std::vector<std::vector<index_t>> columns(value.rank());
  for (std::size_t p = 0; p < flags.size(); ++p) {
    if (!flags[p]) continue;
    auto rest = static_cast<index_t>(p);
    for (std::size_t k = value.rank(); k-- > 0;) {
      columns[k].push_back(rest % value.shape()[k]);
      rest /= value.shape()[k];
    }
  }
  std::vector<Variable> result;
  for (const auto& column : columns) {
    result.push_back(constant(Tensor::from(column), {}, mask.type().device));
  }
  return result;
}

// The number of axes of x that an entry indexes; 0 for `...`, which takes the rest.
std::size_t axes_of(const IndexEntry& entry) {
  if (entry.is_array()) return is_bool(entry.array().dtype()) ? entry.array().rank() : 1;
  return std::holds_alternative<NewAxis>(entry.basic()) ||
                 std::holds_alternative<EllipsisIndex>(entry.basic())
             ? 0
             : 1;
}

// The entries as a basic index with everything where arrays are, and the arrays.
struct Parts {
  std::vector<Index> basic;
  std::vector<Variable> arrays;
  ArrayIndex where;  // in the result of the basic index
};

void check_mask(const Variable& mask, const Variable& x, std::size_t axis) {
  for (std::size_t k = 0; k < mask.rank(); ++k) {
    const index_t n = x.type().shape[axis + k], m = mask.type().shape[k];
    if (n != kUnknown && m != kUnknown && n != m) {
      throw ShapeError("[index] axis " + std::to_string(axis + k) + ": got a mask " +
                       mask.type().str() + " for " + x.type().str());
    }
  }
}

Parts parts_of(const Variable& x, const std::vector<IndexEntry>& entries) {
  std::size_t n_named = 0;
  for (const IndexEntry& entry : entries) n_named += axes_of(entry);
  if (n_named > x.rank()) {
    throw ShapeError("[index] too many entries: got " + std::to_string(n_named) +
                     ", expected at most " + std::to_string(x.rank()) + " for " + x.type().str());
  }
  Parts parts;
  std::size_t axis = 0, out_axis = 0, n_kept = 0;  // of x, of the basic part, not indexed by arrays
  std::vector<std::size_t> runs;                   // where a run of arrays begins, in kept axes
  bool in_run = false;
  const auto keep = [&](const Index& entry, std::size_t n_in, std::size_t n_out) {
    parts.basic.push_back(entry);
    axis += n_in;
    out_axis += n_out;
    n_kept += n_out;
    in_run = in_run && n_in == 0 && n_out == 0;
  };
  const auto add_array = [&](const Variable& array) {
    if (!in_run) runs.push_back(n_kept);
    in_run = true;
    parts.basic.emplace_back(all);
    parts.where.axes.push_back(static_cast<index_t>(out_axis++));
    parts.arrays.push_back(array);
    ++axis;
  };
  for (const IndexEntry& entry : entries) {
    if (entry.is_array()) {
      if (!is_bool(entry.array().dtype())) {
        add_array(entry.array());
        continue;
      }
      check_mask(entry.array(), x, axis);
      for (const Variable& array : where_true(entry.array(), x, axis)) add_array(array);
    } else if (const auto* i = std::get_if<index_t>(&entry.basic())) {
      add_array(constant(Tensor::scalar<index_t>(*i, x.type().device)));
    } else if (std::holds_alternative<EllipsisIndex>(entry.basic())) {
      const std::size_t n = x.rank() - n_named;
      for (std::size_t k = 0; k < n; ++k) keep(all, 1, 1);
      if (n == 0) in_run = false;
    } else {
      keep(entry.basic(), std::holds_alternative<NewAxis>(entry.basic()) ? 0 : 1, 1);
    }
  }
  parts.where.position = runs.size() == 1 ? runs[0] : 0;
  return parts;
}

bool has_array(const std::vector<IndexEntry>& entries) {
  return std::any_of(entries.begin(), entries.end(),
                     [](const IndexEntry& entry) { return entry.is_array(); });
}

Variable subtensor(const Variable& x, std::vector<Index> entries) {
  return std::make_shared<Subtensor>(BasicIndex(std::move(entries), x.rank()))
      ->make_node({&x, 1})
      .output(0);
}

// The elements that a value was read from, and the array that they are elements of.
Variable updated(const Variable& y, const Operand& operand, bool increase, std::string_view who) {
  const Apply owner = y.owner();
  const Variable value = resolved(std::vector<Operand>{y, operand})[1];
  if (increase && is_inexact(value.dtype()) && !is_inexact(y.dtype())) {
    throw DTypeError("[" + std::string(who) + "] value: got " + value.str() + ", expected " +
                     std::string(name_of(y.dtype())) + ". Try astype");
  }
  const auto write = [&](const Variable& x, const std::vector<Index>& where, const Variable& v) {
    return increase ? inc_subtensor(x, where, v) : set_subtensor(x, where, v);
  };
  if (owner.defined()) {
    if (const auto* basic = dynamic_cast<const Subtensor*>(&owner.op())) {
      return write(owner.input(0), basic->index().entries(), value);
    }
    if (const auto* points = dynamic_cast<const Gather*>(&owner.op())) {
      const Variable& part = owner.input(0);
      const auto kind = increase ? UpdateAt::Kind::increase : UpdateAt::Kind::set;
      const Variable new_part =
          update_at(kind, part, points->index(), owner.inputs().subspan(1), value);
      if (!y.node()->is_indexed_twice) return new_part;
      const auto& basic = dynamic_cast<const Subtensor&>(part.owner().op());
      return set_subtensor(part.owner().input(0), basic.index().entries(), new_part);
    }
  }
  throw ValueError("[" + std::string(who) + "] " + y.str() +
                   ": got a value that is not indexed, expected x(...)");
}

}  // namespace

Variable indexed(const Variable& x, const std::vector<IndexEntry>& entries) {
  if (!has_array(entries)) {
    std::vector<Index> basic;
    for (const IndexEntry& entry : entries) basic.push_back(entry.basic());
    return subtensor(x, std::move(basic));
  }
  Parts parts = parts_of(x, entries);
  const BasicIndex basic(parts.basic, x.rank());
  const Variable part = basic.is_whole() ? x : subtensor(x, parts.basic);
  std::vector<Variable> inputs = as_index_arrays(parts.arrays, "index");
  parts.where.constant = are_constant(inputs);
  inputs.insert(inputs.begin(), part);
  const Variable result =
      std::make_shared<Gather>(std::move(parts.where))->make_node(inputs).output(0);
  result.node()->is_indexed_twice = !basic.is_whole();
  return result;
}

Variable set_subtensor(const Variable& y, const Operand& value) {
  return updated(y, value, false, "set_subtensor");
}
Variable inc_subtensor(const Variable& y, const Operand& value) {
  return updated(y, value, true, "inc_subtensor");
}

}  // namespace ops

Variable Variable::index_with(const std::vector<IndexEntry>& index) const {
  return ops::indexed(*this, index);
}
Variable Variable::operator[](index_t i) const { return ops::indexed(*this, {i}); }
Variable Variable::operator[](const Variable& index) const {
  return ops::indexed(*this, {IndexEntry(index)});
}
Variable Variable::set(const Operand& value) const { return ops::set_subtensor(*this, value); }
Variable Variable::inc(const Operand& value) const { return ops::inc_subtensor(*this, value); }

}  // namespace palimpsest
