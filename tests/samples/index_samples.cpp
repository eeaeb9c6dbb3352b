// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/index/rows.hpp"
#include "palimpsest/ops/loop/run_time_extent_op.hpp"
#include "palimpsest/ops/ops.hpp"
#include "samples/op_samples.hpp"

namespace palimpsest::ops {

std::vector<OpSample> subtensor_samples() {
  const auto at = [](const std::vector<Index>& where) {
    return [=](const Variable& x) { return index(x, where); };
  };
  return {unary("element", sample_values({3, 4}, DType::complex128), at({index_t{-1}})),
          unary("block", sample_values({5, 4}, DType::float64), at({slice(1, 4), slice({}, -1)})),
          unary("steps", sample_values({5, 6}, DType::complex64),
                at({slice({}, {}, -2), slice(1, {}, 3)})),
          unary("new axes", sample_values({3, 4}, DType::float32),
                at({newaxis, ellipsis, index_t{2}, newaxis})),
          unary("nothing", sample_values({3, 4}, DType::float64), at({slice(2, 2)}))};
}

std::vector<OpSample> update_subtensor_samples() {
  std::vector<OpSample> result;
  struct Case {
    const char* name;
    std::vector<Index> where;
    Extents value;
  };
  const Case kCases[] = {{"block", {slice(1, 3)}, {2, 5}},
                         {"broadcast", {slice({}, {}, -2), slice(1, 4)}, {1, 3}},
                         {"element", {index_t{0}, index_t{-1}}, {}},
                         {"everything", {}, {4, 5}}};
  for (const Case& c : kCases) {
    for (DType dtype : {DType::float64, DType::complex128, DType::int32}) {
      const std::string name = std::string(c.name) + " " + std::string(name_of(dtype));
      const std::vector<Tensor> inputs{sample_values({4, 5}, dtype, 1),
                                       sample_values(c.value, dtype, 2)};
      result.push_back({"set " + name, inputs,
                        [where = c.where](Vars v) { return set_subtensor(v[0], where, v[1]); }});
      result.push_back({"inc " + name, inputs,
                        [where = c.where](Vars v) { return inc_subtensor(v[0], where, v[1]); }});
    }
  }
  return result;
}

namespace {

Tensor points(const std::vector<index_t>& values, Extents shape) {
  return Tensor::from(values, std::move(shape));
}

}  // namespace

std::vector<OpSample> nonzero_samples() {
  const auto where = [](Vars v) { return std::make_shared<Nonzero>(1)->make_node(v).output(0); };
  const Tensor mask = Tensor::from<bool>({false, true, true, false});
  return {unary("some", mask, [](const Variable& v) { return nonzero(v)[0]; }),
          unary("none", Tensor::zeros({3}, DType::bool_),
                [](const Variable& v) { return nonzero(v)[0]; }),
          unary("no elements", Tensor::zeros({0}, DType::bool_),
                [](const Variable& v) { return nonzero(v)[0]; }),
          {"of an axis", {mask, sample_values({2, 4}, DType::float32)}, where}};
}

std::vector<OpSample> gather_samples() {
  const Tensor rows = points({0, 2, 2, -1}, {4}), columns = points({1, 0, 3, -4}, {4});
  const auto read = [](Vars v) { return gather(v[0], v.subspan(1)); };
  const auto read_constants = [=](Vars v) {
    const Variable indices[] = {constant(rows), constant(columns)};
    return gather(v[0], indices);
  };
  const Tensor x = sample_values({2, 3, 4}, DType::complex128);
  return {{"last axis", {x, points({3, 1, 1, 0}, {2, 2})}, read},
          {"two axes", {x, rows, columns}, read},
          {"grid", {x, points({0, 2}, {2, 1}), points({1, 3, 0}, {1, 3})}, read},
          {"constants", {sample_values({2, 3, 4}, DType::float64)}, read_constants},
          {"no points", {x, points({}, {0})}, read},
          {"first axis", {x, points({1, 0, 1}, {3})}, [](Vars v) { return take(v[0], v[1], 0); }},
          {"middle axis",
           {x, points({2, 0, 1, 1}, {2, 2})},
           [](Vars v) { return take(v[0], v[1], 1); }},
          {"around an axis",
           {x, points({1, 0}, {2}), points({2, -1}, {2})},
           [](Vars v) {
             return indexed(v[0], {v[1], all, v[2]});
           }},
          {"a row", {x, points({-3}, {})}, [](Vars v) { return row(v[0], v[1]); }},
          {"the only axis",
           {sample_values({4}, DType::float64), points({7}, {})},
           [](Vars v) { return row(v[0], v[1]); }},
          {"one point", {x, points({2}, {})}, [](Vars v) {
             return indexed(v[0], {all, v[1]});
           }}};
}

std::vector<OpSample> update_at_samples() {
  struct Case {
    const char* name;
    std::vector<IndexEntry> (*entries)(const Variable&);
    Tensor points;
    Extents value;
  };
  const Case kCases[] = {{"rows",
                          [](const Variable& i) { return std::vector<IndexEntry>{i}; },
                          points({2, 0}, {2}),
                          {2, 2, 4}},
                         {"repeated",
                          [](const Variable& i) {
                            return std::vector<IndexEntry>{all, i};
                          },
                          points({1, -1, 1}, {3}),
                          {3, 3, 4}},
                         {"broadcast",
                          [](const Variable& i) {
                            return std::vector<IndexEntry>{all, all, i};
                          },
                          points({1, 3, 1}, {3}),
                          {1, 1, 3}},
                         {"pairs",
                          [](const Variable& i) {
                            return std::vector<IndexEntry>{i, all, i};
                          },
                          points({0, 1, 1}, {3}),
                          {3, 1}},
                         {"one",
                          [](const Variable& i) { return std::vector<IndexEntry>{i}; },
                          points({1}, {}),
                          {1, 1}}};
  std::vector<OpSample> result;
  for (const Case& c : kCases) {
    for (DType dtype : {DType::float64, DType::complex128, DType::int32}) {
      for (const bool fixed : {false, true}) {
        const std::string name =
            std::string(c.name) + (fixed ? " constant " : " ") + std::string(name_of(dtype));
        std::vector<Tensor> inputs{sample_values({3, 2, 4}, dtype, 1),
                                   sample_values(c.value, dtype, 2)};
        if (!fixed) inputs.push_back(c.points);
        const auto with = [=, entries = c.entries, at = c.points](bool increase) {
          return [=](Vars v) {
            const Variable i = fixed ? constant(at) : v[2];
            const Variable y = indexed(v[0], entries(i));
            return increase ? y.inc(v[1]) : y.set(v[1]);
          };
        };
        result.push_back({"set " + name, inputs, with(false)});
        result.push_back({"inc " + name, inputs, with(true)});
      }
    }
  }
  result.push_back({"a row",
                    {sample_values({3, 2, 4}, DType::complex64, 1),
                     sample_values({2, 4}, DType::complex64, 2), points({5}, {})},
                    [](Vars v) { return set_row(v[0], v[2], v[1]); }});
  return result;
}

std::vector<OpSample> scatter_add_samples() {
  const Tensor rows = points({0, 2, 2, -1}, {4}), columns = points({1, 0, 0, -4}, {4});
  const auto add_at = [](const Extents& sizes) {
    return [=](Vars v) { return scatter_add(v[0], v.subspan(1), sizes); };
  };
  const auto add_at_constants = [=](Vars v) {
    const Variable indices[] = {constant(rows), constant(columns)};
    return scatter_add(v[0], indices, {3, 4});
  };
  const Tensor y = sample_values({2, 4}, DType::complex128);
  return {{"one axis", {y, rows}, add_at({3})},
          {"two axes", {y, rows, columns}, add_at({3, 4})},
          {"constants", {sample_values({2, 4}, DType::float32)}, add_at_constants},
          {"no points", {sample_values({2, 0}, DType::float64), points({}, {0})}, add_at({3})}};
}

}  // namespace palimpsest::ops
