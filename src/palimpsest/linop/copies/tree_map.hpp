// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/linop/core/node.hpp"
#include "palimpsest/memory/memory_map.hpp"

// Copies of operators, variables and tensors when the memory that they live in is copied. The
// machinery behind deepcopy(), to() and save().
namespace palimpsest {

/// Storages in another precision. Each is converted once, as its real numbers, so that views, gaps
/// and sharing stay, with scaled offsets.
class Conversion {
 public:
  /// `who`: begins the text of errors.
  Conversion(DType target, std::string who) : real_(real_of(target)), who_(std::move(who)) {}

  bool changes(DType dtype) const { return is_inexact(dtype) && real_of(dtype) != real_; }
  DType converted(DType dtype) const { return is_complex(dtype) ? complex_of(real_) : real_; }
  /// Notes that the storage of t is read as this dtype. All that is seen of one storage must scale
  /// alike.
  /// Errors   DTypeError: it is read as another one already
  void note(const Tensor& t, DType dtype);
  void add(MemoryMap& map, const Tensor& t);
  /// Makes one storage of the other precision for each that has been added; the map is done.
  void convert(const MemoryMap& map);
  Tensor mapped(const MemoryMap& map, const Tensor& t) const;

 private:
  struct Converted {
    Tensor reals;
    std::int64_t lo = 0;  // where its first byte was
  };

  DType real_;
  std::string who_;
  std::map<std::uint64_t, DType> kinds_;  // by storage
  std::vector<Tensor> tensors_;
  std::map<std::uint64_t, Converted> storages_;
};

/// Invariants
///  1. A node, a variable, a view of a variable has one counterpart, on any path to it.
///  2. A variable that is reached only by views becomes one over the storage of their bytes; any
///     other is copied whole, and its views keep their places.
///  3. Derived values keep the graph that computes them, on the counterparts of its inputs.
class TreeMap {
 public:
  struct Options {
    bool caches = false;  ///< also cached adjoints and normal operators, at every level
    bool moves = false;   ///< derived values are data like others; unmoved parts are not made anew
    Device device = {};   ///< with `moves`: where to
    /// To another precision: values that follow from other parameters are computed anew, other
    /// derived values are data, parts that keep their values stay. It outlives the map.
    Conversion* conversion = nullptr;
  };
  explicit TreeMap(Options options) : options_(options) {}
  TreeMap() = default;

  /// Finds everything that is reachable. Reads no value.
  void collect(const NamedLinop& A);
  bool knows(const NamedLinop& A) const { return nodes_.contains(A.node().get()); }
  /// The containers of the variables that were found.
  std::vector<std::shared_ptr<Container>> containers() const;
  /// Containers of variables that are not derived.
  std::vector<std::shared_ptr<Container>> variables() const;
  /// Makes this the counterpart of a variable that was found and is not read yet.
  void give(const Container& container, SharedVariable counterpart);
  /// The copies of variables that were copied whole, and their originals.
  std::unordered_map<const Container*, std::shared_ptr<Container>> whole_copies() const;
  /// Takes the present values and registers the new storages. The containers are held.
  void read(MemoryMap& map);
  /// The counterpart, once the map is done. The containers need not be held.
  NamedLinop mapped(const MemoryMap& map, const NamedLinop& A);
  /// Nodes found, children before parents.
  const std::vector<NamedLinop>& nodes() const { return order_; }
  /// Lets go of everything that it was made from.
  void forget();

  /// Bytes of derived values by device, once read.
  std::vector<Tensor> derived_values() const;

 private:
  struct Piece {
    ElementLayout layout;
    Tensor tensor;
    ElementLayout made;
  };
  struct Cell {
    std::shared_ptr<Container> container;
    Tensor value;
    bool is_whole = false, is_read = false, is_made = false, stays = false;
    std::vector<Piece> pieces;
    SharedVariable made;
  };
  // Input of the graph of a derived value: a variable, or a view of one.
  struct Source {
    Variable in_graph;
    Container* container = nullptr;
    std::optional<ElementLayout> layout;
  };
  struct Derived {
    Parameter original;
    std::vector<Source> sources;
    std::optional<std::vector<std::uint64_t>> computed_from;
    Tensor value;
    bool is_read = false, is_stale = true, is_made = false;
    Parameter made;
  };

  void collect_tree(const NamedLinop& root);
  void add_node(const NamedLinop& A);
  void add_parameter(const Parameter& p);
  void add_attribute(const Attribute& a);
  void add_variable(const std::shared_ptr<Container>& container,
                    const std::optional<ElementLayout>& layout);
  static std::vector<Source> sources_of(const Variable& expression);
  bool is_left(const NamedLinop& A, std::string_view name, const Parameter& p) const;
  bool is_derived(const Parameter& p) const { return p.is_derived() && !options_.conversion; }
  bool keeps_precision(const Cell& cell) const;
  Tensor counterpart(const Tensor& t, const MemoryMap& map) const;
  void read(Cell& cell, MemoryMap& map);
  void make(Cell& cell, const MemoryMap& map);
  void make(Derived& derived, const MemoryMap& map);
  bool stays(const Derived& derived);
  Parameter mapped(const Parameter& p, const MemoryMap& map);
  Attribute mapped(const Attribute& a, const MemoryMap& map) const;
  bool stays(const NamedLinop& A);
  bool stays(const Attribute& a) const;
  void make_nodes(const MemoryMap& map);
  void link_caches();
  void link_adjoint(const NamedLinop& owner, const NamedLinop& other);

  Options options_;
  std::unordered_map<const LinopNode*, NamedLinop> nodes_;  // and their counterparts, once made
  std::unordered_set<const LinopNode*> in_tree_;            // reached through children alone
  std::vector<NamedLinop> order_;
  std::size_t n_made_ = 0;
  std::vector<Container*> cell_order_;
  std::unordered_map<const Container*, Cell> cells_;
  std::unordered_map<const Container*, Derived> derived_;
  std::vector<const Container*> derived_order_;
  std::vector<Tensor> attributes_;
  std::size_t n_attributes_read_ = 0;
  mutable Mutex mutex_;
};

}  // namespace palimpsest
