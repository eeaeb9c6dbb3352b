// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <concepts>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/linop/core/attribute.hpp"
#include "palimpsest/linop/core/linop_type.hpp"
#include "palimpsest/linop/core/parameter.hpp"
#include "palimpsest/named/named_shape.hpp"
#include "palimpsest/named/sizes.hpp"
#include "palimpsest/plan/plan.hpp"

namespace PALIMPSEST_API palimpsest {

struct LinopNode;
struct LinopData;

/// When the data of a deep copy are copied: when either side is written, or now.
enum class Copy { lazy, eager };

using Parameters = std::vector<std::pair<std::string, Parameter>>;
using Attributes = std::vector<std::pair<std::string, Attribute>>;

/// Exact numbers of output and input elements.
struct MatrixSize {
  index_t rows = 0, columns = 0;
  friend bool operator==(const MatrixSize&, const MatrixSize&) = default;
};

/// A linear operator whose axes have names: a cheap handle to an immutable node.
///
/// Aliases  copying the handle keeps the operator: `a.is(b)`. A setter replaces the node of this
///          handle by a changed shallow copy; no other handle, container or cached operator sees
///          it. The values of parameters are shared
/// Threads  const members may be called concurrently
class NamedLinop {
 public:
  /// No operator: every member but defined() throws ValueError.
  NamedLinop() = default;
  explicit NamedLinop(std::shared_ptr<const LinopNode> node) : node_(std::move(node)) {}

  // -- identity --------------------------------------------------------------------------------
  bool defined() const { return node_ != nullptr; }
  /// True for the same operator.
  bool is(const NamedLinop& other) const { return node_ == other.node_; }
  const LinopType& type() const;
  /// The name as printed; the type's unless it was set.
  const std::string& name() const;
  /// The functions in effect; an adjoint has fn and adj_fn exchanged.
  const LinopFunctions& functions() const;
  /// True if fn and adj_fn are exchanged with respect to the type.
  bool is_flipped() const;
  const NamedShape& shape() const;
  const Dims& ishape() const { return shape().ishape(); }
  const Dims& oshape() const { return shape().oshape(); }
  /// All dimensions of the input and the output, and of all children.
  Dims dims() const;
  /// Size of a dimension: as the type knows it, else as recorded, else none.
  std::optional<index_t> size(const ND& d) const;
  /// Recorded sizes.
  DimMap recorded_sizes() const;
  /// Numbers of elements. ShapeError "is unknown" naming the dimension; OverflowError. Without
  /// extents an ellipsis is empty.
  MatrixSize matrix_size() const;
  MatrixSize matrix_size(const Extents& input_extents) const;
  /// The extents of the result for an input of these extents.
  Extents output_shape(const Extents& input_extents) const;

  /// NameError if there is no parameter of that name.
  const Parameter& param(std::string_view name) const;
  bool has_param(std::string_view name) const;
  const Parameters& params() const;
  const Attribute& attr(std::string_view name) const;
  bool has_attr(std::string_view name) const;
  const Attributes& attrs() const;
  /// Children of a container.
  const std::vector<NamedLinop>& linops() const;
  std::size_t linop_count() const { return linops().size(); }
  const NamedLinop& operator[](std::size_t i) const;
  /// The container of the children first .. last - 1.
  NamedLinop slice(std::size_t first, std::size_t last) const;

  /// `Name(ishape -> oshape)`; containers as a tree.
  std::string str() const;

  // -- setters ---------------------------------------------------------------------------------
  void set_ishape(const Dims& dims);
  void set_oshape(const Dims& dims);
  /// Sets both sides at once; shapes besides ishape and oshape follow the renaming.
  void set_shape(const NamedShape& shape);
  void rename(const Renaming& names);
  void set_name(std::string name);
  void set_param(std::string_view name, Parameter value);
  void erase_param(std::string_view name);
  void set_attr(std::string_view name, Attribute value);
  void set_linops(std::vector<NamedLinop> children);

  NamedLinop renamed(const Renaming& names) const;
  NamedLinop named(std::string name) const;
  /// Records sizes. ShapeError "Conflicting" when one contradicts a known size.
  NamedLinop with_sizes(const DimMap& sizes) const;

  // -- operators made from it -------------------------------------------------------------------
  /// A new node with the same parameters, attributes, children and functions; caches are empty.
  NamedLinop copy() const;
  /// An operator that shares no writable data with this one. Its parts share with one another as
  /// the parts here do: nodes, variables, storages with their overlaps. Only used bytes are copied.
  /// Caches start empty.
  /// Errors   OutOfMemory: nothing has happened
  NamedLinop deepcopy(Copy when = Copy::lazy) const;
  /// The operator with its data on another device; itself if they are there. The data of its
  /// adjoint and its normal operator move with it. On an rvalue the memory is released while it is
  /// copied.
  /// Errors   OutOfMemory: nothing was copied or released
  NamedLinop to(Device device) const&;
  NamedLinop to(Device device) &&;
  /// The operator in the precision of a dtype: itself if it has it. Integers, and weights that take
  /// the precision of x, stay.
  /// Errors   DTypeError: no floating or complex dtype; "reinterpreted": a storage that is also
  ///          read as another kind of number
  NamedLinop to(DType dtype) const;
  /// The adjoint. `A.H().H().is(A)` as long as a handle of A lives.
  NamedLinop H() const;
  /// The normal operator A^H A: its own adjoint.
  NamedLinop N(Output output = Output::same) const;
  NamedLinop normal() const { return N(); }
  /// A^H inner A. ShapeError "Mismatched" unless inner takes vectors of A's oshape.
  NamedLinop normal(const NamedLinop& inner) const;
  /// NotSupported when the type has none.
  NamedLinop inverse() const;
  /// The operator on a part of its dimensions, exactly or not at all. Parameters are cut as views;
  /// nothing is copied. A dimension of ishape cuts the input, one of oshape the output, one of both
  /// is separable, and along one of neither the parts are summands. Dimensions that the operator
  /// does not have are ignored.
  ///
  /// Errors   SplitError "cannot split", also "resolve" where wildcards may hide the dimension;
  ///          ValueError "empty", "out of range", "step"; ShapeError "is unknown"
  NamedLinop split(const Tile& tile) const;
  /// x -> A(B(x)).
  NamedLinop compose(const NamedLinop& B) const;

  // -- applying --------------------------------------------------------------------------------
  /// The graph of an application.
  /// Errors   ShapeError: "expects", a size that differs; DTypeError: "floating", "precision";
  ///          DeviceError. All start with the path of the operator
  Variable operator()(const Variable& x) const;
  /// Compiles once per shape, dtype and device, and runs. x is never written; the result is the
  /// caller's.
  Tensor operator()(const Tensor& x) const;
  /// Writes the result into `out`, which may overlap x.
  /// Errors   ShapeError, DTypeError: another type than the result's; AliasError: out overlaps a
  ///          parameter
  void apply(const Tensor& x, Tensor& out) const;
  /// Plan of an application to a dense array of this type, without running it.
  Plan plan(const TensorType& x) const;
  /// Plan of the application to this very tensor: see Function::plan_of_call().
  Plan plan_of_call(const Tensor& x) const;

  const std::shared_ptr<const LinopNode>& node() const { return node_; }

 private:
  const LinopData& data() const;
  void replace(LinopData data);

  std::shared_ptr<const LinopNode> node_;
};

/// An operator of a type. The type must live as long as any operator of it.
/// Errors   those of the type's check
NamedLinop make_linop(const LinopType& type, NamedShape shape, Parameters parameters = {},
                      Attributes attributes = {});
/// A container of a type that has `assemble`; `others` are shapes besides ishape and oshape.
NamedLinop make_container(const LinopType& type, std::vector<NamedLinop> children,
                          Attributes attributes = {}, NamedShape::Others others = {});

/// Same type, names and attributes, the same parameters, identical children.
bool identical(const NamedLinop& a, const NamedLinop& b);
std::ostream& operator<<(std::ostream& stream, const NamedLinop& A);

// -- algebra -------------------------------------------------------------------------------------
/// The children of a Chain, children that are Chains included; any other operator alone.
std::vector<NamedLinop> flatten(const NamedLinop& A);

/// A number in front of or behind an operator.
struct LinopScalar {
  template <std::integral T>
  LinopScalar(T v) : value(static_cast<double>(v)) {}
  template <std::floating_point T>
  LinopScalar(T v) : value(static_cast<double>(v)) {}
  template <std::floating_point T>
  LinopScalar(std::complex<T> v) : value(v) {}
  std::complex<double> value;
};

/// x -> A(B(x)).
NamedLinop operator*(const NamedLinop& A, const NamedLinop& B);
NamedLinop operator+(const NamedLinop& A, const NamedLinop& B);
NamedLinop operator-(const NamedLinop& A, const NamedLinop& B);
NamedLinop operator-(const NamedLinop& A);
/// Scales the output.
NamedLinop operator*(const LinopScalar& s, const NamedLinop& A);
NamedLinop operator*(const Parameter& s, const NamedLinop& A);
/// Scales the input.
NamedLinop operator*(const NamedLinop& A, const LinopScalar& s);
NamedLinop operator*(const NamedLinop& A, const Parameter& s);
/// ValueError "division by zero".
NamedLinop operator/(const NamedLinop& A, const LinopScalar& s);
/// By the value that the parameter has when it is applied.
NamedLinop operator/(const NamedLinop& A, const Parameter& s);
Tensor operator*(const NamedLinop& A, const Tensor& x);
Variable operator*(const NamedLinop& A, const Variable& x);
/// A applied n times; 0 gives Identity. Needs n >= 0 and ishape = oshape.
NamedLinop pow(const NamedLinop& A, int n);
/// Elementwise, of Diagonal, Scalar and Identity only; others need a whole number.
NamedLinop pow(const NamedLinop& A, double n);

}  // namespace palimpsest
