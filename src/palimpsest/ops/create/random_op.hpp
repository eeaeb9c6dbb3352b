// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include "palimpsest/graph/op.hpp"
#include "palimpsest/kernels/arrays/random.hpp"
#include "palimpsest/ops/in_place_twin.hpp"
#include "palimpsest/ops/loop/extents.hpp"

namespace palimpsest::ops {

/// Inputs key and arrays: random numbers in an array whose extents are computed from those of the
/// inputs. `RandomNormal`, `RandomUniform`, `RandomBits`.
class Random final : public Declared<Random> {
 public:
  Random(RandomKind kind, ExtentPrograms extents, DType dtype)
      : kind_(kind), extents_(std::move(extents)), dtype_(dtype) {}
  RandomKind kind() const { return kind_; }
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, ExtentsSpan inputs) const override;
  bool uses_elements(const Apply&, int in) const override { return in == 0; }
  bool can_fail() const override { return false; }
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan) const override {
    return std::vector<Variable>(apply.input_count());
  }
  void run(RunContext& context) const override;
  static constexpr auto declaration() {
    return declare(
        "",
        named<Random, RandomKind>(&Random::kind_, {{"RandomNormal", RandomKind::normal},
                                                   {"RandomUniform", RandomKind::uniform},
                                                   {"RandomBits", RandomKind::bits}}),
        field(&Random::extents_), field(&Random::dtype_));
  }

 private:
  RandomKind kind_;
  ExtentPrograms extents_;
  DType dtype_;
};

/// Inputs key, low and high (int64, 0-d), and arrays.
class RandomIntegers final : public Declared<RandomIntegers> {
 public:
  /// `checked`: the bounds are constants, and high is above low.
  RandomIntegers(ExtentPrograms extents, DType dtype, bool checked)
      : extents_(std::move(extents)), dtype_(dtype), checked_(checked) {}
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, ExtentsSpan inputs) const override;
  bool uses_elements(const Apply&, int in) const override { return in < 3; }
  bool can_fail() const override { return !checked_; }
  std::vector<Variable> pullback(const Apply& apply, CotangentSpan) const override {
    return std::vector<Variable>(apply.input_count());
  }
  void run(RunContext& context) const override;
  static constexpr auto declaration() {
    return declare("RandomIntegers", field(&RandomIntegers::extents_),
                   field(&RandomIntegers::dtype_), field("checked", &RandomIntegers::checked_));
  }

 private:
  ExtentPrograms extents_;
  DType dtype_;
  bool checked_;
};

/// Keys number first, ..., first + n - 1 of those that split off one, uint64 (n, 2).
class SplitKey final : public Declared<SplitKey> {
 public:
  explicit SplitKey(index_t n, index_t first = 0) : n_(n), first_(first) {}
  index_t first() const { return first_; }
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, ExtentsSpan) const override { return {{n_, 2}}; }
  std::vector<Variable> pullback(const Apply&, CotangentSpan) const override {
    return {Variable()};
  }
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;
  static constexpr auto declaration() {
    return declare("SplitKey", field("n", &SplitKey::n_), field("first", &SplitKey::first_));
  }

 private:
  index_t n_, first_;
};

/// The key that comes after one.
///
/// Aliases  in place: the output lies in the memory of the input
class NextKey final : public InPlaceTwin<NextKey> {
 public:
  explicit NextKey(bool in_place = false) : InPlaceTwin(in_place) {}
  Apply make_node(std::span<const Variable> inputs) const override;
  std::vector<Extents> infer_shapes(const Apply&, ExtentsSpan inputs) const override {
    return {inputs[0]};
  }
  std::vector<Variable> pullback(const Apply&, CotangentSpan) const override {
    return {Variable()};
  }
  bool can_fail() const override { return false; }
  void run(RunContext& context) const override;
  static constexpr auto declaration() {
    return declare("NextKey", in_place_field(&NextKey::in_place_));
  }
};

}  // namespace palimpsest::ops
