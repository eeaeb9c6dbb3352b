// SPDX-License-Identifier: Apache-2.0
// Internal: arrays of other packages, in and out, without copies.
#pragma once

#include "palimpsest/python/convert.hpp"

namespace palimpsest::python {

/// Kind of an array argument, and so of the results. Later kinds win over numpy; two of the others
/// do not go together.
enum class Kind : std::uint8_t { none, numpy, tensor, torch, cupy, jax, xarray };

/// The kind of the result of a call with arguments of these two. TypeError "mixed kinds".
Kind merged(Kind a, Kind b);

/// The kind that a text names: 'numpy', 'tensor', ..; none for None.
Kind kind_named(nb::handle name);
/// The kind of results for arguments of a kind, unless config.returns says another one.
Kind kind_returned(Kind of_arguments);

/// True for an object that import() takes as an array; false for numbers and lists of them.
bool is_array(nb::handle object);

/// The memory of an array, as a tensor. Copies only if no tensor can show it (another byte order,
/// unaligned addresses, strides that are not multiples of the item); these copies are counted in
/// import_copies().
///
/// Aliases  foreign memory, read-only if the array says so; the array lives as long as the tensor.
///          An array that this library exported comes back as a view of its Storage
/// Errors   DTypeError: float16, strings, objects, ..; TypeError: masked and sparse arrays, data
///          frames; ValueError "cannot be used in place": it must copy, and may_copy is false
Tensor import_array(nb::handle object, bool may_copy = true);
/// The tensor of an object of class Tensor; null for other objects.
const Tensor* tensor_in(nb::handle object);
/// The memory of an array that will be written; `who` begins errors.
Tensor writable_array(nb::handle object, const char* who);
Kind kind_of(nb::handle object);
/// Copies that import_array() made so far.
std::uint64_t import_copies();

/// The name of the dtype that is nearest to one that the library lacks.
const char* nearest_dtype(const std::string& name);

/// Drops the knowledge of classes when the interpreter ends.
void forget_classes();

/// An array, a number or a list of numbers. Numbers of Python are weak, those of NumPy are not.
/// `may_copy` as for import_array().
Value value_of(nb::handle object, bool may_copy = true);
/// The same, with the present value for a Parameter. TypeError: another Variable.
Value given_value(nb::handle object);
/// The value in a dtype that the caller chose. Arrays are converted as by astype(). Numbers of
/// Python must survive; only to a floating dtype they are rounded.
/// Errors  OverflowError: a number out of range; DTypeError: one that does not survive
Tensor converted_to(const Value& value, DType dtype, std::string_view who);
/// Data of an operator or a solver. Numbers of Python become floating in the precision `like`, if
/// they survive; without it integers become float64.
Tensor data_of(nb::handle object, std::optional<DType> like = {}, std::string_view who = "data");
/// The real dtype of the first parameter of an operator that does not take the precision of x.
std::optional<DType> precision_of(const NamedLinop& A);
/// The same for an operator: in the precision of its parameters.
Tensor data_for(const NamedLinop& A, nb::handle object);

/// Use that a call makes of the memory of an argument.
enum class Use : std::uint8_t {
  read,
  read_in_place,  ///< never a copy
  lent,           ///< may be written
};
/// The value of an argument of a call; the kind of an array is merged into `kind`.
Value argument_of(nb::handle object, Use use, Kind& kind);

/// The result of a call, as an array of a kind: numpy for numbers.
///
/// Aliases  writable, and shares no memory with another tensor: memory shared with a lazy clone is
///          copied before. The memory stays in place while the array lives
nb::object export_array(Tensor&& result, Kind kind);
/// Over the memory of this very tensor. Data that are shared with a lazy clone are copied first,
/// and lazy clones that are made while the array lives are copies.
nb::object export_in_place(Tensor&& tensor, Kind kind);
/// Over memory that a function lends until its next call; read-only if the memory is.
nb::object export_lent(Tensor&& result, Kind kind);
/// A result of the kind of an argument, or that of config.returns, with a name for signatures.
struct ArrayObject : nb::object {
  ArrayObject(nb::object array) : nb::object(std::move(array)) {}
};
ArrayObject array_like(nb::handle argument, Tensor&& result);
/// An argument as it was given.
struct ArrayGiven : nb::handle {
  using nb::handle::handle;
};
/// Read-only, never copies.
nb::object export_read_only(const Tensor& tensor);

}  // namespace palimpsest::python

namespace nanobind::detail {

template <>
struct type_caster<palimpsest::python::ArrayObject> {
  static constexpr auto Name = const_name("Array");
  static handle from_cpp(const palimpsest::python::ArrayObject& value, rv_policy,
                         cleanup_list*) noexcept {
    return value.inc_ref();
  }
};
template <>
struct type_caster<palimpsest::python::ArrayGiven> {
  NB_TYPE_CASTER(palimpsest::python::ArrayGiven, const_name("ArrayLike"))
  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    value = palimpsest::python::ArrayGiven(source.ptr());
    return true;
  }
};

}  // namespace nanobind::detail
