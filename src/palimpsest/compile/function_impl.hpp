// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "palimpsest/compile/frame.hpp"
#include "palimpsest/compile/function.hpp"
#include "palimpsest/compile/planner.hpp"

namespace palimpsest {

/// A compiled function: the immutable graph, its plans per signature, and their idle frames.
///
/// A call (1) filters the arguments, (2) locks the containers in the order of their ids, shared or
/// exclusive, (3) finds the plan and a frame, (4) makes private what must not be overwritten and
/// allocates the results, (5) runs the steps, (6) commits the updates. Everything that can fail
/// comes before the first step that overwrites a container.
struct Function::Impl {
 public:
  Impl(std::vector<In> inputs, std::vector<Out> outputs, FunctionGraph graph,
       std::vector<std::shared_ptr<Container>> containers, std::vector<int> updated,
       std::string name);

  void call(std::span<const Tensor> arguments, std::span<Tensor> results, CallReport* report) const;
  void call_into(std::span<const Tensor> arguments, std::span<Tensor> destinations) const;
  const Plan& plan(std::span<const Tensor> arguments) const;
  const Plan& plan(std::span<const TensorType> arguments) const;
  std::size_t n_results() const { return outputs_.size(); }
  const FunctionGraph& graph() const { return graph_; }
  const std::string& name() const { return name_; }
  void prepare(std::span<const Tensor> arguments) const;
  void free() const;

 private:
  // A plan, the layouts it was made for, and the frames that wait for a call.
  struct Planned {
    std::vector<Layout> signature;
    Plan plan;
    std::vector<std::unique_ptr<Frame>> idle;
  };
  class ContainerLocks;
  class BorrowedFrame;

  std::string who(std::size_t argument) const;
  Tensor filtered(const Tensor& value, std::size_t argument) const;
  const Tensor& input_tensor(std::span<const Tensor> arguments, std::size_t i) const;
  Planned& planned_for(std::span<const Tensor> arguments) const;
  Planned& make_planned(std::vector<Layout> signature) const;
  Device device_of(std::span<const Tensor> arguments) const;
  void execute(std::span<const Tensor> arguments, std::span<Tensor> results,
               std::span<Tensor> destinations, CallReport* report) const;
  void run_locked(Planned& planned, Frame& frame, std::span<Tensor> results,
                  std::span<Tensor> destinations, CallReport* report) const;
  void bind_inputs(const Plan& plan, Frame& frame, index_t* copied) const;
  index_t bind_outputs(const Plan& plan, Frame& frame, std::span<Tensor> destinations) const;
  void check_destination(const Plan& plan, const Tensor& destination, std::size_t i) const;
  Tensor delivered(const Plan& plan, Frame& frame, const Delivery& delivery, Tensor& compact,
                   int result) const;
  Tensor tensor_within_storage(Frame& frame, const PlannedBuffer& buffer,
                               const Layout& layout) const;
  void commit(const Plan& plan, Frame& frame) const;

  std::vector<In> inputs_;
  std::vector<Out> outputs_;
  FunctionGraph graph_;
  std::vector<std::shared_ptr<Container>> containers_;
  std::vector<int> updated_;             // per update: which container
  std::vector<std::size_t> lock_order_;  // containers by id
  std::vector<bool> is_updated_;         // per container
  std::vector<bool> overwritten_;        // per graph input: does a step write its memory?
  std::string name_;

  mutable std::mutex mutex_;             // guards planned_ and all idle lists
  mutable std::deque<Planned> planned_;  // never moved: plans are handed out by reference
};

}  // namespace palimpsest
