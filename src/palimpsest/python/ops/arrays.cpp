// SPDX-License-Identifier: Apache-2.0
// ops: creation, random numbers, shapes, indices.
#include "palimpsest/ops/ops.hpp"
#include "palimpsest/python/families.hpp"

namespace palimpsest::python {

PALIMPSEST_NAMES(ops::PadMode, "mode", "edge", "wrap", "reflect")

namespace {

DType default_float(const std::optional<DType>& dtype) {
  return dtype.value_or(config().default_float);
}

void bind_creation(nb::module_& m) {
  m.def(
      "shape", [](Variable x) { return ops::shape(x); }, "x"_a, "The extents, int64 (ndim,).");
  m.def("alloc", &ops::alloc, "value"_a, "shape"_a,
        "An array filled with value, which broadcasts.");
  m.def("full", &ops::full, "shape"_a, "value"_a, "An array of one value.");
#define PALIMPSEST_CREATION(name, doc)                                                    \
  m.def(                                                                                  \
      #name,                                                                              \
      [](ShapeArgument shape, std::optional<DType> dtype, std::optional<Device> device) { \
        return ops::name(shape, default_float(dtype), device.value_or(Device()));         \
      },                                                                                  \
      "shape"_a, "dtype"_a.none() = nb::none(), "device"_a.none() = nb::none(), doc);
  PALIMPSEST_CREATION(zeros, "An array of zeros.")
  PALIMPSEST_CREATION(ones, "An array of ones.")
  PALIMPSEST_CREATION(empty, "An array for a result that will be written.")
#undef PALIMPSEST_CREATION
  m.def("full_like", &ops::full_like, "x"_a, "value"_a, "Of the type and the extents of x.");
  m.def("zeros_like", &ops::zeros_like, "x"_a, "Zeros of the type and the extents of x.");
  m.def("ones_like", &ops::ones_like, "x"_a, "Ones of the type and the extents of x.");
  m.def("empty_like", &ops::empty_like, "x"_a, "Of the type and the extents of x.");
  m.def(
      "arange",
      [](Operand start, std::optional<Operand> stop, std::optional<Operand> step,
         std::optional<DType> dtype, std::optional<Device> device) {
        const Device where = device.value_or(Device());
        if (!stop) return ops::arange(start, dtype.value_or(DType::int64), where);
        if (!start.is_number() || !stop->is_number() || (step && !step->is_number())) {
          throw TypeError("[arange] got a Variable, expected numbers. Try start + arange(n).");
        }
        return ops::arange(start.number(), stop->number(), step ? step->number() : WeakNumber(1),
                           dtype, where);
      },
      "start"_a, "stop"_a.none() = nb::none(), "step"_a.none() = nb::none(),
      "dtype"_a.none() = nb::none(), "device"_a.none() = nb::none(),
      "0, 1, .., start - 1, or start, start + step, .. before stop.");
  m.def(
      "linspace",
      [](double first, double last, index_t n, std::optional<DType> dtype,
         std::optional<Device> device) {
        return ops::linspace(first, last, n, default_float(dtype), device.value_or(Device()));
      },
      "first"_a, "last"_a, "n"_a, "dtype"_a.none() = nb::none(), "device"_a.none() = nb::none(),
      "n numbers at equal distances, both ends included.");
  m.def(
      "eye",
      [](Operand n, std::optional<Operand> columns, index_t k, std::optional<DType> dtype,
         std::optional<Device> device) {
        return ops::eye(n, columns, k, default_float(dtype), device.value_or(Device()));
      },
      "n"_a, "m"_a.none() = nb::none(), "k"_a = 0, "dtype"_a.none() = nb::none(),
      "device"_a.none() = nb::none(), "Ones where column - row = k, else zeros.");
}

void bind_random(nb::module_& m) {
  m.def(
      "random_key",
      [](nb::handle seed, std::uint64_t stream) {
        if (is_integer(seed)) {
          return ops::random_key(static_cast<std::uint64_t>(integer_of(seed, "a seed")), stream);
        }
        return ops::random_key(from_python<Variable>(seed));
      },
      "seed"_a, "stream"_a = 0, "A key for random numbers, uint64 (2,).");
  m.def("split_key", &ops::split_key, "key"_a, "n"_a = 2, "Independent keys out of one.");
  m.def("child_key", &ops::child_key, "key"_a, "i"_a, "One of the keys of split_key.");
  m.def("next_key", &ops::next_key, "key"_a, "The key for the next time.");
  m.def(
      "random_normal",
      [](Variable key, ShapeArgument shape, std::optional<DType> dtype, Operand mean,
         Operand deviation) {
        return ops::random_normal(key, shape, default_float(dtype), mean, deviation);
      },
      "key"_a, "shape"_a, "dtype"_a.none() = nb::none(), "mean"_a = 0.0, "deviation"_a = 1.0,
      "Normal numbers; element i depends on the key and i alone.");
  m.def(
      "random_uniform",
      [](Variable key, ShapeArgument shape, std::optional<DType> dtype, Operand low, Operand high) {
        return ops::random_uniform(key, shape, default_float(dtype), low, high);
      },
      "key"_a, "shape"_a, "dtype"_a.none() = nb::none(), "low"_a = 0.0, "high"_a = 1.0,
      "Uniform numbers in [low, high).");
  m.def(
      "random_bits",
      [](Variable key, ShapeArgument shape, std::optional<DType> dtype) {
        return ops::random_bits(key, shape, dtype.value_or(DType::uint64));
      },
      "key"_a, "shape"_a, "dtype"_a.none() = nb::none(), "Integers of random bits.");
  m.def(
      "random_integers",
      [](Variable key, ShapeArgument shape, Operand low, Operand high, std::optional<DType> dtype) {
        return ops::random_integers(key, shape, low, high, dtype.value_or(DType::int64));
      },
      "key"_a, "shape"_a, "low"_a, "high"_a, "dtype"_a.none() = nb::none(),
      "Integers low, .., high - 1.");
}

ops::PadWidths widths_of(nb::handle object, std::size_t rank) {
  if (is_integer(object)) {
    const index_t n = integer_of(object, "a width");
    return ops::PadWidths(rank, {n, n});
  }
  ops::PadWidths widths;
  for (nb::handle item : object) {
    const Extents pair = from_python<Extents>(item);
    if (pair.size() != 2) throw ValueError("[pad] got widths that are not pairs (before, after).");
    widths.emplace_back(pair[0], pair[1]);
  }
  return widths;
}

Variable padded(const Variable& x, nb::handle widths, const std::string& mode, double value) {
  const ops::PadWidths all = widths_of(widths, x.rank());
  if (mode == "constant") return ops::pad(x, all, value);
  return ops::pad(x, all, from_python<ops::PadMode>(nb::cast(mode)));
}

std::vector<std::optional<index_t>> shuffle_pattern(nb::args pattern) {
  nb::handle list = pattern;
  if (pattern.size() == 1 && is_list(pattern[0])) list = pattern[0];
  std::vector<std::optional<index_t>> axes;
  for (nb::handle axis : list) {
    const bool is_new = axis.is_none() || (PyUnicode_Check(axis.ptr()) && str_of(axis) == "x");
    axes.push_back(is_new ? std::nullopt : std::optional(integer_of(axis, "an axis or 'x'")));
  }
  return axes;
}

void bind_shapes(nb::module_& m) {
  m.def("reshape", &ops::reshape, "x"_a, "shape"_a, "The same elements in another shape.");
  m.def("ravel", &ops::ravel, "x"_a, "One axis.");
  m.def("flatten", &ops::ravel, "x"_a, "One axis.");
  m.def(
      "transpose",
      [](Variable x, std::optional<Extents> axes) {
        return axes ? ops::transpose(x, *axes) : ops::transpose(x);
      },
      "x"_a, "axes"_a.none() = nb::none(), "Axes in another order; reversed unless given.");
  m.def("swapaxes", &ops::swapaxes, "x"_a, "a"_a, "b"_a, "Two axes exchanged.");
  m.def("moveaxis", &ops::moveaxis, "x"_a, "source"_a, "destination"_a, "One axis moved.");
  m.def(
      "dimshuffle",
      [](Variable x, nb::args pattern) { return ops::dimshuffle(x, shuffle_pattern(pattern)); },
      "x"_a, "pattern"_a, "Axes in the order of the pattern; 'x' is a new one.");
  m.def("expand_dims", &ops::expand_dims, "x"_a, "axis"_a, "New axes of one element.");
  m.def(
      "squeeze",
      [](Variable x, std::optional<Extents> axis) {
        return axis ? ops::squeeze(x, *axis) : ops::squeeze(x);
      },
      "x"_a, "axis"_a.none() = nb::none(), "Without axes of one element.");
  m.def("broadcast_to", &ops::broadcast_to, "x"_a, "shape"_a, "Stretched, without a copy.");
  m.def("specify_shape", &ops::specify_shape, "x"_a, "shape"_a,
        "x with these extents known; -1 for an unknown one. Checked when it runs.");
  m.def("flip", &ops::flip, "x"_a, "axis"_a, "Some axes backwards.");
  m.def(
      "split",
      [](Variable x, nb::handle parts, index_t axis) {
        if (is_integer(parts)) return ops::split(x, integer_of(parts, "a number of parts"), axis);
        const Extents sizes = from_python<Extents>(parts);
        return ops::split(x, std::vector<index_t>(sizes.begin(), sizes.end()), axis);
      },
      "x"_a, "sizes"_a, "axis"_a = 0, "Parts along an axis, of these sizes or so many.");
  m.def("pad", padded, "x"_a, "widths"_a, "mode"_a = "constant", "value"_a = 0.0,
        "Elements added before and after along each axis.");
  m.def(
      "roll",
      [](Variable x, Extents shift, Extents axis) {
        return ops::roll(x, std::vector<index_t>(shift.begin(), shift.end()), axis);
      },
      "x"_a, "shift"_a, "axis"_a, "A periodic shift.");
  m.def(
      "join",
      [](index_t axis, nb::args parts) {
        std::vector<Variable> list;
        for (nb::handle part : parts) list.push_back(from_python<Variable>(part));
        return ops::join(axis, list);
      },
      "axis"_a, "parts"_a, "Parts one behind the other along an axis.");
  m.def(
      "concatenate",
      [](std::vector<Variable> parts, index_t axis) { return ops::join(axis, parts); }, "parts"_a,
      "axis"_a = 0, "Parts one behind the other along an axis.");
  m.def(
      "stack", [](std::vector<Variable> parts, index_t axis) { return ops::stack(parts, axis); },
      "parts"_a, "axis"_a = 0, "Parts along a new axis.");
  m.def(
      "tile",
      [](Variable x, Extents counts) {
        return ops::tile(x, std::vector<index_t>(counts.begin(), counts.end()));
      },
      "x"_a, "counts"_a, "x several times along each axis.");
  m.def("repeat", &ops::repeat, "x"_a, "count"_a, "axis"_a, "Every element several times.");
  m.def("array_to_blocks", &ops::array_to_blocks, "x"_a, "block"_a, "stride"_a,
        "Blocks of the last axes, which may overlap.");
  m.def("blocks_to_array", &ops::blocks_to_array, "y"_a, "im_size"_a, "block"_a, "stride"_a,
        "The sum of blocks: the adjoint of array_to_blocks.");
  m.def(
      "set_subtensor", [](Variable y, Operand value) { return ops::set_subtensor(y, value); },
      "y"_a, "value"_a, "For y = x[..]: x with these elements replaced.");
  m.def(
      "inc_subtensor", [](Variable y, Operand value) { return ops::inc_subtensor(y, value); },
      "y"_a, "value"_a, "For y = x[..]: x with these elements increased.");
}

}  // namespace

void bind_ops_arrays(nb::module_& m) {
  nb::module_ ops = m.def_submodule("ops");
  bind_creation(ops);
  bind_random(ops);
  bind_shapes(ops);
}

}  // namespace palimpsest::python
