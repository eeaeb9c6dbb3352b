// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "palimpsest/base/fork.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/graph/origin.hpp"
#include "palimpsest/linop/core/named_linop.hpp"

namespace palimpsest {

struct UserFunctions;

/// Everything that an operator is. A copy is the start of another operator.
struct LinopData {
  const LinopType* type = nullptr;
  LinopFunctions functions;
  GraphFn adj_normal_fn = nullptr;
  bool flipped = false;
  /// A = A^H by construction, as of a normal operator.
  bool self_adjoint = false;
  std::string name;
  NamedShape shape;  // recorded sizes are its map "sizes"
  Parameters params;
  Attributes attrs;
  std::vector<NamedLinop> children;
  std::shared_ptr<const UserFunctions> user;  // of a SimpleLinop
};

/// The immutable node behind a handle, and its caches.
///
/// Invariants
///  1. data never changes: all handles are to a const node.
///  2. Caches own in one direction only: a node owns its cached adjoint, which refers back weakly;
///     the cached normal operator does not contain the node, nor one that owns it.
struct LinopNode {
  explicit LinopNode(LinopData d);
  LinopNode(const LinopNode&) = delete;
  LinopNode& operator=(const LinopNode&) = delete;
  /// Takes trees of any depth apart.
  ~LinopNode();

  LinopData data;

  struct Compiled {
    TensorType type;
    std::optional<index_t> budget;  // that it was made for
    Function function;
  };
  mutable Mutex mutex;  // guards the members below
  mutable std::shared_ptr<const LinopNode> adjoint;
  mutable std::weak_ptr<const LinopNode> adjoint_of;
  mutable std::shared_ptr<const LinopNode> normal;
  mutable std::vector<Compiled> compiled;  // the most recently used last
  // Of containers: all dimensions, and the sizes that were asked for.
  mutable std::optional<Dims> dims;
  mutable std::map<ND, std::optional<index_t>> sizes;
  // Compiled programs of solvers, which hold no operator. The most recently used last.
  mutable std::vector<std::shared_ptr<void>> solves;
};

/// A node without a check of its arguments, which hold for the operator that the data are from.
NamedLinop from_data(LinopData data);
/// A node whose arguments are checked, with the parameters that follow from them.
NamedLinop from_arguments(LinopData data);
/// The data of an operator, to be changed into another one's.
LinopData copy_data(const NamedLinop& A);

/// The default name of operators of a type: the type's name without prefix.
std::string usual_name(const LinopType& type);

/// The map "sizes" of a shape; empty if there is none.
DimMap sizes_in(const NamedShape& shape);
/// The shape with other recorded sizes.
NamedShape with_sizes_in(const NamedShape& shape, const DimMap& sizes);

/// The dimensions that a simplified normal operator sums over within itself: it cannot be cut along
/// them. They are the shape "absorbed".
Dims absorbed_dims(const NamedLinop& A);
/// The operator with these among its absorbed dimensions.
NamedLinop with_absorbed(const NamedLinop& A, const Dims& dims);

/// The operator with those of the sizes that it does not know.
NamedLinop completed(const NamedLinop& A, const DimMap& sizes);
/// The operator with the sizes of an input recorded for dimensions of unknown size.
NamedLinop sized_for(const NamedLinop& A, const TensorType& x);

/// `made` with the sizes that A has recorded and the dimensions that it has absorbed.
NamedLinop with_records_of(const NamedLinop& A, const NamedLinop& made);

/// The compiled application to tensors of a type, from the cache or new; of the operator cut into
/// tiles where config().budget asks for it.
Function compiled_function(const NamedLinop& A, const TensorType& x);

// The graphs of an operator's table entries, composed or transposed where an entry is null. The
// input has been checked.
Variable forward_graph(const NamedLinop& A, const Variable& x);
Variable adjoint_graph(const NamedLinop& A, const Variable& y);
Variable normal_graph(const NamedLinop& A, const Variable& x);

/// Makes the functions of the adjoint of those of an operator.
void exchange_functions(LinopData& data);

/// The adjoint, for types with self-adjoint operators only.
NamedLinop own_adjoint(const NamedLinop& A);
/// Generic rule for A^H inner A.
NamedLinop composed_normal(const NamedLinop& A, const NamedLinop* inner);

/// The dtype that data of this operator would have: complex, of the precision of its parameters.
DType natural_dtype(const NamedLinop& A);

/// Linear over the reals only: its type is, or a child.
bool is_real_linear(const NamedLinop& A);

/// True if a parameter of the operator itself is trainable. Values derived from it are then
/// trainable too.
bool has_trainable(const NamedLinop& A);

/// `[path of A] `: the start of every message. Inside a container's graph the path leads there.
std::string who(const NamedLinop& A);
/// The same without the brackets.
std::string path_of(const NamedLinop& A);

/// palimpsest::bind() with errors that name A. Their path is made for an error only: in a deep tree
/// it is long.
DimSizes bind_of(const NamedLinop& A, const Dims& dims, const Extents& extents,
                 const DimSizes& known = {});

/// OutOfMemory if little of the stack of this thread is left: operators that are nested very deep
/// are applied by recursion.
void check_stack(const NamedLinop& A);

/// The way to the containers around, for graphs.
std::shared_ptr<const Way> way_here();

/// While it lives, paths lead through child `index` of a container.
class PathScope {
 public:
  PathScope(const NamedLinop& container, std::size_t index);
  ~PathScope();
  PathScope(const PathScope&) = delete;
  PathScope& operator=(const PathScope&) = delete;

 private:
  friend std::string path_of(const NamedLinop& A);
  friend std::shared_ptr<const Way> way_here();
  std::shared_ptr<const Way> way() const;

  const PathScope* const outer_;
  const NamedLinop& container_;
  const std::size_t index_;
  mutable std::shared_ptr<const Way> way_;  // made when it is asked for
};

}  // namespace palimpsest
