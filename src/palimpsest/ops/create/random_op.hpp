// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/graph/op.hpp"
#include "palimpsest/kernels/arrays/random.hpp"
#include "palimpsest/ops/loop/extents.hpp"

namespace palimpsest::ops {

/// Inputs key and arrays: random numbers in an array whose extents are computed from those of the
/// inputs. `RandomNormal`, `RandomUniform`, `RandomBits`.
class Random final : public Op {
 public:
  Random(RandomKind kind, ExtentPrograms extents, DType dtype)
      : kind_(kind), extents_(std::move(extents)), dtype_(dtype) {}
  std::string name() const override;
  std::string parameters() const override;
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, std::span<const Extents> inputs) const override;
  bool uses_elements(const Apply&, int in) const override { return in == 0; }
  bool can_fail() const override { return false; }
  std::vector<Variable> pullback(const Apply& apply, std::span<const Variable>) const override {
    return std::vector<Variable>(apply.input_count());
  }
  void run(RunContext& context) const override;

 private:
  RandomKind kind_;
  ExtentPrograms extents_;
  DType dtype_;
};

/// Inputs key, low and high (int64, 0-d), and arrays.
class RandomIntegers final : public Op {
 public:
  /// `checked`: the bounds are constants, and high is above low.
  RandomIntegers(ExtentPrograms extents, DType dtype, bool checked)
      : extents_(std::move(extents)), dtype_(dtype), checked_(checked) {}
  std::string name() const override { return "RandomIntegers"; }
  std::string parameters() const override;
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, std::span<const Extents> inputs) const override;
  bool uses_elements(const Apply&, int in) const override { return in < 3; }
  bool can_fail() const override { return !checked_; }
  std::vector<Variable> pullback(const Apply& apply, std::span<const Variable>) const override {
    return std::vector<Variable>(apply.input_count());
  }
  void run(RunContext& context) const override;

 private:
  ExtentPrograms extents_;
  DType dtype_;
  bool checked_;
};

/// Keys number first, ..., first + n - 1 of those that split off one, uint64 (n, 2).
class SplitKey final : public Op {
 public:
  explicit SplitKey(index_t n, index_t first = 0) : n_(n), first_(first) {}
  std::string name() const override { return "SplitKey"; }
  std::string parameters() const override {
    return "n=" + std::to_string(n_) + ", first=" + std::to_string(first_);
  }
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, std::span<const Extents>) const override {
    return {{n_, 2}};
  }
  std::vector<Variable> pullback(const Apply&, std::span<const Variable>) const override {
    return {Variable()};
  }
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;

 private:
  index_t n_, first_;
};

/// The key that comes after one.
///
/// Aliases  in place: the output lies in the memory of the input
class NextKey final : public Op {
 public:
  explicit NextKey(bool in_place = false) : in_place_(in_place) {}
  std::string name() const override { return in_place_ ? "NextKeyInPlace" : "NextKey"; }
  Apply make_node(std::span<const Variable> inputs) const override;
  AliasMap destroy_map(const Apply&) const override;
  OpPtr inplace_on_inputs(const Apply& apply, const std::set<int>& allowed) const override;
  OpPtr pure() const override;
  std::vector<Extents> infer_shapes(const Apply&, std::span<const Extents> inputs) const override {
    return {inputs[0]};
  }
  std::vector<Variable> pullback(const Apply&, std::span<const Variable>) const override {
    return {Variable()};
  }
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;

 private:
  bool in_place_;
};

}  // namespace palimpsest::ops
