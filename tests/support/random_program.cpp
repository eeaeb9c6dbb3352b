// SPDX-License-Identifier: Apache-2.0
#include "support/random_program.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "palimpsest/ops/ops.hpp"

namespace palimpsest::testing {
namespace {

using Positions = std::vector<std::size_t>;

constexpr double kBound = 16;

std::size_t count(const Extents& shape) { return static_cast<std::size_t>(element_count(shape)); }
std::size_t at(index_t i) { return static_cast<std::size_t>(i); }

std::size_t inner_count(const Extents& shape, std::size_t axis) {
  return count(Extents(shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, shape.end()));
}

// Positions of the elements of an array of this shape: element i along the axis is element f(i) of
// a source with n elements along it, or of the next source if f(i) >= n.
template <class F>
Positions along(const Extents& shape, std::size_t axis, index_t n, F f) {
  const std::size_t inner = inner_count(shape, axis), own = at(shape[axis]);
  Positions result(count(shape));
  for (std::size_t p = 0; p < result.size(); ++p) {
    const std::size_t from = at(f(static_cast<index_t>(p / inner % own)));
    result[p] = from / at(n) * (result.size() / own * at(n)) +
                (p / (inner * own) * at(n) + from % at(n)) * inner + p % inner;
  }
  return result;
}

// An index with one slice.
std::vector<Index> on_axis(std::size_t rank, std::size_t axis, const Index& range) {
  std::vector<Index> result(rank, Index(all));
  result[axis] = range;
  return result;
}

// Functions of numbers, and the same of variables.
double maximum(double x, double y) { return std::max(x, y); }
double tanh(double x) { return std::tanh(x); }
double choose(double x, double y) { return x > y ? x : -y; }
double bound(double x) { return std::min(std::max(std::nearbyint(x), -kBound), kBound); }
Variable maximum(const Variable& x, const Variable& y) { return ops::maximum(x, y); }
Variable tanh(const Variable& x) { return ops::tanh(x); }
Variable choose(const Variable& x, const Variable& y) { return ops::where(ops::gt(x, y), x, -y); }
Variable bound(const Variable& v) { return ops::clip(ops::round(v), -kBound, kBound); }

}  // namespace

RandomProgram::RandomProgram(std::uint32_t seed, ProgramOptions options)
    : random_(seed),
      is_rounded_(options.is_rounded),
      is_known_(chance(70)),
      device_(options.device) {
  make_roots();
  for (std::size_t i = 0, n = pick(12); i < n; ++i) step();
  for (std::size_t i = 0, n = pick(4); i < n; ++i) {
    std::size_t value = chance(50) ? any() : values_.size() - 1;
    if (chance(options.parts)) value = view(value);
    output_values_.push_back(value);
    outputs_.push_back(Out(values_[value].v, {.borrow = chance(35)}));
  }
  choose_results();
  if (chance(30)) choose_given();
  options_.on_unused_input = Reaction::ignore;
}

Function RandomProgram::compiled(const Mode& mode) const {
  FunctionOptions options = options_;
  options.mode = mode;
  return function(inputs_, outputs_, options);
}

Tensor RandomProgram::fresh(const Extents& shape) {
  if (is_rounded_) return Tensor::random_normal(shape, DType::float64, {random_(), 0}, device_);
  std::vector<double> data(count(shape));
  for (double& x : data) x = (static_cast<double>(pick(65)) - 32) / 8;
  return Tensor::from(data, shape, device_);
}

void RandomProgram::make_roots() {
  constexpr index_t kSizes[] = {2, 4, 5, 7, 17};  // products with and without a library
  const auto shape = [&]() -> Extents {
    if (is_rounded_) return Extents(2, kSizes[pick(5)]);
    const auto n = static_cast<index_t>(1 + pick(5)), m = static_cast<index_t>(1 + pick(3));
    return chance(50) ? Extents{n} : Extents{n, m};
  };
  const Extents common = shape();
  const auto next_shape = [&] { return is_rounded_ || chance(75) ? common : shape(); };
  const auto type = [&](const Extents& extents) {
    TensorType result{DType::float64, extents, device_};
    for (index_t& n : result.shape) n = is_known_ || n == 1 ? n : kUnknown;
    return result;
  };
  for (std::size_t i = 0, n = 1 + pick(3); i < n; ++i) {
    const Extents extents = next_shape();
    InOptions options;
    if (chance(50)) options.borrow = true;
    if (chance(30)) options.is_mutable = options.borrow.has_value() && chance(50);
    if (chance(15)) options.value = fresh(extents);
    is_lent_.push_back(options.is_mutable.value_or(options.borrow.value_or(false)));
    const Variable v = make_input(type(extents), "x" + std::to_string(i));
    inputs_.push_back(In(v, options));
    add(v, extents, {});
  }
  for (std::size_t i = 0, n = pick(4); i < n; ++i) {
    const Extents extents = next_shape();
    const Tensor value = fresh(extents);
    if (chance(50)) lent_.push_back(value);
    shared_.push_back(
        SharedVariable(type(extents), value,
                       {.name = "s" + std::to_string(i), .borrow = chance(40), .shape = {}}));
    add(shared_.back().var(), extents, {});
  }
  if (!chance(30)) return;
  const Extents extents = next_shape();
  const Tensor c = fresh(extents);
  add(constant(c), extents,
      [value = Plain{extents, c.to_vector<double>()}](const Values&) { return value; });
}

void RandomProgram::choose_results() {
  for (std::size_t k = 0; k < shared_.size(); ++k) {
    if (!chance(70)) continue;
    const std::size_t state = inputs_.size() + k;
    std::size_t value = late(state, values_.size(), state);
    if (is_rounded_) value = map(value, [](const auto& x) { return x * 0.125; });
    update_values_.emplace_back(k, value);
    options_.updates.emplace_back(shared_[k], values_[value].v);
  }
}

// A computed value or shared variable is replaced by one that does not depend on it.
void RandomProgram::choose_given() {
  const std::size_t old = pick(values_.size()), with = late(old, old, old);
  const Variable& v = values_[old].v;
  // An op that does nothing returns its input: then two values are one variable.
  const auto is_same = [&](const Computed& value) { return value.v == v; };
  const bool is_alone = std::count_if(values_.begin(), values_.end(), is_same) == 1;
  if (old < inputs_.size() || with == old || !is_alone || v.is_constant()) return;
  given_ = {old, with};
  options_.givens.emplace_back(v, values_[with].v);
}

std::vector<Plain> RandomProgram::run(const std::vector<Plain>& inputs,
                                      std::vector<Plain>& states) const {
  Values values = inputs;
  values.insert(values.end(), states.begin(), states.end());
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].run) values.push_back(values_[i].run(values));
    if (given_ && given_->first == i) values[i] = values[given_->second];
  }
  std::vector<Plain> results;
  for (std::size_t i : output_values_) results.push_back(values[i]);
  for (const auto& [k, i] : update_values_) states[k] = values[i];
  return results;
}

std::string RandomProgram::describe() const {
  std::string text = "lent:";
  std::vector<Variable> roots, results;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    roots.push_back(inputs_[i].variable);
    if (is_lent_[i]) text += " " + roots.back().str();
  }
  text += "; borrowed results:";
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    results.push_back(outputs_[i].variable);
    if (outputs_[i].options.borrow) text += " " + std::to_string(i);
  }
  text += "; updates of:";
  for (const SharedVariable& s : shared_) roots.push_back(s.var());
  for (const auto& [target, value] : options_.updates) {
    results.push_back(value.variable());
    text += " " + target.str();
  }
  for (const auto& [old, with] : options_.givens) text += "; given for: " + old.str();
  return text + "\n  " + FunctionGraph(roots, results).str();
}

// -- values --------------------------------------------------------------------------------------

std::size_t RandomProgram::add(Variable v, Extents shape, Loops run) {
  values_.push_back({std::move(v), std::move(shape), std::move(run)});
  return values_.size() - 1;
}

std::size_t RandomProgram::like(std::size_t a) {
  for (int i = 0; i < 6; ++i) {
    const std::size_t other = any();
    if (values_[other].shape == values_[a].shape) return other;
  }
  return a;
}

std::size_t RandomProgram::late(std::size_t place, std::size_t end, std::size_t otherwise) {
  for (std::size_t i = end; i-- > 0;) {
    const bool fits = values_[place].v.type().is_super(values_[i].v.type());
    if (values_[i].shape == values_[place].shape && fits && chance(70)) return i;
  }
  return otherwise;
}

template <class F>
std::size_t RandomProgram::map(std::size_t a, F f) {
  return add(f(values_[a].v), values_[a].shape, [a, f](const Values& values) {
    Plain result = values[a];
    for (double& x : result.data) x = f(x);
    return result;
  });
}

template <class F>
std::size_t RandomProgram::zip(std::size_t a, std::size_t b, F f) {
  return add(f(values_[a].v, values_[b].v), values_[a].shape, [a, b, f](const Values& values) {
    Plain result = values[a];
    for (std::size_t p = 0; p < result.data.size(); ++p) {
      result.data[p] = f(result.data[p], values[b].data[p]);
    }
    return result;
  });
}

std::size_t RandomProgram::gather(const std::vector<std::size_t>& from, Variable v, Extents shape,
                                  Positions positions) {
  return add(std::move(v), shape, [from, shape, positions](const Values& values) {
    std::vector<double> all_data;
    for (std::size_t a : from) {
      all_data.insert(all_data.end(), values[a].data.begin(), values[a].data.end());
    }
    Plain result{shape, {}};
    for (std::size_t p : positions) result.data.push_back(all_data[p]);
    return result;
  });
}

std::size_t RandomProgram::overwrite(std::size_t a, std::size_t b, Variable v, Positions positions,
                                     bool increase) {
  return add(std::move(v), values_[a].shape, [a, b, positions, increase](const Values& values) {
    Plain result = values[a];
    for (std::size_t k = 0; k < positions.size(); ++k) {
      double& x = result.data[positions[k]];
      x = (increase ? x : 0.0) + values[b].data[k];
    }
    return result;
  });
}

std::size_t RandomProgram::bounded(std::size_t a) {
  if (is_rounded_) return map(a, [](const auto& x) { return x * 0.5; });
  return map(a, [](const auto& x) { return bound(x); });
}

// -- steps ---------------------------------------------------------------------------------------

std::size_t RandomProgram::step() {
  const std::size_t a = any(), kind = pick(24);
  return kind < 7    ? arithmetic(a)
         : kind < 12 ? view(a)
         : kind < 16 ? updated(a)
         : kind < 17 ? points(a)
         : kind < 19 ? sums(a)
         : kind < 22 ? product(a)
         : kind < 23 ? choice(a)
                     : loop(a);
}

std::size_t RandomProgram::arithmetic(std::size_t a) {
  const std::size_t b = like(a);
  switch (pick(12)) {
    case 0:
      return zip(a, b, [](const auto& x, const auto& y) { return x + y; });
    case 1:
      return zip(a, b, [](const auto& x, const auto& y) { return x - y; });
    case 2:
      return zip(bounded(a), bounded(b), [](const auto& x, const auto& y) { return x * y; });
    case 3:
      return map(a, [](const auto& x) { return -x; });
    case 4:
      return map(a, [](const auto& x) { return x * 0.5; });
    case 5:
      return map(a, [](const auto& x) { return x + 1.0; });
    case 6:
      return zip(a, b, [](const auto& x, const auto& y) { return maximum(x, y); });
    case 7:
      return zip(a, b, [](const auto& x, const auto& y) { return choose(x, y); });
    case 8:
      return zip(a, b, [](const auto& x, const auto& y) { return x - y * 0.5; });
    case 9:
      return map(a, [](const auto& x) { return -(-x); });
    case 10:
      return zip(a, b, [](const auto& x, const auto& y) { return maximum(x, y) - 0.25; });
    default:
      if (is_rounded_) return map(a, [](const auto& x) { return tanh(x); });
      return map(a, [](const auto& x) { return 1.0 - x; });
  }
}

std::size_t RandomProgram::view(std::size_t a) {
  const Variable v = values_[a].v;
  const Extents shape = values_[a].shape;
  const std::size_t axis = pick(shape.size()), rank = shape.size();
  const index_t n = shape[axis], total = static_cast<index_t>(count(shape));
  Extents part = shape;
  const auto cut = [&](const Variable& x, const Index& range) {
    return ops::index(x, on_axis(rank, axis, range));
  };
  Positions same(count(shape));
  std::iota(same.begin(), same.end(), std::size_t{0});
  switch (pick(10)) {
    case 0:
      return gather({a}, cut(v, slice({}, {}, -1)), shape,
                    along(shape, axis, n, [n](index_t i) { return n - 1 - i; }));
    case 1:
      part[axis] = (n + 1) / 2;
      return gather({a}, cut(v, slice({}, {}, 2)), part,
                    along(part, axis, n, [](index_t i) { return 2 * i; }));
    case 2: {
      const auto first = static_cast<index_t>(pick(at(n)));
      part[axis] = n - first;
      return gather({a}, cut(v, slice(first, {})), part,
                    along(part, axis, n, [first](index_t i) { return first + i; }));
    }
    case 3:
    case 4: {  // transposed, perhaps through a vector
      if (rank == 1) return gather({a}, ops::reshape(v, {1, total}), {1, total}, same);
      Positions positions;
      for (std::size_t p = 0; p < same.size(); ++p) {
        positions.push_back(p % at(shape[0]) * at(shape[1]) + p / at(shape[0]));
      }
      if (chance(50)) return gather({a}, v.T(), {shape[1], shape[0]}, positions);
      const Variable flat = ops::reshape(v.T(), {total});
      if (chance(30)) return gather({a}, flat, {total}, positions);
      return gather({a}, ops::reshape(flat, shape), shape, positions);
    }
    case 5:
      if (rank == 2) return gather({a}, ops::reshape(v, {total}), {total}, same);
      return gather({a}, ops::reshape(ops::reshape(v, {total, 1}), {total}), shape, same);
    case 6: {  // the first element along the axis everywhere
      Extents row_shape = shape;
      row_shape[axis] = 1;
      const Variable row = ops::specify_shape(cut(v, slice(0, 1)), row_shape);
      return gather({a}, ops::broadcast_to(row, shape), shape,
                    along(shape, axis, n, [](index_t) { return 0; }));
    }
    case 7:
      return gather({a}, ops::roll(v, 1, static_cast<index_t>(axis)), shape,
                    along(shape, axis, n, [n](index_t i) { return (i + n - 1) % n; }));
    case 8: {  // the end of one value, then the start of another one
      const std::size_t b = like(a);
      const auto first = static_cast<index_t>(pick(at(n) + 1));
      const Variable joined =
          ops::join(static_cast<index_t>(axis),
                    {cut(v, slice(first, {})), cut(values_[b].v, slice(0, first))});
      return gather({a, b}, is_known_ ? joined : ops::specify_shape(joined, shape), shape,
                    along(shape, axis, n, [first](index_t i) { return first + i; }));
    }
    default: {  // one of two values in a stack
      const std::size_t b = like(a);
      const auto which = static_cast<index_t>(pick(2));
      const Variable stack = ops::stack({v, values_[b].v}, static_cast<index_t>(axis));
      return gather({which == 0 ? a : b}, ops::index(stack, on_axis(rank + 1, axis, which)), shape,
                    same);
    }
  }
}

// Sets or increments a box of a by an equal box, often of a itself.
std::size_t RandomProgram::updated(std::size_t a) {
  const Extents shape = values_[a].shape;
  const std::size_t axis = pick(shape.size()), rank = shape.size();
  const index_t n = shape[axis], length = static_cast<index_t>(1 + pick(at(n)));
  const auto start = [&] { return static_cast<index_t>(pick(at(n - length) + 1)); };
  const index_t target = start(), source = start(), last = target + length - 1;
  Extents part = shape;
  part[axis] = length;
  const std::size_t from = like(a);
  std::size_t value = gather(
      {from}, ops::index(values_[from].v, on_axis(rank, axis, slice(source, source + length))),
      part, along(part, axis, n, [source](index_t i) { return source + i; }));
  if (chance(50)) value = map(value, [](const auto& x) { return x * 2.0; });
  const bool increase = chance(50), is_reversed = chance(30);
  const Index place = !is_reversed ? Index(slice(target, target + length))
                      : target > 0 ? Index(slice(last, target - 1, -1))
                                   : Index(slice(last, {}, -1));
  const auto index = on_axis(rank, axis, place);
  const Variable v = increase ? ops::inc_subtensor(values_[a].v, index, values_[value].v)
                              : ops::set_subtensor(values_[a].v, index, values_[value].v);
  return overwrite(
      a, value, v,
      along(part, axis, n, [=](index_t i) { return is_reversed ? last - i : target + i; }),
      increase);
}

// Rows selected by an array, possibly twice.
std::size_t RandomProgram::points(std::size_t a) {
  const Extents shape = values_[a].shape;
  std::vector<index_t> rows(1 + pick(3));
  for (index_t& row : rows) row = static_cast<index_t>(pick(at(shape[0])));
  Extents part = shape;
  part[0] = static_cast<index_t>(rows.size());
  const Positions positions = along(part, 0, shape[0], [&](index_t i) { return rows[at(i)]; });
  const Variable k = constant(Tensor::from(rows));
  const std::size_t from = like(a);
  const std::size_t value = gather({from}, ops::take(values_[from].v, k, 0), part, positions);
  if (chance(30)) return value;
  const bool increase = chance(50);
  const Variable place = values_[a].v[k];
  return overwrite(a, value, increase ? place.inc(values_[value].v) : place.set(values_[value].v),
                   positions, increase);
}

std::size_t RandomProgram::reduced(std::size_t a, std::size_t axis) {
  const bool is_max = chance(30);
  const Positions to =
      along(values_[a].shape, axis, 1, [](index_t) { return 0; });  // where each element goes
  Extents rest = values_[a].shape;
  rest[axis] = 1;
  const ops::ReduceOptions options{Axes{static_cast<index_t>(axis)}, true};
  const Variable v = is_max        ? ops::max(values_[a].v, options)
                     : is_rounded_ ? ops::mean(values_[a].v, options)
                                   : ops::sum(values_[a].v, options);
  return add(v, rest, [a, rest, to, is_max](const Values& values) {
    Plain result{rest, std::vector<double>(count(rest), is_max ? -HUGE_VAL : 0.0)};
    for (std::size_t p = 0; p < to.size(); ++p) {
      double& x = result.data[to[p]];
      x = is_max ? std::max(x, values[a].data[p]) : x + values[a].data[p];
    }
    return result;
  });
}

std::size_t RandomProgram::sums(std::size_t a) {
  const Extents shape = values_[a].shape;
  const std::size_t axis = pick(shape.size()), inner = inner_count(shape, axis), b = like(a);
  switch (pick(4)) {
    case 0:
      return add(ops::cumsum(values_[a].v, static_cast<index_t>(axis)), shape,
                 [a, inner, n = at(shape[axis])](const Values& values) {
                   Plain result = values[a];
                   for (std::size_t p = inner; p < result.data.size(); ++p) {
                     if (p / inner % n > 0) result.data[p] += result.data[p - inner];
                   }
                   return result;
                 });
    case 1:
      return add(values_[a].v + ops::max(values_[b].v), shape, [a, b](const Values& values) {
        const std::vector<double>& others = values[b].data;
        Plain result = values[a];
        for (double& x : result.data) x += *std::max_element(others.begin(), others.end());
        return result;
      });
    case 2:
      return reduced(a, axis);
    default: {
      const std::size_t r = reduced(b, axis);
      const Positions from = along(shape, axis, 1, [](index_t) { return 0; });
      return add(values_[a].v + values_[r].v * 0.25, shape, [a, r, from](const Values& values) {
        Plain result = values[a];
        for (std::size_t p = 0; p < from.size(); ++p) {
          result.data[p] += values[r].data[from[p]] * 0.25;
        }
        return result;
      });
    }
  }
}

// A B, A B^T or A^T B, or that added to a matrix.
std::size_t RandomProgram::product(std::size_t a) {
  const Extents shape = values_[a].shape;
  if (shape.size() != 2) return arithmetic(a);
  const std::size_t x = bounded(a), y = chance(50) ? x : bounded(like(a));
  const index_t kind = shape[0] == shape[1] ? static_cast<index_t>(pick(3)) : chance(60) ? 1 : 2;
  const index_t n = kind == 2 ? shape[1] : shape[0], length = kind == 2 ? shape[0] : shape[1];
  const Variable left = kind == 2 ? values_[x].v.T() : values_[x].v;
  const Variable right = kind == 1 ? values_[y].v.T() : values_[y].v;
  const auto multiply = [x, y, n, length, kind](const Values& values) {
    Plain result{{n, n}, std::vector<double>(at(n * n))};
    for (index_t i = 0; i < n; ++i) {
      for (index_t j = 0; j < n; ++j) {
        for (index_t k = 0; k < length; ++k) {
          result.data[at(i * n + j)] += values[x].data[at(kind == 2 ? k * n + i : i * length + k)] *
                                        values[y].data[at(kind == 1 ? j * length + k : k * n + j)];
        }
      }
    }
    return result;
  };
  const double scale = is_rounded_ ? 0.5 : 2;
  std::optional<std::size_t> z;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].shape == Extents{n, n} && chance(60)) z = i;
  }
  if (!z) return add(ops::dot(left, right), {n, n}, multiply);
  const Variable v = chance(50) ? ops::gemm(values_[*z].v, scale, left, right, 0.5)
                                : ops::dot(left, right) * scale + values_[*z].v * 0.5;
  return add(v, {n, n}, [multiply, scale, z = *z](const Values& values) {
    Plain result = multiply(values);
    for (std::size_t p = 0; p < result.data.size(); ++p) {
      result.data[p] = scale * result.data[p] + 0.5 * values[z].data[p];
    }
    return result;
  });
}

// The condition is computed exactly: of an input, where sums are not.
std::size_t RandomProgram::choice(std::size_t a) {
  const std::size_t condition = is_rounded_ ? pick(inputs_.size()) : any();
  const std::size_t b = chance(30) ? updated(like(a)) : like(a);
  const Variable& c = values_[condition].v;
  const Variable is_positive = ops::gt(is_rounded_ ? c(0, 0) : ops::sum(c), 0.0);
  const Variable then = values_[a].v + 1.0, otherwise = values_[b].v * 2.0;
  return add(ops::ifelse(is_positive, then, otherwise), values_[a].shape,
             [a, b, condition](const Values& values) {
               const std::vector<double>& numbers = values[condition].data;
               const bool holds = std::accumulate(numbers.begin(), numbers.end(), 0.0) > 0;
               Plain result = values[holds ? a : b];
               for (double& x : result.data) x = holds ? x + 1.0 : x * 2.0;
               return result;
             });
}

// Repeats s = s / 2 + a, or the sums of the rows so far.
std::size_t RandomProgram::loop(std::size_t a) {
  const Extents shape = values_[a].shape;
  if (shape.size() == 2 && chance(50)) {
    const Variable zero = ops::zeros({shape[1]}, DType::float64, device_);
    const ops::LoopResult r =
        ops::loop([](const std::vector<Variable>& v) { return std::vector{v[1] + v[0]}; },
                  {.sequences = {values_[a].v}, .states = {zero}});
    return add(r.trace(0), shape, [a, inner = at(shape[1])](const Values& values) {
      Plain result = values[a];
      for (std::size_t p = inner; p < result.data.size(); ++p) {
        result.data[p] += result.data[p - inner];
      }
      return result;
    });
  }
  const std::size_t init = like(a);
  const auto n = static_cast<index_t>(pick(4));
  const Variable step = values_[a].v;
  const ops::LoopResult r =
      ops::loop([&](const std::vector<Variable>& v) { return std::vector{v[0] * 0.5 + step}; },
                {.states = {values_[init].v}, .n_steps = n});
  return add(r.last(0), shape, [a, init, n](const Values& values) {
    Plain result = values[init];
    for (index_t t = 0; t < n; ++t) {
      for (std::size_t p = 0; p < result.data.size(); ++p) {
        result.data[p] = result.data[p] * 0.5 + values[a].data[p];
      }
    }
    return result;
  });
}

}  // namespace palimpsest::testing
