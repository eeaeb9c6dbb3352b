// SPDX-License-Identifier: Apache-2.0
// class RandomState: random numbers that differ from call to call.
#include "palimpsest/base/config.hpp"
#include "palimpsest/compile/random_state.hpp"
#include "palimpsest/python/arrays.hpp"
#include "palimpsest/python/functions/function_object.hpp"

namespace palimpsest::python {

using Self = RandomState&;

void bind_random_states(nb::module_& m) {
  const auto float_of = [](const std::optional<DType>& dtype) {
    return dtype.value_or(config().default_float);
  };
  nb::class_<RandomState>(m, "RandomState", "A source of random numbers for functions.")
      .def(nb::init<std::uint64_t, std::uint64_t>(), "seed"_a, "stream"_a = 0)
      .def_prop_ro(
          "key", [](Self self) { return SharedObject(self.key(), Kind::numpy); },
          "The shared key. Set its value to start again; it should not be drawn from.")
      .def(
          "next", [](Self self) { return self.next(); },
          "A key for one draw, which no other draw takes.")
      .def(
          "normal",
          [float_of](Self self, ShapeArgument shape, std::optional<DType> dtype, Operand mean,
                     Operand deviation) {
            return self.normal(shape, float_of(dtype), mean, deviation);
          },
          "shape"_a, "dtype"_a.none() = nb::none(), "mean"_a = 0.0, "deviation"_a = 1.0,
          "Normal numbers.")
      .def(
          "uniform",
          [float_of](Self self, ShapeArgument shape, std::optional<DType> dtype, Operand low,
                     Operand high) { return self.uniform(shape, float_of(dtype), low, high); },
          "shape"_a, "dtype"_a.none() = nb::none(), "low"_a = 0.0, "high"_a = 1.0,
          "Uniform numbers in [low, high).")
      .def(
          "bits",
          [](Self self, ShapeArgument shape, std::optional<DType> dtype) {
            return self.bits(shape, dtype.value_or(DType::uint64));
          },
          "shape"_a, "dtype"_a.none() = nb::none(), "Integers of random bits.")
      .def(
          "integers",
          [](Self self, ShapeArgument shape, Operand low, Operand high,
             std::optional<DType> dtype) {
            return self.integers(shape, low, high, dtype.value_or(DType::int64));
          },
          "shape"_a, "low"_a, "high"_a, "dtype"_a.none() = nb::none(),
          "Integers low, .., high - 1.");
}

}  // namespace palimpsest::python
