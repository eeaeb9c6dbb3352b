// SPDX-License-Identifier: Apache-2.0
#include "compile/naive_program.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "palimpsest/ops/ops.hpp"

namespace palimpsest::testing {
namespace {

constexpr double kBound = 16;

std::size_t count(const Extents& shape) { return static_cast<std::size_t>(element_count(shape)); }
std::size_t at(index_t i) { return static_cast<std::size_t>(i); }

// A range along one axis: first, step, number.
struct Range {
  index_t first, step, n;
};

// The positions of the elements of a box of an array, in row-major order of the box.
std::vector<std::size_t> box(const Extents& shape, const std::vector<Range>& ranges) {
  std::vector<std::size_t> result{0};
  for (std::size_t k = 0; k < shape.size(); ++k) {
    std::vector<std::size_t> longer;
    for (std::size_t start : result) {
      for (index_t i = 0; i < ranges[k].n; ++i) {
        longer.push_back(start * at(shape[k]) + at(ranges[k].first + i * ranges[k].step));
      }
    }
    result = std::move(longer);
  }
  return result;
}

std::vector<Range> everything(const Extents& shape) {
  std::vector<Range> result;
  for (index_t n : shape) result.push_back({0, 1, n});
  return result;
}

Extents extents_of(const std::vector<Range>& ranges) {
  Extents result;
  for (const Range& r : ranges) result.push_back(r.n);
  return result;
}

std::vector<Index> as_index(const std::vector<Range>& ranges) {
  std::vector<Index> result;
  for (const Range& r : ranges) {
    const index_t stop = r.first + r.n * r.step;
    if (stop < 0) {
      result.emplace_back(slice(r.first, {}, r.step));
    } else {
      result.emplace_back(slice(r.first, stop, r.step));
    }
  }
  return result;
}

double bound(double x) { return std::min(std::max(std::nearbyint(x), -kBound), kBound); }

Variable bounded_variable(const Variable& v) { return ops::clip(ops::round(v), -kBound, kBound); }

}  // namespace

NaiveProgram::NaiveProgram(std::uint32_t seed) : random_(seed), known_(chance(70)) {
  make_roots();
  for (std::size_t i = 0, n = 2 + pick(9); i < n; ++i) make_step();
  choose_results();
}

Plain NaiveProgram::fresh(const Extents& shape) {
  Plain result{shape, std::vector<double>(count(shape))};
  for (double& x : result.data) x = (static_cast<double>(pick(65)) - 32) / 8;
  return result;
}

void NaiveProgram::make_roots() {
  const auto shape = [&]() -> Extents {
    const auto n = static_cast<index_t>(1 + pick(4)), m = static_cast<index_t>(1 + pick(3));
    return chance(50) ? Extents{n} : Extents{n, m};
  };
  const Extents common = shape();
  const auto type = [&](const Extents& extents) {
    TensorType result{DType::float64, extents, {}};
    for (index_t& n : result.shape) n = known_ || n == 1 ? n : kUnknown;
    return result;
  };
  for (std::size_t i = 0, n = 1 + pick(3); i < n; ++i) {
    const Extents extents = chance(70) ? common : shape();
    const Variable v = make_input(type(extents), "x" + std::to_string(i));
    is_lent_.push_back(chance(30));
    inputs_.push_back(In(v, {.is_mutable = is_lent_.back(), .borrow = is_lent_.back()}));
    add(v, extents, {});
  }
  for (std::size_t i = 0, n = pick(3); i < n; ++i) {
    const Extents extents = chance(70) ? common : shape();
    shared_.push_back(
        SharedVariable(type(extents), Tensor::from(fresh(extents).data, extents),
                       {.name = "s" + std::to_string(i), .borrow = false, .shape = {}}));
    add(shared_.back().var(), extents, {});
  }
}

void NaiveProgram::make_step() {
  const std::size_t a = any();
  switch (pick(20)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
      return step_arithmetic(a);
    case 6:
    case 7:
    case 8:
    case 9:
      return step_view(a);
    case 10:
    case 11:
    case 12:
    case 13:
      return step_update(a);
    case 14:
    case 15:
      return step_points(a);
    case 16:
      return step_sums(a);
    case 17:
      return step_product(a);
    case 18:
      return step_choice(a);
    default:
      return step_loop(a);
  }
}

void NaiveProgram::choose_results() {
  for (std::size_t i = 0, n = 1 + pick(3); i < n; ++i) {
    output_values_.push_back(any());
    outputs_.push_back(Out(values_[output_values_.back()].v, {.borrow = chance(30)}));
  }
  for (std::size_t k = 0; k < shared_.size(); ++k) {
    const std::size_t state = inputs_.size() + k;
    if (!chance(75)) continue;
    // The latest values first, so that updates are long.
    std::size_t value = state;
    for (std::size_t i = values_.size(); i-- > state + 1 && value == state;) {
      const bool fits = values_[state].v.type().is_super(values_[i].v.type());
      if (values_[i].shape == values_[state].shape && fits && chance(70)) value = i;
    }
    update_values_.push_back(value);
    update_targets_.push_back(k);
    updates_.emplace_back(shared_[k], values_[value].v);
  }
}

std::vector<Plain> NaiveProgram::run(const std::vector<Plain>& inputs,
                                     std::vector<Plain>& states) const {
  Values values = inputs;
  values.insert(values.end(), states.begin(), states.end());
  for (std::size_t i = values.size(); i < values_.size(); ++i)
    values.push_back(values_[i].run(values));
  std::vector<Plain> results;
  for (std::size_t i : output_values_) results.push_back(values[i]);
  for (std::size_t k = 0; k < update_values_.size(); ++k) {
    states[update_targets_[k]] = values[update_values_[k]];
  }
  return results;
}

// -- values --------------------------------------------------------------------------------------

std::size_t NaiveProgram::add(Variable v, Extents shape, std::function<Plain(const Values&)> run) {
  values_.push_back({std::move(v), std::move(shape), std::move(run)});
  return values_.size() - 1;
}

std::size_t NaiveProgram::like(std::size_t otherwise) {
  for (int i = 0; i < 6; ++i) {
    const std::size_t other = any();
    if (values_[other].shape == values_[otherwise].shape) return other;
  }
  return otherwise;
}

std::size_t NaiveProgram::map(std::size_t a, const std::function<Variable(const Variable&)>& build,
                              double (*f)(double)) {
  return add(build(values_[a].v), values_[a].shape, [a, f](const Values& values) {
    Plain result = values[a];
    std::transform(result.data.begin(), result.data.end(), result.data.begin(), f);
    return result;
  });
}

std::size_t NaiveProgram::zip(
    std::size_t a, std::size_t b,
    const std::function<Variable(const Variable&, const Variable&)>& build,
    double (*f)(double, double)) {
  return add(build(values_[a].v, values_[b].v), values_[a].shape, [a, b, f](const Values& values) {
    Plain result = values[a];
    const std::vector<double>& others = values[b].data;
    std::transform(result.data.begin(), result.data.end(), others.begin(), result.data.begin(), f);
    return result;
  });
}

std::size_t NaiveProgram::gather(std::size_t a, Variable v, Extents shape, Positions positions) {
  return add(std::move(v), shape, [a, shape, positions](const Values& values) {
    Plain result{shape, {}};
    for (std::size_t p : positions) result.data.push_back(values[a].data[p]);
    return result;
  });
}

std::size_t NaiveProgram::update(std::size_t a, std::size_t b, Variable v, Positions positions,
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

std::size_t NaiveProgram::bounded(std::size_t a) { return map(a, bounded_variable, bound); }

// -- steps ---------------------------------------------------------------------------------------

void NaiveProgram::step_arithmetic(std::size_t a) {
  const std::size_t b = like(a);
  using V = const Variable&;
  switch (pick(8)) {
    case 0:
      zip(
          a, b, [](V x, V y) { return x + y; }, [](double x, double y) { return x + y; });
      return;
    case 1:
      zip(
          a, b, [](V x, V y) { return x - y; }, [](double x, double y) { return x - y; });
      return;
    case 2:
      zip(
          bounded(a), bounded(b), [](V x, V y) { return x * y; },
          [](double x, double y) { return x * y; });
      return;
    case 3:
      map(
          a, [](V x) { return -x; }, [](double x) { return -x; });
      return;
    case 4:
      map(
          a, [](V x) { return x * 0.5; }, [](double x) { return x * 0.5; });
      return;
    case 5:
      map(
          a, [](V x) { return x + 1.0; }, [](double x) { return x + 1.0; });
      return;
    case 6:
      zip(
          a, b, [](V x, V y) { return ops::maximum(x, y); },
          [](double x, double y) { return std::max(x, y); });
      return;
    default:
      zip(
          a, b, [](V x, V y) { return ops::where(ops::gt(x, y), x, -y); },
          [](double x, double y) { return x > y ? x : -y; });
      return;
  }
}

void NaiveProgram::step_view(std::size_t a) {
  const Variable v = values_[a].v;
  const Extents shape = values_[a].shape;
  std::vector<Range> ranges = everything(shape);
  const std::size_t axis = pick(shape.size());
  const index_t n = shape[axis];
  switch (pick(6)) {
    case 0:
      ranges[axis] = {n - 1, -1, n};
      break;
    case 1:
      ranges[axis] = {0, 2, (n + 1) / 2};
      break;
    case 2: {
      const auto first = static_cast<index_t>(pick(at(n)));
      ranges[axis] = {first, 1, n - first};
      break;
    }
    case 3:
      if (shape.size() == 2) {
        Positions positions;
        for (std::size_t j = 0; j < at(shape[1]); ++j) {
          for (std::size_t i = 0; i < at(shape[0]); ++i) positions.push_back(i * at(shape[1]) + j);
        }
        gather(a, v.T(), {shape[1], shape[0]}, std::move(positions));
        return;
      }
      break;
    case 4: {
      const auto total = static_cast<index_t>(count(shape));
      const Extents flat = shape.size() == 2 ? Extents{total} : Extents{1, total};
      Positions positions(count(shape));
      std::iota(positions.begin(), positions.end(), std::size_t{0});
      gather(a, ops::reshape(v, flat), flat, std::move(positions));
      return;
    }
    default: {
      // The first row everywhere.
      ranges[axis].n = 1;
      Positions positions;
      for (std::size_t p : box(shape, ranges)) {
        positions.push_back(p);
      }
      const Variable row = ops::index(v, as_index(ranges));
      const Extents row_shape = extents_of(ranges);
      Positions wide;
      for (std::size_t p = 0; p < count(shape); ++p) {
        const std::size_t inner = axis + 1 < shape.size() ? at(shape[axis + 1]) : 1;
        const std::size_t i = p / (inner * at(n)), j = p % inner;
        wide.push_back(positions[i * inner + j]);
      }
      const Variable known_row = ops::specify_shape(row, row_shape);
      gather(a, ops::broadcast_to(known_row, shape), shape, std::move(wide));
      return;
    }
  }
  gather(a, ops::index(v, as_index(ranges)), extents_of(ranges), box(shape, ranges));
}

// Sets or increments a box of a by an equal box, often of a itself.
void NaiveProgram::step_update(std::size_t a) {
  const Extents shape = values_[a].shape;
  std::vector<Range> target = everything(shape), source = target;
  const std::size_t axis = pick(shape.size());
  const index_t n = shape[axis];
  const auto length = static_cast<index_t>(1 + pick(at(n)));
  const auto start = [&] { return static_cast<index_t>(pick(at(n - length) + 1)); };
  target[axis] = {start(), 1, length};
  source[axis] = {start(), 1, length};
  if (chance(30)) target[axis] = {target[axis].first + length - 1, -1, length};
  const std::size_t from = like(a);
  const std::size_t value = gather(from, ops::index(values_[from].v, as_index(source)),
                                   extents_of(source), box(shape, source));
  const std::size_t given = chance(50) ? value
                                       : map(
                                             value, [](const Variable& x) { return x * 2.0; },
                                             [](double x) { return x * 2; });
  const bool increase = chance(50);
  const Variable v = increase
                         ? ops::inc_subtensor(values_[a].v, as_index(target), values_[given].v)
                         : ops::set_subtensor(values_[a].v, as_index(target), values_[given].v);
  update(a, given, v, box(shape, target), increase);
}

// Rows selected by an array, possibly twice.
void NaiveProgram::step_points(std::size_t a) {
  const Extents shape = values_[a].shape;
  std::vector<index_t> rows;
  for (std::size_t i = 0, n = 1 + pick(3); i < n; ++i) {
    rows.push_back(static_cast<index_t>(pick(at(shape[0]))));
  }
  Extents part = shape;
  part[0] = static_cast<index_t>(rows.size());
  Positions positions;
  for (index_t row : rows) {
    std::vector<Range> ranges = everything(shape);
    ranges[0] = {row, 1, 1};
    for (std::size_t p : box(shape, ranges)) positions.push_back(p);
  }
  const Variable k = constant(Tensor::from(rows));
  const std::size_t from = like(a);
  const std::size_t value = gather(from, ops::take(values_[from].v, k, 0), part, positions);
  if (chance(30)) return;
  const bool increase = chance(50);
  const Variable place = values_[a].v[k];
  update(a, value, increase ? place.inc(values_[value].v) : place.set(values_[value].v), positions,
         increase);
}

void NaiveProgram::step_sums(std::size_t a) {
  const Extents shape = values_[a].shape;
  const std::size_t n = at(shape[0]), inner = count(shape) / n;
  if (chance(50)) {
    add(ops::cumsum(values_[a].v, 0), shape, [a, n, inner](const Values& values) {
      Plain result = values[a];
      for (std::size_t p = inner; p < n * inner; ++p) result.data[p] += result.data[p - inner];
      return result;
    });
    return;
  }
  Extents rest = shape;
  rest[0] = 1;
  add(values_[a].v.sum(0, true), rest, [a, rest, inner](const Values& values) {
    Plain result{rest, std::vector<double>(inner)};
    for (std::size_t p = 0; p < values[a].data.size(); ++p) {
      result.data[p % inner] += values[a].data[p];
    }
    return result;
  });
}

// A A^T, or that added to a matrix.
void NaiveProgram::step_product(std::size_t a) {
  if (values_[a].shape.size() != 2) return step_arithmetic(a);
  const std::size_t factor = bounded(a);
  const Variable m = values_[factor].v;
  const index_t n = values_[a].shape[0], length = values_[a].shape[1];
  const Extents square{n, n};
  const auto product = [n, length](const Plain& x) {
    Plain result{{n, n}, std::vector<double>(at(n * n))};
    for (index_t i = 0; i < n; ++i) {
      for (index_t j = 0; j < n; ++j) {
        for (index_t k = 0; k < length; ++k) {
          result.data[at(i * n + j)] += x.data[at(i * length + k)] * x.data[at(j * length + k)];
        }
      }
    }
    return result;
  };
  std::size_t z = values_.size();
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].shape == square && chance(60)) z = i;
  }
  if (z == values_.size()) {
    add(ops::dot(m, m.T()), square,
        [factor, product](const Values& values) { return product(values[factor]); });
    return;
  }
  add(ops::gemm(values_[z].v, 2, m, m.T(), 0.5), square,
      [factor, z, product](const Values& values) {
        Plain result = product(values[factor]);
        for (std::size_t p = 0; p < result.data.size(); ++p) {
          result.data[p] = 2 * result.data[p] + 0.5 * values[z].data[p];
        }
        return result;
      });
}

void NaiveProgram::step_choice(std::size_t a) {
  const std::size_t condition = any(), b = like(a);
  const Variable is_positive = ops::gt(ops::sum(values_[condition].v), 0.0);
  const Variable then = values_[a].v + 1.0, otherwise = values_[b].v * 2.0;
  add(ops::ifelse(is_positive, then, otherwise), values_[a].shape,
      [a, b, condition](const Values& values) {
        const std::vector<double>& c = values[condition].data;
        const bool holds = std::accumulate(c.begin(), c.end(), 0.0) > 0;
        Plain result = values[holds ? a : b];
        for (double& x : result.data) x = holds ? x + 1.0 : x * 2.0;
        return result;
      });
}

// Repeats s = s / 2 + a, or the sums of the rows so far.
void NaiveProgram::step_loop(std::size_t a) {
  if (values_[a].shape.size() == 2 && chance(50)) {
    const Extents shape = values_[a].shape;
    const std::size_t inner = at(shape[1]);
    const Variable zero = ops::zeros({shape[1]}, DType::float64);
    const ops::LoopResult r =
        ops::loop([](const std::vector<Variable>& v) { return std::vector{v[1] + v[0]}; },
                  {.sequences = {values_[a].v}, .states = {zero}});
    add(r.trace(0), shape, [a, inner](const Values& values) {
      Plain result = values[a];
      for (std::size_t p = inner; p < result.data.size(); ++p) {
        result.data[p] += result.data[p - inner];
      }
      return result;
    });
    return;
  }
  const std::size_t init = like(a);
  const auto n = static_cast<index_t>(pick(4));
  const Variable step = values_[a].v;
  const ops::LoopResult r =
      ops::loop([&](const std::vector<Variable>& v) { return std::vector{v[0] * 0.5 + step}; },
                {.states = {values_[init].v}, .n_steps = n});
  add(r.last(0), values_[a].shape, [a, init, n](const Values& values) {
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
