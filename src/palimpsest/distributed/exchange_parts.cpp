// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/distributed/exchange_parts.hpp"

#include <fmt/format.h>

#include "palimpsest/base/error.hpp"
#include "palimpsest/kernels/arrays/copy.hpp"
#include "palimpsest/ops/common.hpp"

namespace palimpsest::distributed_detail {
namespace {

std::size_t at(index_t i) { return static_cast<std::size_t>(i); }

index_t bytes_of(const Extents& extents, DType dtype) {
  return element_count(extents) * static_cast<index_t>(item_size(dtype));
}

// A dense array of bytes somewhere.
struct Block {
  Block(std::byte* data, DType dtype, Extents extents_of_it)
      : extents(std::move(extents_of_it)),
        strides(Layout::dense(dtype, extents).strides),
        view{data, dtype, extents, strides} {}
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  std::span<std::byte> bytes() const {
    return {static_cast<std::byte*>(view.data), at(bytes_of(extents, view.dtype))};
  }

  Extents extents;
  Strides strides;
  MutableView view;
};

}  // namespace

std::string ExchangeParts::parameters() const {
  return CommunicationOp::parameters() + fmt::format(", from={} of {}, to={} of {}", from_.axis,
                                                     from_.extent, to_.axis, to_.extent);
}

Extents ExchangeParts::result_extents(std::span<const index_t> input) const {
  const auto rank = static_cast<index_t>(input.size());
  if (from_.axis >= rank || to_.axis >= rank ||
      input[at(from_.axis)] != part(from_, group().self).size() ||
      input[at(to_.axis)] != to_.extent) {
    throw ShapeError(fmt::format(
        "[ExchangeParts] x: got {}, expected {} along axis {} and {} along axis {}",
        to_string(input), part(from_, group().self).size(), from_.axis, to_.extent, to_.axis));
  }
  Extents result(input.begin(), input.end());
  result[at(from_.axis)] = from_.extent;
  result[at(to_.axis)] = part(to_, group().self).size();
  return result;
}

Extents ExchangeParts::block_extents(std::span<const index_t> input, int sender,
                                     int receiver) const {
  Extents extents(input.begin(), input.end());
  extents[at(from_.axis)] = part(from_, sender).size();
  extents[at(to_.axis)] = part(to_, receiver).size();
  return extents;
}

Apply ExchangeParts::make_node(std::span<const Variable> inputs) const {
  ops::expect_inputs(inputs, 1, name());
  const TensorType& type = inputs[0].type();
  return node(inputs, {{type.dtype, result_extents(type.shape), type.device}});
}

std::vector<Extents> ExchangeParts::infer_shapes(const Apply&,
                                                 std::span<const Extents> inputs) const {
  return {result_extents(inputs[0])};
}

std::size_t ExchangeParts::scratch_bytes(const Apply&, std::span<const Layout> inputs) const {
  const Layout& x = inputs[0];
  index_t bytes = 0;
  for (int k = 0; k < group().size(); ++k) {
    if (k == group().self) continue;
    bytes += bytes_of(block_extents(x.extents, group().self, k), x.dtype) +
             bytes_of(block_extents(x.extents, k, group().self), x.dtype);
  }
  return at(bytes);
}

std::vector<Variable> ExchangeParts::pullback(const Apply&,
                                              std::span<const Variable> cotangents) const {
  if (!cotangents[0].defined()) return {Variable()};
  return {exchange_parts(cotangents[0], team(), axes()[0], to_, from_)};
}

Traffic ExchangeParts::traffic(const Apply& apply) const {
  const TensorType& x = apply.input(0).type();
  Traffic sum;
  for (int k = 0; k < group().size(); ++k) {
    if (k == group().self) continue;
    const index_t bytes = bytes_of(block_extents(x.shape, group().self, k), x.dtype);
    sum += {bytes, bytes > 0 ? 1 : 0, 0};
  }
  sum.synchronisations = group().size() > 1 ? 1 : 0;
  return sum;
}

void ExchangeParts::run(RunContext& context) const {
  const ConstView& x = context.input(0);
  const MutableView& y = context.output(0);
  const int self = group().self;
  Extents of_input, of_both;
  // The block for rank k of the group: what it will hold of this rank's part.
  const auto outgoing = [&](int k, auto&& use) {
    use(ops::narrowed(x, at(to_.axis), part(to_, k).start, part(to_, k).size(), of_input));
  };
  const auto incoming = [&](int k, auto&& use) {
    use(ops::narrowed(y, at(from_.axis), part(from_, k).start, part(from_, k).size(), of_both));
  };
  std::byte* next = context.scratch().data();
  std::vector<std::unique_ptr<Block>> sent(group().members.size()), received(sent.size());
  for (int k = 0; k < group().size(); ++k) {
    if (k == self) {
      outgoing(k, [&](const ConstView& block) {
        incoming(k, [&](const MutableView& place) { run_copy(block, place); });
      });
      continue;
    }
    sent[at(k)] = std::make_unique<Block>(next, x.dtype, block_extents(x.extents, self, k));
    next += sent[at(k)]->bytes().size();
    received[at(k)] = std::make_unique<Block>(next, x.dtype, block_extents(x.extents, k, self));
    next += received[at(k)]->bytes().size();
    outgoing(k, [&](const ConstView& block) { run_copy(block, sent[at(k)]->view); });
  }
  exchange_all([&](int k) { return std::span<const std::byte>(sent[at(k)]->bytes()); },
               [&](int k) { return received[at(k)]->bytes(); });
  for (int k = 0; k < group().size(); ++k) {
    if (k == self) continue;
    incoming(k, [&](const MutableView& place) { run_copy(received[at(k)]->view, place); });
  }
}

Variable exchange_parts(const Variable& x, const Team& team, const std::string& axis, CutAxis from,
                        CutAxis to) {
  if (team.size(axis) == 1) return x;
  return std::make_shared<ExchangeParts>(team, axis, from, to)->make_node({&x, 1}).output(0);
}

}  // namespace palimpsest::distributed_detail
