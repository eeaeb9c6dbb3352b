// SPDX-License-Identifier: Apache-2.0
// Cutting operators, copying them, and checking their laws.
#include "palimpsest/linop/copies/copying.hpp"
#include "palimpsest/linop/split/batch.hpp"
#include "palimpsest/linop/split/budget.hpp"
#include "palimpsest/linop/testing/testing.hpp"
#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/families.hpp"
#include "palimpsest/python/linop_conversions.hpp"
#include "palimpsest/python/plan_object.hpp"

namespace palimpsest::python {
namespace {

struct BatchSpecObject {
  BatchSpec spec;
  nb::object arguments = {};  // arguments of its constructor, for pickles
};

BatchSpec spec_of(nb::handle object) {
  if (nb::isinstance<BatchSpecObject>(object)) return nb::cast<BatchSpecObject&>(object).spec;
  return {.sizes = ordered_sizes(object)};
}

// An object array of NumPy, of the extents of the grid.
template <class Item, class Convert>
nb::object grid_array(const Extents& shape, const std::vector<Item>& items, Convert convert) {
  const nb::object numpy = nb::module_::import_("numpy");
  nb::object flat = numpy.attr("empty")(items.size(), "dtype"_a = "object");
  for (std::size_t i = 0; i < items.size(); ++i) flat[nb::cast(i)] = convert(items[i]);
  return flat.attr("reshape")(to_python(shape));
}

Shown<"tuple[NDArray[Any], NDArray[Any], NDArray[Any]]"> split_grid(NamedLinop A,
                                                                    nb::handle sizes) {
  const SplitGrid grid = split_linop(A, spec_of(sizes).sizes);
  return nb::make_tuple(
      grid_array(grid.shape, grid.tiles, [](const NamedLinop& t) { return to_python(t); }),
      grid_array(grid.shape, grid.input_slices, tile_object),
      grid_array(grid.shape, grid.output_slices, tile_object));
}

Shown<"NamedLinop"> batched(NamedLinop A, nb::handle specs, DimMap sizes) {
  std::vector<BatchSpec> list;
  if (PyList_Check(specs.ptr())) {
    for (nb::handle spec : specs) list.push_back(spec_of(spec));
  } else {
    list.push_back(spec_of(specs));
  }
  return to_python(released([&] { return create_batched_linop(A, list, {.sizes = sizes}); }));
}

void bind_split(nb::module_& m) {
  nb::class_<BatchSpecObject>(m, "BatchSpec", "One level of cutting.")
      .def(
          "__init__",
          [](BatchSpecObject* self, nb::handle sizes, nb::handle devices,
             std::optional<Device> base_device) {
            BatchSpec spec{.sizes = ordered_sizes(sizes), .base_device = base_device};
            if (!devices.is_none()) {
              std::vector<Device> list;
              for (nb::handle device : devices) list.push_back(from_python<Device>(device));
              const auto n = static_cast<index_t>(list.size());
              spec.devices = DeviceGrid({n}, std::move(list));
            }
            const nb::object base = base_device ? to_python(*base_device) : nb::none();
            new (self) BatchSpecObject{std::move(spec), nb::make_tuple(sizes, devices, base)};
          },
          "sizes"_a, "devices"_a.none() = nb::none(), "base_device"_a.none() = nb::none())
      .def("__reduce__", [](nb::handle self) {
        return nb::make_tuple(self.type(), nb::cast<BatchSpecObject&>(self).arguments);
      });
  m.def("split_linop", split_grid, "A"_a, "sizes"_a,
        "Object arrays of the tiles, and of the parts that each reads and gives.");
  m.def("create_batched_linop", batched, "A"_a, "specs"_a, nb::kw_only(),
        "sizes"_a.none() = nb::none(), "The operator cut into tiles and put together again.");
  nb::class_<BudgetSplit>(m, "BudgetSplit", "An operator that fits the budget, and its bytes.")
      .def_prop_ro("op", [](const BudgetSplit& s) { return s.op; })
      .def_prop_ro(
          "plan",
          [](const BudgetSplit& s) { return PlanObject{std::make_shared<const Plan>(s.plan)}; })
      .def_prop_ro("sizes", [](const BudgetSplit& s) { return s.sizes; })
      .def_ro("tiles", &BudgetSplit::tiles)
      .def_ro("peak_bytes", &BudgetSplit::peak_bytes)
      .def_ro("operator_bytes", &BudgetSplit::operator_bytes);
  m.def(
      "split_to_budget",
      [](NamedLinop A, nb::handle x, nb::handle budget, Dims candidates) {
        const TensorType type = from_python<TensorType>(x);
        const index_t bytes = bytes_of(budget);
        return released(
            [&] { return split_to_budget(A, type, bytes, {.candidates = candidates}); });
      },
      "A"_a, "x"_a, "budget"_a, nb::kw_only(), "candidates"_a = nb::make_tuple(),
      "Cuts an operator until one application fits into a number of bytes.");
  m.def(
      "_smallest_budget",
      [](NamedLinop A, nb::handle x) {
        const TensorType type = from_python<TensorType>(x);
        return released([&] { return smallest_budget(A, type); });
      },
      "A"_a, "x"_a, "The smallest number of bytes for which split_to_budget() finds tiles.");
  m.def(
      "operator_bytes", [](NamedLinop A) { return operator_bytes(A); }, "A"_a,
      "Bytes of the data of an operator.");
}

TestOptions test_options(DimMap sizes, std::optional<Extents> extents, std::optional<DType> dtype,
                         std::uint64_t seed) {
  return {.sizes = sizes, .extents = extents, .dtype = dtype, .seed = seed};
}

#define PALIMPSEST_TEST_ARGUMENTS                                                       \
  "A"_a, nb::kw_only(), "sizes"_a.none() = nb::none(), "extents"_a.none() = nb::none(), \
                        "dtype"_a.none() = nb::none(), "seed"_a = 1

template <auto f>
auto checked() {
  return [](NamedLinop A, DimMap sizes, std::optional<Extents> extents, std::optional<DType> dtype,
            std::uint64_t seed) {
    const TestOptions options = test_options(sizes, extents, dtype, seed);
    return released([&] { return f(A, options); });
  };
}

void bind_testing(nb::module_& m) {
  nb::class_<DotTest>(m, "DotTest", "<A x, y> and <x, A^H y>.")
      .def_ro("lhs", &DotTest::lhs)
      .def_ro("rhs", &DotTest::rhs)
      .def_ro("error", &DotTest::error)
      .def_ro("ok", &DotTest::ok)
      .def("__bool__", [](const DotTest& t) { return t.ok; });
  nb::class_<NormalTest>(m, "NormalTest", "The result of check_normal().")
      .def_ro("error", &NormalTest::error)
      .def_ro("ok", &NormalTest::ok)
      .def("__bool__", [](const NormalTest& t) { return t.ok; });
  nb::class_<GradientTest>(m, "GradientTest", "Gradients against finite differences.")
      .def_ro("error", &GradientTest::error)
      .def_ro("ok", &GradientTest::ok)
      .def("__bool__", [](const GradientTest& t) { return t.ok; });
  nb::class_<ContractReport>(m, "ContractReport", "The laws that do not hold.")
      .def_ro("failures", &ContractReport::failures)
      .def_prop_ro("ok", &ContractReport::ok)
      .def("__bool__", &ContractReport::ok)
      .def("__repr__", &ContractReport::str);
  m.def("dot_test", checked<&dot_test>(), PALIMPSEST_TEST_ARGUMENTS,
        "<A x, y> = <x, A^H y> for random x and y.");
  m.def("check_normal", checked<&check_normal>(), PALIMPSEST_TEST_ARGUMENTS,
        "Compares A.N with A^H A.");
  m.def("check_gradient", checked<&check_gradient>(), PALIMPSEST_TEST_ARGUMENTS,
        "Gradients against finite differences.");
  nb::class_<InplaceTest>(m, "InplaceTest", "Steps in place against others.")
      .def_ro("same_bits", &InplaceTest::same_bits)
      .def_ro("untouched", &InplaceTest::untouched)
      .def_prop_ro("ok", &InplaceTest::ok)
      .def("__bool__", &InplaceTest::ok);
  nb::class_<SplitTest>(m, "SplitTest", "Tiles of partitions against the whole.")
      .def_ro("error", &SplitTest::error)
      .def_ro("ok", &SplitTest::ok)
      .def_prop_ro("refused", [](const SplitTest& t) { return t.refused; })
      .def_ro("failure", &SplitTest::failure)
      .def("__bool__", [](const SplitTest& t) { return t.ok; });
  m.def("check_inplace", checked<&check_inplace>(), PALIMPSEST_TEST_ARGUMENTS,
        "Steps in place give the same bits, and leave x as it was.");
  m.def("check_split", checked<&check_split>(), PALIMPSEST_TEST_ARGUMENTS,
        "The tiles of random partitions add up to A, or they are refused.");
  m.def("check_contract", checked<&check_contract>(), PALIMPSEST_TEST_ARGUMENTS,
        "The laws that every operator obeys.");
  m.def(
      "to_dense",
      [](NamedLinop A, DimMap sizes, std::optional<Extents> extents, std::optional<DType> dtype) {
        const TestOptions options = test_options(sizes, extents, dtype, 1);
        return export_array(released([&] { return matrix_of(A, options); }),
                            kind_returned(Kind::numpy));
      },
      "A"_a, nb::kw_only(), "sizes"_a.none() = nb::none(), "extents"_a.none() = nb::none(),
      "dtype"_a.none() = nb::none(),
      "The matrix of an operator; real if it gives real results for real inputs.");
}

// A tree may be very deep.
bool is_linear_over_reals_only(const NamedLinop& A) {
  std::vector<NamedLinop> rest{A};
  while (!rest.empty()) {
    const NamedLinop part = rest.back();
    rest.pop_back();
    if (part.type().real_linear) return true;
    rest.insert(rest.end(), part.linops().begin(), part.linops().end());
  }
  return false;
}

}  // namespace

Tensor matrix_of(const NamedLinop& A, TestOptions options) {
  if (options.dtype) return to_dense(A, options);
  // The columns are results for unit vectors. Those of an operator that is linear over the reals
  // only are results for complex ones, and so are those of one that refuses real inputs.
  const DType complex = complex_of(precision_of(A).value_or(DType::float64));
  options.dtype = real_of(complex);
  try {
    if (!is_linear_over_reals_only(A)) return to_dense(A, options);
  } catch (const DTypeError&) {
  }
  options.dtype = complex;
  return to_dense(A, options);
}

void bind_linop_tools(nb::module_& m) {
  bind_split(m);
  bind_testing(m);
  m.def(
      "memory_report",
      [](NamedLinop A) {
        nb::dict report;
        for (const MemoryReport::Entry& entry : memory_report(A).devices) {
          report[nb::cast(entry.device.str())] = nb::cast(entry.bytes);
        }
        return report;
      },
      "A"_a, "Bytes of the data of an operator on each device, every byte once.");
  m.def(
      "memory_aware_to",
      [](NamedLinop A, Device device) {
        return released([&] { return memory_aware_to(A, device); });
      },
      "A"_a, "device"_a, "As A.to(device): shared parts stay shared.");
}

}  // namespace palimpsest::python
