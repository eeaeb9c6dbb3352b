// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "palimpsest/base/api.hpp"
#include "palimpsest/base/view.hpp"
#include "palimpsest/graph/region.hpp"
#include "palimpsest/graph/variable.hpp"

namespace PALIMPSEST_API palimpsest {

/// Output position -> input positions.
using AliasMap = std::map<int, std::set<int>>;
/// (destroyed input, other input).
using IndexPairs = std::set<std::pair<int, int>>;

/// Position of an array in the memory of another one; the byte offset is from that one's first
/// element.
struct Layout {
  DType dtype = DType::float64;
  Extents extents;
  Strides strides;
  index_t byte_offset = 0;

  static Layout dense(DType dtype, Extents extents);
  bool is_dense() const;
  friend bool operator==(const Layout&, const Layout&) = default;
};

/// Kind of linearity of an op in one input, the others held fixed.
enum class Linearity {
  no,
  real,       // over the reals only: conj, real, imag
  complex,    // over the complex numbers
  conjugate,  // antilinear
};

/// Arguments of a kernel. Every output of known shape is allocated, in place where declared.
class RunContext {
 public:
  RunContext(std::span<const ConstView> inputs, std::span<const MutableView> outputs,
             std::span<std::byte> scratch)
      : inputs_(inputs), outputs_(outputs), scratch_(scratch) {}
  const ConstView& input(std::size_t i) const { return inputs_[i]; }
  const MutableView& output(std::size_t j) const { return outputs_[j]; }
  std::span<const ConstView> inputs() const { return inputs_; }
  std::span<const MutableView> outputs() const { return outputs_; }
  /// 64-byte aligned; arbitrary old content.
  std::span<std::byte> scratch() const { return scratch_; }
  /// Places output j outside of its destination: in an input that the op declares to view, in
  /// another output of the same group of output_aliases, or in memory of the op that stays until it
  /// runs again. The elements are taken from there when run() has returned; until then the view's
  /// memory must stay.
  void set_output(std::size_t j, const ConstView& where) { set_.emplace_back(j, where); }
  std::span<const std::pair<std::size_t, ConstView>> set_outputs() const { return set_; }
  /// For executors: copies the outputs that were set to the destinations.
  /// Errors  ShapeError, DTypeError: another extent or dtype than the destination's
  void take_set_outputs() const;

 private:
  std::span<const ConstView> inputs_;
  std::span<const MutableView> outputs_;
  std::span<std::byte> scratch_;
  std::vector<std::pair<std::size_t, ConstView>> set_;
};

/// An operation: immutable, compared by value, shared by all its applications. All its declarations
/// follow from name() and parameters(), by which ops are compared, and from its inputs.
///
/// Aliases  the default is the safe one: no output shares memory with an input, no input is
///          overwritten. An op declares every exception here.
/// Threads  all members may be called concurrently
class Op : public std::enable_shared_from_this<Op> {
 public:
  virtual ~Op() = default;

  /// The registered name, such as `Fft`.
  virtual std::string name() const = 0;
  /// Every parameter, in a form that differs whenever two ops differ: `axes=(0, 1), forward=1`.
  virtual std::string parameters() const { return {}; }
  /// `name{parameters}`: equality and hash of ops are those of this text.
  std::string str() const;

  /// Equal for equal ops.
  std::size_t hash() const { return std::hash<std::string>{}(str()); }

  /// Checks the inputs and gives the application with its output types.
  virtual Apply make_node(std::span<const Variable> inputs) const = 0;

  // -- aliasing --------------------------------------------------------------------------------
  virtual AliasMap view_map(const Apply&) const { return {}; }
  virtual AliasMap destroy_map(const Apply&) const { return {}; }
  /// Overwritten inputs without an output in their memory.
  virtual std::set<int> destroyed_inputs(const Apply&) const { return {}; }
  /// Groups of outputs that are views of one fresh buffer each.
  virtual std::vector<std::set<int>> output_aliases(const Apply&) const { return {}; }
  /// Pairs (destroyed input d, other input j) that may be the same variable.
  virtual IndexPairs tolerate_same(const Apply&) const { return {}; }
  /// Pairs (destroyed input d, other input j) that may overlap; the kernel handles it.
  virtual IndexPairs tolerate_aliased(const Apply&) const { return {}; }
  /// Elements of input `in` that output `out` shows. The default: unknown for a view, the same ones
  /// in the same order for an output that overwrites the input.
  virtual Region view_region(const Apply&, int out, int in) const;
  /// The part of input `in` that running the op overwrites.
  virtual Region write_region(const Apply&, int) const { return Region::whole(); }
  /// True if the op reads bytes of this input; false if only its address or extents matter.
  virtual bool reads(const Apply& apply, int in) const { return uses_elements(apply, in); }
  /// The same op working in place on some of the allowed inputs; null if it cannot.
  virtual OpPtr inplace_on_inputs(const Apply&, const std::set<int>&) const { return nullptr; }
  /// The twin without a destroy map.
  virtual OpPtr pure() const { return shared_from_this(); }
  /// Layout of output `out`, a view of input `in`, in the memory of `in`. Nothing when these
  /// strides allow no view: run() then makes a dense copy.
  virtual std::optional<Layout> view_layout(const Apply&, int out, const Layout& in) const;

  // -- planning --------------------------------------------------------------------------------
  /// Extents of the outputs, given those of the inputs. ShapeError when they do not fit.
  virtual std::vector<Extents> infer_shapes(const Apply&,
                                            std::span<const Extents> inputs) const = 0;
  virtual std::size_t scratch_bytes(const Apply&, std::span<const Layout>) const { return 0; }
  /// True if run() may throw on inputs that make_node and infer_shapes accepted. Such an op never
  /// overwrites a shared variable in place: a failed call leaves it as it was.
  virtual bool can_fail() const { return true; }
  /// True if it may be computed twice to save memory.
  virtual bool is_cheap() const { return false; }

  // -- derivatives -----------------------------------------------------------------------------
  virtual Linearity linear_in(const Apply&, int) const { return Linearity::no; }
  /// True if the output is a sum of parts, each linear in one input (add, join). False if it is a
  /// product, linear in each input while the others are held fixed. Asked of ops with several
  /// inputs that have a linear_in.
  virtual bool is_linear_sum(const Apply&) const { return false; }
  /// False: only the extents of this input matter, not its elements.
  virtual bool uses_elements(const Apply&, int) const { return true; }
  /// Given the cotangents of the outputs (undefined where zero), those of the inputs (undefined
  /// where zero), for the real inner product Re<u, v>; of a complex-linear A that is A^H.
  /// NotSupported when the op has none.
  virtual std::vector<Variable> pullback(const Apply&, std::span<const Variable> cotangents) const;
  /// Given the tangents of the inputs (undefined where zero), those of the outputs (undefined where
  /// zero). Empty: the op has no rule of its own, since it follows from linear_in or pullback.
  virtual std::vector<Variable> pushforward(const Apply&, std::span<const Variable>) const {
    return {};
  }

  // -- looking at it ---------------------------------------------------------------------------
  /// Results of the graph inside, such as the body of a loop.
  virtual std::span<const Variable> inner_results() const { return {}; }

  // -- running ---------------------------------------------------------------------------------
  /// Largest difference between layouts of destinations, in rounding errors per square root of the
  /// number of terms of an element; 0: equal bit for bit.
  virtual double tolerance(const Apply&) const { return 16; }
  virtual void run(RunContext& context) const = 0;

  friend bool operator==(const Op& a, const Op& b) { return a.str() == b.str(); }

 protected:
  /// Apply::make with this op.
  Apply node(std::span<const Variable> inputs, std::vector<TensorType> types) const;
};

/// The inputs that a node overwrites, by destroy_map or destroyed_inputs.
std::set<int> overwritten_inputs(const Apply& apply);

/// Errors  ValueError: a declared position out of range, a tolerance on an input that is not
///         overwritten, declared regions of two outputs in one overwritten input that overlap
void check_declarations(const Apply& apply);

}  // namespace palimpsest
