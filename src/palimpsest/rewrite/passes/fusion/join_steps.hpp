// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "palimpsest/ops/elementwise/elementwise_op.hpp"
#include "palimpsest/rewrite/pipeline.hpp"

namespace palimpsest {

/// Steps with equal programs share one op, and with it the state prepared for its runs.
class SharedOps {
 public:
  std::shared_ptr<const ops::Elementwise> op_of(ElementwiseProgram program) {
    auto& alike = ops_[hash_of(program)];
    for (const auto& op : alike) {
      if (op->program() == program) return op;
    }
    return alike.emplace_back(std::make_shared<const ops::Elementwise>(std::move(program)));
  }

 private:
  static std::uint64_t hash_of(const ElementwiseProgram& program) {
    std::uint64_t hash = program.inputs().size();
    const auto add = [&](auto word) {
      hash = (hash ^ static_cast<std::uint64_t>(word)) * 0x9E3779B97F4A7C15;
      hash ^= hash >> 32;
    };
    for (const ElementwiseProgram::Instruction& i : program.instructions()) {
      add(i.op);
      add(i.destination);
      for (const std::int16_t source : i.sources) add(source);
    }
    return hash;
  }

  std::unordered_map<std::uint64_t, std::vector<std::shared_ptr<const ops::Elementwise>>> ops_;
};

/// Results of the graph that read the same array, or of which one reads the other, become one pass
/// with several arrays, unless apart they could overwrite more values.
///
/// Contract  equal bit for bit
/// Order     one sweep, after chains are fused
int join_results(FunctionGraph& graph, const RewriteHints& hints, SharedOps& ops);

/// Sums over all elements, such as norms and inner products, are taken in the elementwise step that
/// makes their operand, or in one that reads it, unless readers of its arrays wait for the sum: one
/// pass instead of two. Sums of fewer than `least` elements stay; unknown extents count as 1.
///
/// Contract  arrays are equal bit for bit; an inner product adds its terms in another order
/// Order     one sweep, after elementwise steps and reductions are fused
int join_sums(FunctionGraph& graph, index_t least);

}  // namespace palimpsest
