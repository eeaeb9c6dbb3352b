// SPDX-License-Identifier: Apache-2.0
// Internal: programs whose extents are known only while they run.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "palimpsest/base/call_lock.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/compile/stages/cut.hpp"
#include "palimpsest/run/program.hpp"

namespace palimpsest {

/// A program in stages. A step whose elements decide extents (a mask, the number of steps of a
/// loop) or a choice ends a stage; the next stage is planned with the computed extents. Every stage
/// is a function of its own, compiled on its first use and planned once per signature.
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

  struct Signature {
    std::vector<In> inputs = {};
    std::vector<Variable> outputs;
  };
  /// A function for a part of the program, named by an address and a number: compiled at its first
  /// use.
  const Function& compiled(const void* part, int number,
                           const std::function<Signature()>& signature) const;

  const std::shared_ptr<const Config> config_;
  const FunctionOptions options_;  // of every stage
  const FunctionGraph graph_;      // keeps all nodes alive
  const Cut cut_;
  mutable CallLock lock_;
  // Guarded by lock_, changed in a ForkSection; entries keep their addresses.
  mutable std::map<std::pair<const void*, int>, Function> compiled_;
};

}  // namespace palimpsest
