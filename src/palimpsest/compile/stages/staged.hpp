// SPDX-License-Identifier: Apache-2.0
// Internal: programs whose extents are known only while they run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "palimpsest/base/call_lock.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/run/program.hpp"

namespace palimpsest {

/// A program in stages. A step whose elements decide extents (a mask, the number of steps of a
/// loop, a branch with other extents) ends a stage; the next stage is planned with the computed
/// extents. Every stage is a function of its own, compiled on its first use and planned once per
/// signature.
///
/// Aliases  the stages compute the pure twins of the program's steps: no argument and no container
///          is overwritten. Values that no later stage needs are lent to the stage that reads them
/// Threads  may run any number of times at once
class StagedProgram : public Stages {
 public:
  static std::shared_ptr<const Stages> make(const Program& program);
  explicit StagedProgram(const Program& program);

  Result run(std::span<const Tensor* const> inputs) const override;

 private:
  friend class StagedRun;
  using Key = std::vector<std::uintptr_t>;

  /// Compiles at the first use of a key.
  const Function& piece(const Key& key, const std::function<Function()>& make) const;
  /// `choices`: the values that stand for outputs of decided choices.
  Function compiled(std::vector<In> inputs, const std::vector<Variable>& outputs,
                    const Givens& choices = {}) const;

  const std::shared_ptr<const Config> config_;
  const FunctionOptions options_;           // of every stage
  std::vector<Variable> inputs_, outputs_;  // keep all nodes alive, which keys refer to
  mutable CallLock lock_;
  // Guarded by lock_, changed in a ForkSection; entries keep their addresses.
  mutable std::map<Key, Function> pieces_;
};

}  // namespace palimpsest
