// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/ops/create/random.hpp"

#include "palimpsest/ops/create/random_op.hpp"
#include "palimpsest/ops/prelude.hpp"

namespace palimpsest::ops {
namespace {

void check_key(const Variable& key, std::string_view who) {
  const TensorType& type = key.type();
  const bool fits = type.dtype == DType::uint64 && type.rank() == 1 &&
                    (type.shape[0] == 2 || type.shape[0] == kUnknown);
  if (!fits) {
    throw TypeError("[" + std::string(who) + "] key: got " + type.str() +
                    ", expected uint64 (2,). Try random_key");
  }
}

// Checks the extent of a key at run time: it may have been unknown in the graph.
void check_key_extents(const Extents& extents, std::string_view who) {
  if (extents[0] != 2) {
    throw ShapeError("[" + std::string(who) + "] key: got extents " + to_string(extents) +
                     ", expected (2,)");
  }
}

RandomKey key_of(const ConstView& view) {
  const auto* words = static_cast<const std::uint64_t*>(view.data);
  return {words[0], words[view.strides[0]]};
}

void store_key(RandomKey key, std::byte* row, index_t stride) {
  auto* words = reinterpret_cast<std::uint64_t*>(row);
  words[0] = key.seed;
  words[stride] = key.stream;
}

void check_integers(DType dtype, std::string_view who) {
  if (!is_integer(dtype)) {
    throw DTypeError("[" + std::string(who) + "] got " + std::string(name_of(dtype)) +
                     ", expected integers");
  }
}

Variable drawn(RandomKind kind, const Variable& key, const ShapeArgument& shape, DType dtype,
               std::string_view who) {
  SymbolicShape symbolic = symbolic_shape(shape, {key}, who);
  return std::make_shared<Random>(kind, std::move(symbolic.extents), dtype)
      ->make_node(symbolic.arrays)
      .output(0);
}

bool is_constant_operand(const Operand& operand, double value) {
  return operand.is_number() && operand.number().value == value;
}

// An operand as it is promoted beside numbers of this dtype. A variable must not widen it.
Variable next_to(const Operand& operand, const Variable& x, std::string_view who) {
  const Variable v = resolved(std::vector<Operand>{x, operand})[1];
  if (promote(v.dtype(), x.dtype()) != x.dtype()) {
    throw DTypeError("[" + std::string(who) + "] got a parameter " + v.type().str() +
                     ", expected " + std::string(name_of(x.dtype())));
  }
  return v;
}

}  // namespace

// -- numbers -----------------------------------------------------------------------------------

Apply Random::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, std::max<std::size_t>(inputs.size(), 1), name());
  check_key(inputs[0], name());
  if (kind_ == RandomKind::bits) {
    check_integers(dtype_, name());
  } else if (!is_inexact(dtype_)) {
    throw DTypeError("[" + name() + "] got " + std::string(name_of(dtype_)) +
                     ", expected a floating or complex dtype. Try random_integers");
  }
  check_known_numbers(extents_, name());
  return node(inputs, {{dtype_, evaluate(extents_, inputs, name()), inputs[0].type().device}});
}

std::vector<Extents> Random::infer_shapes(const Apply&, ExtentsSpan inputs) const {
  check_key_extents(inputs[0], name());
  return {evaluate(extents_, inputs, name())};
}

void Random::run(RunContext& context) const {
  run_random(kind_, key_of(context.input(0)), context.output(0));
}

static void check_bounds(index_t low, index_t high) {
  if (high <= low) {
    throw ValueError("[random_integers] got low " + std::to_string(low) + " and high " +
                     std::to_string(high) + ", expected high above low");
  }
}

Apply RandomIntegers::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, std::max<std::size_t>(inputs.size(), 3), name());
  check_key(inputs[0], name());
  check_integers(dtype_, name());
  for (std::size_t i : {1, 2}) {
    if (inputs[i].dtype() != DType::int64 || inputs[i].rank() != 0) {
      throw TypeError("[RandomIntegers] bound: got " + inputs[i].type().str() +
                      ", expected int64 ()");
    }
  }
  if (checked_) {
    check_bounds(inputs[1].constant_value().item<index_t>(),
                 inputs[2].constant_value().item<index_t>());
  }
  check_known_numbers(extents_, name());
  return node(inputs, {{dtype_, evaluate(extents_, inputs, name()), inputs[0].type().device}});
}

std::vector<Extents> RandomIntegers::infer_shapes(const Apply&, ExtentsSpan inputs) const {
  check_key_extents(inputs[0], name());
  return {evaluate(extents_, inputs, name())};
}

void RandomIntegers::run(RunContext& context) const {
  const index_t low = *static_cast<const index_t*>(context.input(1).data);
  const index_t high = *static_cast<const index_t*>(context.input(2).data);
  if (!checked_) check_bounds(low, high);
  const auto first = static_cast<std::uint64_t>(low);
  run_random_integers(key_of(context.input(0)), first, static_cast<std::uint64_t>(high) - first,
                      context.output(0));
}

Variable random_normal(const Variable& key, const ShapeArgument& shape, DType dtype,
                       const Operand& mean, const Operand& deviation) {
  Variable x = drawn(RandomKind::normal, key, shape, dtype, "random_normal");
  if (!is_constant_operand(deviation, 1)) x = x * next_to(deviation, x, "random_normal");
  if (!is_constant_operand(mean, 0)) x = x + next_to(mean, x, "random_normal");
  return x;
}

Variable random_uniform(const Variable& key, const ShapeArgument& shape, DType dtype,
                        const Operand& low, const Operand& high) {
  const Variable x = drawn(RandomKind::uniform, key, shape, dtype, "random_uniform");
  if (is_constant_operand(low, 0) && is_constant_operand(high, 1)) return x;
  const Variable first = next_to(low, x, "random_uniform");
  return x * (next_to(high, x, "random_uniform") - first) + first;
}

Variable random_bits(const Variable& key, const ShapeArgument& shape, DType dtype) {
  return drawn(RandomKind::bits, key, shape, dtype, "random_bits");
}

Variable random_integers(const Variable& key, const ShapeArgument& shape, const Operand& low,
                         const Operand& high, DType dtype) {
  const auto bound = [](const Operand& operand) {
    const Variable v = resolved({&operand, 1})[0];
    if (!is_integer(v.dtype())) {
      throw DTypeError("[random_integers] bound: got " + v.type().str() + ", expected an integer");
    }
    return astype(v, DType::int64);
  };
  std::vector<Variable> inputs{key, bound(low), bound(high)};
  const bool checked = inputs[1].is_constant() && inputs[2].is_constant();
  SymbolicShape symbolic = symbolic_shape(shape, std::move(inputs), "random_integers");
  return std::make_shared<RandomIntegers>(std::move(symbolic.extents), dtype, checked)
      ->make_node(symbolic.arrays)
      .output(0);
}

// -- keys --------------------------------------------------------------------------------------

Apply SplitKey::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, name());
  check_key(inputs[0], "split_key");
  return node(inputs, {{DType::uint64, {n_, 2}, inputs[0].type().device}});
}

void SplitKey::run(RunContext& context) const {
  const RandomKey key = key_of(context.input(0));
  const MutableView& out = context.output(0);
  const index_t step = out.strides[0] * static_cast<index_t>(sizeof(std::uint64_t));
  for (index_t i = 0; i < n_; ++i) {
    store_key(palimpsest::child_key(key, static_cast<std::uint64_t>(first_ + i)),
              static_cast<std::byte*>(out.data) + i * step, out.strides[1]);
  }
}

Apply NextKey::make_node(std::span<const Variable> inputs) const {
  expect_inputs(inputs, 1, name());
  check_key(inputs[0], "next_key");
  if (in_place_) expect_own_elements(inputs[0], "NextKeyInPlace");
  return node(inputs, {inputs[0].type()});
}

void NextKey::run(RunContext& context) const {
  const MutableView& out = context.output(0);
  store_key(palimpsest::next_key(key_of(context.input(0))), static_cast<std::byte*>(out.data),
            out.strides[0]);
}

Variable random_key(std::uint64_t seed, std::uint64_t stream) {
  return constant(Tensor::from<std::uint64_t>({seed, stream}));
}

Variable random_key(const Variable& seed) {
  if (!is_integer(seed.dtype()) || seed.rank() != 0) {
    throw TypeError("[random_key] seed: got " + seed.type().str() +
                    ", expected an integer of no axes");
  }
  const Variable zero = constant(Tensor::zeros({}, DType::uint64, seed.type().device));
  return stack({astype(seed, DType::uint64), zero});
}

std::vector<Variable> split_key(const Variable& key, index_t n) {
  if (n < 1) {
    throw ValueError("[split_key] number of keys: got " + std::to_string(n) +
                     ", expected at least 1");
  }
  const Variable keys = std::make_shared<SplitKey>(n)->make_node({&key, 1}).output(0);
  std::vector<Variable> result;
  for (index_t i = 0; i < n; ++i) result.push_back(index(keys, {i}));
  return result;
}

Variable child_key(const Variable& key, index_t i) {
  if (i < 0) {
    throw ValueError("[child_key] number of the key: got " + std::to_string(i) +
                     ", expected none below 0");
  }
  return index(std::make_shared<SplitKey>(1, i)->make_node({&key, 1}).output(0), {0});
}

Variable next_key(const Variable& key) {
  return std::make_shared<NextKey>()->make_node({&key, 1}).output(0);
}

void register_ops_of_random() {
  register_type<NextKey>();
  register_type<Random>();
  register_type<RandomIntegers>();
  register_type<SplitKey>();
}

}  // namespace palimpsest::ops
