// SPDX-License-Identifier: Apache-2.0
// Small random programs, each as a graph and as plain loops over vectors that share nothing with
// the library. All numbers are multiples of a power of 1/2 with few bits, so sums and products are
// exact in any order: every mode must give these results bit for bit.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "palimpsest/compile/function.hpp"

namespace palimpsest::testing {

/// A row-major array.
struct Plain {
  Extents shape;
  std::vector<double> data;
  static Plain of(const Tensor& t) { return {t.shape(), t.to_vector<double>()}; }
  bool equals(const Tensor& t) const { return shape == t.shape() && data == t.to_vector<double>(); }
};

class NaiveProgram {
 public:
  explicit NaiveProgram(std::uint32_t seed);

  const std::vector<In>& inputs() const { return inputs_; }
  const std::vector<Out>& outputs() const { return outputs_; }
  const std::vector<SharedVariable>& shared() const { return shared_; }
  const Updates& updates() const { return updates_; }
  bool is_lent(std::size_t input) const { return is_lent_[input]; }
  const Extents& shape_of_input(std::size_t input) const { return values_[input].shape; }

  /// Runs the plain loops: returns the outputs; `states` become the new ones.
  std::vector<Plain> run(const std::vector<Plain>& inputs, std::vector<Plain>& states) const;

  std::size_t pick(std::size_t n) { return random_() % n; }
  bool chance(int percent) { return static_cast<int>(random_() % 100) < percent; }
  /// Multiples of 1/8 of at most 4.
  Plain fresh(const Extents& shape);

 private:
  using Values = std::vector<Plain>;
  struct Value {
    Variable v;
    Extents shape;
    std::function<Plain(const Values&)> run;  // empty for inputs and states
  };
  using Positions = std::vector<std::size_t>;

  void make_roots();
  void make_step();
  void choose_results();

  // Each returns the number of the new value.
  std::size_t add(Variable v, Extents shape, std::function<Plain(const Values&)> run);
  std::size_t map(std::size_t a, const std::function<Variable(const Variable&)>& build,
                  double (*f)(double));
  std::size_t zip(std::size_t a, std::size_t b,
                  const std::function<Variable(const Variable&, const Variable&)>& build,
                  double (*f)(double, double));
  std::size_t gather(std::size_t a, Variable v, Extents shape, Positions positions);
  std::size_t update(std::size_t a, std::size_t b, Variable v, Positions positions, bool increase);
  std::size_t bounded(std::size_t a);

  void step_arithmetic(std::size_t a);
  void step_view(std::size_t a);
  void step_update(std::size_t a);
  void step_points(std::size_t a);
  void step_sums(std::size_t a);
  void step_product(std::size_t a);
  void step_choice(std::size_t a);
  void step_loop(std::size_t a);

  std::size_t any() { return pick(values_.size()); }
  /// A value of the same shape; `otherwise` if there is none.
  std::size_t like(std::size_t otherwise);

  std::mt19937 random_;
  bool known_;  // are extents known?
  std::vector<Value> values_;
  std::vector<In> inputs_;
  std::vector<bool> is_lent_;
  std::vector<SharedVariable> shared_;
  std::vector<Out> outputs_;
  std::vector<std::size_t> output_values_, update_values_, update_targets_;
  Updates updates_;
};

}  // namespace palimpsest::testing
