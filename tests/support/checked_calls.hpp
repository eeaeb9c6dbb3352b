// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "support/random_program.hpp"
#include "support/window.hpp"

namespace palimpsest::testing {

/// Calls of a function of a program on random arguments, which may share memory in every way. After
/// each call results and states are the expected ones, and no other memory of the user has changed.
class CheckedCalls {
 public:
  /// `windows`: percent of calls that write into windows of larger arrays.
  CheckedCalls(RandomProgram& program, Function f, int windows = 40);

  /// Expects what `other` gives on the same arguments; null: what the plain loops give.
  void call(const Function* other = nullptr);
  std::vector<Tensor> arguments();
  std::vector<Tensor> states() const;
  void set_states(const std::vector<Tensor>& values);

 private:
  using Tensors = std::vector<Tensor>;

  void change_containers();
  Tensor argument(const Extents& shape, const Tensors& before);
  Tensor alone(const Extents& shape);
  Tensors of_loops(const Tensors& arguments, const std::vector<bool>& given, Tensors& states);
  Tensors of_function(const Function& other, const Tensors& arguments,
                      const std::vector<bool>& given, Tensors& states);
  Tensors called(const Function& f, const Tensors& arguments, const std::vector<bool>& given,
                 const Tensors* destinations);
  Tensors unlent(const Tensors& arguments, const std::vector<bool>& given) const;
  Tensors outside_of_loans(const Tensors& arguments) const;
  Tensors defaults() const;
  std::vector<bool> workspaces(const Tensors& arguments, const std::vector<bool>& given) const;
  void expect_values(const Tensors& now, const Tensors& expected, const char* what) const;
  void check_kept() const;
  void check_independence(const Tensors& results) const;

  RandomProgram& program_;
  Function function_;
  int windows_percent_;
  Tensors arrays_;                               // of the user, around arguments
  Tensors lent_;                                 // to containers
  std::vector<std::pair<Tensor, Tensor>> kept_;  // each with its expected value
  std::vector<Windows> windows_;
};

}  // namespace palimpsest::testing
