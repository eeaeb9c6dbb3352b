// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/distributed/communication_ops.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "palimpsest/base/config.hpp"
#include "palimpsest/base/error.hpp"
#include "palimpsest/kernels/arrays/copy.hpp"
#include "palimpsest/ops/common.hpp"
#include "palimpsest/tensor/content_hash.hpp"

namespace palimpsest::distributed_detail {
namespace {

// Below, latency costs more than bytes.
constexpr index_t kAtOnceBytes = 8192;

index_t message_bytes(const TensorType& type) {
  return element_count(type.shape) * static_cast<index_t>(item_size(type.dtype));
}

// acc = parts[0] + parts[1] + .., element by element, in this order.
template <class T>
void add_parts(std::span<const std::byte* const> parts, index_t n, std::byte* result) {
  constexpr index_t kBlock = 512;
  std::array<T, kBlock> sums;
  for (index_t start = 0; start < n; start += kBlock) {
    const index_t count = std::min(kBlock, n - start);
    const auto offset = at(start) * sizeof(T);
    std::memcpy(sums.data(), parts[0] + offset, at(count) * sizeof(T));
    for (const std::byte* const part : parts.subspan(1)) {
      const T* const terms = reinterpret_cast<const T*>(part + offset);
      for (index_t i = 0; i < count; ++i) sums[at(i)] += terms[i];
    }
    std::memcpy(result + offset, sums.data(), at(count) * sizeof(T));
  }
}

bool is_summed(DType dtype) {
  return is_floating(dtype) || is_complex(dtype) || dtype == DType::int64 || dtype == DType::int32;
}

}  // namespace

// Complex numbers are pairs of real ones.
void add_up(DType dtype, std::span<const std::byte* const> parts, index_t n, std::byte* result) {
  switch (dtype) {
    case DType::float32:
      return add_parts<float>(parts, n, result);
    case DType::float64:
      return add_parts<double>(parts, n, result);
    case DType::complex64:
      return add_parts<float>(parts, 2 * n, result);
    case DType::complex128:
      return add_parts<double>(parts, 2 * n, result);
    case DType::int64:
      return add_parts<std::int64_t>(parts, n, result);
    case DType::int32:
      return add_parts<std::int32_t>(parts, n, result);
    default:
      throw InternalError("[AllReduce] dtype: got " + std::string(name_of(dtype)));
  }
}

CommunicationOp::CommunicationOp(Team team, AxisNames axes)
    : team_(std::move(team)), axes_(std::move(axes)), group_(group_of(team_, axes_)) {}

std::string CommunicationOp::parameters() const {
  const std::string text = team_parameters(team_, axes_);
  return turn_ < 0 ? text : fmt::format("{}, turn={}", text, turn_);
}

void CommunicationOp::abandon(std::string_view why) const noexcept { team_.abandon(why); }

std::string team_parameters(const Team& team, const AxisNames& axes) {
  return fmt::format("team={}, axes=({})", team.node().id, fmt::join(axes, ", "));
}

Apply AllReduce::make_node(std::span<const Variable> inputs) const {
  ops::expect_inputs(inputs, 1, name());
  const TensorType& type = inputs[0].type();
  if (!is_summed(type.dtype)) {
    throw DTypeError(
        fmt::format("[AllReduce] x: got {}, expected a floating or complex dtype, int32 or int64",
                    name_of(type.dtype)));
  }
  return node(inputs, {type});
}

AliasMap AllReduce::destroy_map(const Apply&) const {
  return in_place_ ? AliasMap{{0, {0}}} : AliasMap{};
}

OpPtr AllReduce::in_place(bool is_in_place) const {
  const AllReduce other(team(), axes(), is_in_place);
  return other.with_turn(turn());
}

OpPtr AllReduce::inplace_on_inputs(const Apply&, const std::set<int>& allowed) const {
  if (in_place_ || !allowed.contains(0)) return nullptr;
  return in_place(true);
}

OpPtr AllReduce::pure() const { return in_place_ ? in_place(false) : shared_from_this(); }

std::size_t AllReduce::scratch_bytes(const Apply&, std::span<const Layout> inputs) const {
  const index_t n = element_count(inputs[0].extents),
                item = static_cast<index_t>(item_size(inputs[0].dtype));
  const std::size_t packed = in_place_ && !inputs[0].is_dense() ? at(n * item) : 0;
  if (n * item <= kAtOnceBytes) return packed + at(n * item) * others();
  return packed + at(part_range(n, group().self, group().size()).size() * item) * others();
}

std::vector<Variable> AllReduce::pullback(const Apply&,
                                          std::span<const Variable> cotangents) const {
  if (!cotangents[0].defined()) return {Variable()};
  return {replicate(cotangents[0], team(), axes())};
}

Traffic AllReduce::traffic(const Apply& apply) const {
  const index_t bytes = message_bytes(apply.input(0).type());
  const auto n = static_cast<index_t>(others());
  if (bytes == 0 || n == 0) return {};
  if (bytes <= kAtOnceBytes) return {n * bytes, n, 1};
  const index_t elements = element_count(apply.input(0).type().shape);
  const index_t item = bytes / elements;
  const index_t own = part_range(elements, group().self, group().size()).size();
  // Parts that have elements are the first ones.
  const index_t receivers = std::min<index_t>(elements, group().size()) - (own > 0 ? 1 : 0);
  return {(elements - own + n * own) * item, receivers + (own > 0 ? n : 0), 2};
}

// Ranks may lay out their arrays differently: messages hold rows in order.
void AllReduce::run(RunContext& context) const {
  const ConstView& x = context.input(0);
  const MutableView& y = context.output(0);
  const index_t n = element_count(y.extents);
  const std::size_t bytes = at(n) * item_size(y.dtype);
  if (bytes == 0) return;
  const Extents extents(y.extents.begin(), y.extents.end());
  const Strides dense = Layout::dense(y.dtype, extents).strides;
  const bool is_dense =
      Layout{y.dtype, extents, Strides(y.strides.begin(), y.strides.end()), 0}.is_dense();
  Sum sum{y.dtype, n, static_cast<std::byte*>(y.data), context.scratch().data()};
  if (!is_dense) {
    sum.whole = sum.scratch;
    sum.scratch += bytes;
  }
  if (!is_dense || x.data != y.data) {
    run_copy(x, MutableView{sum.whole, y.dtype, y.extents, dense});
  }
  bytes <= at(kAtOnceBytes) ? run_at_once(sum) : run_in_parts(sum);
  if (!is_dense) run_copy(ConstView{sum.whole, y.dtype, y.extents, dense}, y);
}

// Everybody gets all arrays and adds them up.
void AllReduce::run_at_once(const Sum& sum) const {
  const std::size_t bytes = at(sum.n) * item_size(sum.dtype);
  std::vector<const std::byte*> parts(at(group().size()), sum.whole);
  std::byte* next = sum.scratch;
  exchange_all([&](int) { return std::span<const std::byte>(sum.whole, bytes); },
               [&](int k) {
                 std::byte* const place = next;
                 next += bytes;
                 parts[at(k)] = place;
                 return std::span(place, bytes);
               });
  add_up(sum.dtype, parts, sum.n, sum.whole);
}

// Each rank adds up one part and gives the sum to all.
void AllReduce::run_in_parts(const Sum& sum) const {
  const std::size_t item = item_size(sum.dtype);
  const auto part_of = [&](int k) {
    const PartRange range = part_range(sum.n, k, group().size());
    return std::span(sum.whole + at(range.start) * item, at(range.size()) * item);
  };
  const std::span<std::byte> own = part_of(group().self);
  std::vector<const std::byte*> parts(at(group().size()), own.data());
  std::byte* next = sum.scratch;
  exchange_all([&](int k) { return std::span<const std::byte>(part_of(k)); },
               [&](int k) {
                 std::byte* const place = next;
                 next += own.size();
                 parts[at(k)] = place;
                 return std::span(place, own.size());
               });
  add_up(sum.dtype, parts, static_cast<index_t>(own.size() / item), own.data());
  exchange_all([&](int) { return std::span<const std::byte>(own); },
               [&](int k) { return part_of(k); });
}

OpPtr AllReduce::joined(std::span<const Apply> nodes) const {
  index_t bytes = 0;
  for (const Apply& apply : nodes) {
    const auto* const other = dynamic_cast<const AllReduce*>(&apply.op());
    const TensorType& type = apply.input(0).type();
    const bool is_like_this = other && other->team() == team() && other->axes() == axes();
    if (!is_like_this || other->in_place_ || !type.is_fully_known()) return nullptr;
    bytes += message_bytes(type);
  }
  if (bytes > kAtOnceBytes) return nullptr;
  return std::make_shared<JoinedAllReduce>(team(), axes());
}

namespace {

// Offsets of arrays in a message. Arrays with large items come first, so that all are aligned.
struct Packing {
  std::vector<std::size_t> offsets;
  std::size_t bytes = 0;
  // From message to message in scratch.
  std::size_t pitch() const { return (bytes + 15) / 16 * 16; }
};

template <class Arrays>
Packing packing_of(const Arrays& arrays) {
  Packing packing;
  packing.offsets.resize(arrays.size());
  for (const std::size_t item : {16, 8, 4}) {
    for (std::size_t k = 0; k < arrays.size(); ++k) {
      if (item_size(arrays[k].dtype) != item) continue;
      packing.offsets[k] = packing.bytes;
      packing.bytes += at(element_count(arrays[k].extents)) * item;
    }
  }
  return packing;
}

}  // namespace

Apply JoinedAllReduce::make_node(std::span<const Variable> inputs) const {
  std::vector<TensorType> types;
  for (const Variable& x : inputs) {
    if (!is_summed(x.dtype())) {
      throw DTypeError(fmt::format("[JoinedAllReduce] x: got {}, expected a dtype of AllReduce",
                                   name_of(x.dtype())));
    }
    types.push_back(x.type());
  }
  return node(inputs, std::move(types));
}

std::size_t JoinedAllReduce::scratch_bytes(const Apply&, std::span<const Layout> inputs) const {
  return packing_of(inputs).pitch() * (others() + 1);
}

std::vector<Variable> JoinedAllReduce::pullback(const Apply&,
                                                std::span<const Variable> cotangents) const {
  std::vector<Variable> gradients;
  for (const Variable& c : cotangents) {
    gradients.push_back(c.defined() ? replicate(c, team(), axes()) : Variable());
  }
  return gradients;
}

Traffic JoinedAllReduce::traffic(const Apply& apply) const {
  index_t bytes = 0;
  for (const Variable& x : apply.inputs()) bytes += message_bytes(x.type());
  const auto n = static_cast<index_t>(others());
  return bytes == 0 || n == 0 ? Traffic{} : Traffic{n * bytes, n, 1};
}

void JoinedAllReduce::run(RunContext& context) const {
  const Packing packing = packing_of(context.outputs());
  if (packing.bytes == 0) return;
  std::vector<std::byte*> messages;
  for (std::size_t k = 0; k < at(group().size()); ++k) {
    messages.push_back(context.scratch().data() + k * packing.pitch());
  }
  std::byte* const own = messages[at(group().self)];
  const std::size_t n = context.outputs().size();
  std::vector<Strides> strides;  // views refer to them
  strides.reserve(n);
  std::vector<MutableView> packed;
  for (std::size_t k = 0; k < n; ++k) {
    const MutableView& y = context.output(k);
    strides.push_back(Layout::dense(y.dtype, Extents(y.extents.begin(), y.extents.end())).strides);
    packed.push_back({own + packing.offsets[k], y.dtype, y.extents, strides.back()});
    run_copy(context.input(k), packed[k]);
  }
  exchange_all([&](int) { return std::span<const std::byte>(own, packing.bytes); },
               [&](int k) { return std::span(messages[at(k)], packing.bytes); });
  std::vector<const std::byte*> parts(messages.size());
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t r = 0; r < parts.size(); ++r) parts[r] = messages[r] + packing.offsets[k];
    add_up(packed[k].dtype, parts, element_count(packed[k].extents), own + packing.offsets[k]);
    run_copy(packed[k], context.output(k));
  }
}

// -- equality of ranks ---------------------------------------------------------------------------

void check_alike(const Team& team, const AxisNames& axes, std::uint64_t mine,
                 std::string_view what) {
  const Group group = group_of(team, axes);
  std::vector<std::uint64_t> all(at(group.size()), mine);
  std::vector<Parcel> parcels;
  std::vector<Place> places;
  for (int k = 0; k < group.size(); ++k) {
    if (k == group.self) continue;
    parcels.push_back({group.member(k), std::as_bytes(std::span(&mine, 1))});
    places.push_back({group.member(k), std::as_writable_bytes(std::span(&all[at(k)], 1))});
  }
  exchange(team, parcels, places);
  for (int k = 1; k < group.size(); ++k) {
    if (all[at(k)] == all[0]) continue;
    throw ValueError(
        fmt::format("[{}] MPI: replicated value differs on rank {}: {} has the hash {:016x} there, "
                    "{:016x} on rank {}. Try to compute it on one rank and Broadcast it",
                    team.str(), group.member(k), what, all[at(k)], all[0], group.member(0)));
  }
}

Apply Alike::make_node(std::span<const Variable> inputs) const {
  ops::expect_inputs(inputs, 1, name());
  return node(inputs, {inputs[0].type()});
}

Traffic Alike::traffic(const Apply&) const {
  const auto n = static_cast<index_t>(others());
  return {n * static_cast<index_t>(sizeof(std::uint64_t)), n, n > 0 ? 1 : 0};
}

void Alike::run(RunContext& context) const {
  const MutableView& y = context.output(0);
  run_copy(context.input(0), y);
  const auto bytes = at(element_count(y.extents)) * item_size(y.dtype);
  check_alike(team(), axes(), content_hash(y.data, bytes), "an input of the operator");
}

Variable alike(const Variable& x, const Team& team, const AxisNames& axes) {
  if (config().mode != "DebugMode" || group_of(team, axes).size() == 1) return x;
  return std::make_shared<Alike>(team, axes)->make_node({&x, 1}).output(0);
}

std::string Replicate::parameters() const { return team_parameters(team_, axes_); }

std::vector<Variable> Replicate::pullback(const Apply&,
                                          std::span<const Variable> cotangents) const {
  if (!cotangents[0].defined()) return {Variable()};
  return {all_reduce(cotangents[0], team_, axes_)};
}

Variable all_reduce(const Variable& x, const Team& team, const AxisNames& axes) {
  if (group_of(team, axes).size() == 1) return x;
  return std::make_shared<AllReduce>(team, axes)->make_node({&x, 1}).output(0);
}

Variable replicate(const Variable& x, const Team& team, const AxisNames& axes) {
  if (group_of(team, axes).size() == 1) return x;
  return std::make_shared<Replicate>(team, axes)->make_node({&x, 1}).output(0);
}

}  // namespace palimpsest::distributed_detail
