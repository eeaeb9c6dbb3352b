// SPDX-License-Identifier: Apache-2.0
// Small random programs, each as a graph and as plain loops over vectors that share nothing with
// the library.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "palimpsest/compile/function.hpp"

namespace palimpsest::testing {

/// A row-major array.
struct Plain {
  Extents shape;
  std::vector<double> data;
};

struct ProgramOptions {
  /// False: vectors and small matrices of multiples of a power of 1/2 with few bits. Sums and
  /// products are exact in any order, so every mode must give the numbers of the plain loops.
  /// True: square matrices of normal numbers; functions are compared with one another.
  bool is_rounded = false;
  /// Percent of the results that are parts or views of values.
  int parts = 15;
  /// Of arguments and shared variables.
  Device device = {};
};

class RandomProgram {
 public:
  explicit RandomProgram(std::uint32_t seed, ProgramOptions options = {});

  Function compiled(const Mode& mode) const;
  const std::vector<In>& inputs() const { return inputs_; }
  const std::vector<Out>& outputs() const { return outputs_; }
  std::vector<SharedVariable>& shared() { return shared_; }
  const FunctionOptions& options() const { return options_; }
  bool is_rounded() const { return is_rounded_; }
  Device device() const { return device_; }
  bool is_lent(std::size_t input) const { return is_lent_[input]; }
  bool has_default(std::size_t input) const { return inputs_[input].options.value.defined(); }
  const Extents& shape_of_input(std::size_t input) const { return values_[input].shape; }

  /// Runs the plain loops: returns the outputs; `states` become the new ones.
  std::vector<Plain> run(const std::vector<Plain>& inputs, std::vector<Plain>& states) const;

  std::size_t pick(std::size_t n) { return random_() % n; }
  bool chance(int percent) { return static_cast<int>(random_() % 100) < percent; }
  /// Multiples of 1/8 of at most 4, or normal numbers.
  Tensor fresh(const Extents& shape);
  /// The graph and its options, to find the cause of a failure.
  std::string describe() const;

 private:
  using Values = std::vector<Plain>;
  using Loops = std::function<Plain(const Values&)>;
  using Positions = std::vector<std::size_t>;
  struct Computed {
    Variable v;
    Extents shape;
    Loops run;  // empty for inputs and states
  };

  void make_roots();
  void choose_results();
  void choose_given();

  // Each returns the number of the new value.
  std::size_t step();
  std::size_t arithmetic(std::size_t a);
  std::size_t view(std::size_t a);
  std::size_t updated(std::size_t a);
  std::size_t points(std::size_t a);
  std::size_t sums(std::size_t a);
  std::size_t reduced(std::size_t a, std::size_t axis);
  std::size_t product(std::size_t a);
  std::size_t choice(std::size_t a);
  std::size_t loop(std::size_t a);

  std::size_t add(Variable v, Extents shape, Loops run);
  // f takes variables, and numbers.
  template <class F>
  std::size_t map(std::size_t a, F f);
  template <class F>
  std::size_t zip(std::size_t a, std::size_t b, F f);
  // Elements of some values, one after the other.
  std::size_t gather(const std::vector<std::size_t>& from, Variable v, Extents shape,
                     Positions positions);
  std::size_t overwrite(std::size_t a, std::size_t b, Variable v, Positions positions,
                        bool increase);
  std::size_t bounded(std::size_t a);

  std::size_t any() { return pick(values_.size()); }
  /// A value of the same shape; `a` itself if there is none.
  std::size_t like(std::size_t a);
  /// A late value before `end` that can stand in the place of this one, else `otherwise`.
  std::size_t late(std::size_t place, std::size_t end, std::size_t otherwise);

  std::mt19937 random_;
  bool is_rounded_, is_known_;  // are extents known?
  Device device_;
  std::vector<Computed> values_;
  std::vector<In> inputs_;
  std::vector<bool> is_lent_;
  std::vector<SharedVariable> shared_;
  std::vector<Tensor> lent_;  // to shared variables
  std::vector<Out> outputs_;
  std::vector<std::size_t> output_values_;
  std::vector<std::pair<std::size_t, std::size_t>> update_values_;  // shared variable and value
  std::optional<std::pair<std::size_t, std::size_t>> given_;  // replaced value and its new one
  FunctionOptions options_;
};

}  // namespace palimpsest::testing
