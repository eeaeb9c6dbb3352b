// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/distributed/move_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <complex>

#include "palimpsest/base/error.hpp"
#include "palimpsest/kernels/arrays/copy.hpp"
#include "palimpsest/ops/common.hpp"
#include "palimpsest/ops/shape/shape_ops.hpp"

namespace palimpsest::distributed_detail {
namespace {

index_t count_of(const Ranges& ranges) {
  index_t n = 1;
  for (const PartRange& range : ranges) n *= range.size();
  return n;
}

index_t bytes_of_blocks(const std::vector<PartBlock>& blocks, DType dtype) {
  index_t n = 0;
  for (const PartBlock& block : blocks) n += count_of(block.from);
  return n * static_cast<index_t>(item_size(dtype));
}

// A part of a view; `extents` is where its extents live.
template <class View>
View part_of_view(const View& whole, const Ranges& ranges, Extents& extents) {
  extents.clear();
  index_t offset = 0;
  for (std::size_t k = 0; k < ranges.size(); ++k) {
    extents.push_back(ranges[k].size());
    offset += ranges[k].start * whole.strides[k];
  }
  using Byte = std::conditional_t<std::is_same_v<View, ConstView>, const std::byte, std::byte>;
  View part = whole;
  part.data =
      static_cast<Byte*>(whole.data) + offset * static_cast<index_t>(item_size(whole.dtype));
  part.extents = extents;
  return part;
}

template <class T>
void add_elements(const MutableView& y, const T* terms) {
  T* const data = static_cast<T*>(y.data);
  const std::size_t rank = y.extents.size();
  const index_t n = element_count(y.extents);
  if (n == 0) return;
  const index_t row = rank == 0 ? 1 : y.extents[rank - 1],
                step = rank == 0 ? 0 : y.strides[rank - 1];
  Extents index(rank == 0 ? 0 : rank - 1, 0);
  for (index_t done = 0; done < n; done += row) {
    index_t offset = 0;
    for (std::size_t k = 0; k < index.size(); ++k) offset += index[k] * y.strides[k];
    for (index_t i = 0; i < row; ++i) data[offset + i * step] += terms[done + i];
    for (std::size_t k = index.size(); k-- > 0;) {
      if (++index[k] < y.extents[k]) break;
      index[k] = 0;
    }
  }
}

// y += terms, dense.
void add_to(const MutableView& y, const void* terms) {
  switch (y.dtype) {
    case DType::float32:
      return add_elements(y, static_cast<const float*>(terms));
    case DType::float64:
      return add_elements(y, static_cast<const double*>(terms));
    case DType::complex64:
      return add_elements(y, static_cast<const std::complex<float>*>(terms));
    case DType::complex128:
      return add_elements(y, static_cast<const std::complex<double>*>(terms));
    default:
      throw InternalError("[MoveParts] dtype: got " + std::string(name_of(y.dtype)));
  }
}

void set_zero(const MutableView& y) {
  const Extents ones(y.extents.size(), 1);
  const Strides strides(y.extents.size(), 0);
  alignas(16) static constexpr std::byte kZero[16] = {};
  run_copy(ConstView{kZero, y.dtype, y.extents, strides}, y);
}

}  // namespace

// Blocks to or from a member of the group, and where their bytes lie in the scratch, dense, one
// after the other.
struct MoveParts::Message {
  std::vector<PartBlock> blocks;
  std::span<std::byte> bytes;
};

std::string MoveParts::parameters() const {
  return CommunicationOp::parameters() + ", " + map_->parameters();
}

Extents MoveParts::result_extents(std::span<const index_t> x) const {
  return is_adjoint_ ? map_->input_extents(x) : map_->output_extents(x, group().self);
}

Apply MoveParts::make_node(std::span<const Variable> inputs) const {
  ops::expect_inputs(inputs, 1, name());
  const TensorType& type = inputs[0].type();
  if (is_adjoint_ && !is_floating(type.dtype) && !is_complex(type.dtype)) {
    throw DTypeError(fmt::format("[{}] x: got {}, expected a floating or complex dtype", name(),
                                 name_of(type.dtype)));
  }
  return node(inputs, {{type.dtype, result_extents(type.shape), type.device}});
}

std::vector<Extents> MoveParts::infer_shapes(const Apply&, std::span<const Extents> inputs) const {
  return {result_extents(inputs[0])};
}

std::vector<PartBlock> MoveParts::blocks_between(std::span<const index_t> input, int sender,
                                                 int receiver) const {
  std::vector<PartBlock> blocks = map_->blocks_for(input, receiver);
  std::erase_if(blocks,
                [&](const PartBlock& b) { return b.sender != sender || count_of(b.from) == 0; });
  return blocks;
}

std::vector<MoveParts::Message> MoveParts::messages(std::span<const index_t> x,
                                                    bool outgoing) const {
  Extents of_output;
  if (is_adjoint_) of_output = map_->input_extents(x);
  const std::span<const index_t> input = is_adjoint_ ? std::span<const index_t>(of_output) : x;
  const bool gives = outgoing != is_adjoint_;  // elements of this rank's input of the map
  std::vector<Message> found(at(group().size()));
  for (int k = 0; k < group().size(); ++k) {
    found[at(k)].blocks =
        gives ? blocks_between(input, group().self, k) : blocks_between(input, k, group().self);
  }
  return found;
}

std::size_t MoveParts::scratch_bytes(const Apply&, std::span<const Layout> inputs) const {
  const Layout& x = inputs[0];
  index_t bytes = 0;
  for (const bool outgoing : {true, false}) {
    const auto parts = messages(x.extents, outgoing);
    for (int k = 0; k < group().size(); ++k) {
      if (k != group().self) bytes += bytes_of_blocks(parts[at(k)].blocks, x.dtype);
    }
  }
  // The rank's own elements are added like those of others.
  if (is_adjoint_)
    bytes += bytes_of_blocks(messages(x.extents, true)[at(group().self)].blocks, x.dtype);
  return at(bytes);
}

std::vector<Variable> MoveParts::pullback(const Apply&,
                                          std::span<const Variable> cotangents) const {
  if (!cotangents[0].defined()) return {Variable()};
  const auto op = std::make_shared<MoveParts>(team(), axes(), map_, !is_adjoint_);
  return {op->make_node({&cotangents[0], 1}).output(0)};
}

Traffic MoveParts::traffic(const Apply& apply) const {
  const TensorType& x = apply.input(0).type();
  const auto sent = messages(x.shape, true), received = messages(x.shape, false);
  Traffic sum;
  index_t waited_for = 0;
  for (int k = 0; k < group().size(); ++k) {
    if (k == group().self) continue;
    const index_t bytes = bytes_of_blocks(sent[at(k)].blocks, x.dtype);
    sum += {bytes, bytes > 0 ? 1 : 0, 0};
    waited_for += bytes_of_blocks(received[at(k)].blocks, x.dtype);
  }
  sum.synchronisations = waited_for > 0 ? 1 : 0;
  return sum;
}

void MoveParts::run(RunContext& context) const {
  const ConstView& x = context.input(0);
  const MutableView& y = context.output(0);
  const int self = group().self;
  auto sent = messages(x.extents, true), received = messages(x.extents, false);
  std::byte* next = context.scratch().data();
  const auto give_place = [&](Message& message) {
    const std::size_t n = at(bytes_of_blocks(message.blocks, x.dtype));
    message.bytes = {next, n};
    next += n;
  };
  const auto pack = [&](const Message& message) {
    std::byte* to = message.bytes.data();
    for (const PartBlock& block : message.blocks) {
      Extents extents;
      const ConstView part = part_of_view(x, is_adjoint_ ? block.to : block.from, extents);
      const Strides strides = Layout::dense(x.dtype, extents).strides;
      run_copy(part, MutableView{to, x.dtype, extents, strides});
      to += count_of(block.from) * static_cast<index_t>(item_size(x.dtype));
    }
  };
  for (int k = 0; k < group().size(); ++k) {
    if (k != self || is_adjoint_) {
      give_place(sent[at(k)]);
      pack(sent[at(k)]);
    }
    if (k != self) give_place(received[at(k)]);
  }
  exchange_all([&](int k) { return std::span<const std::byte>(sent[at(k)].bytes); },
               [&](int k) { return received[at(k)].bytes; });
  index_t given = 0;
  for (const Message& message : received) {
    for (const PartBlock& block : message.blocks) given += count_of(block.to);
  }
  if (is_adjoint_ || given < element_count(y.extents)) set_zero(y);
  for (int k = 0; k < group().size(); ++k) {
    const std::byte* from = k == self ? sent[at(k)].bytes.data() : received[at(k)].bytes.data();
    for (const PartBlock& block : received[at(k)].blocks) {
      Extents extents, of_source;
      const MutableView place = part_of_view(y, is_adjoint_ ? block.from : block.to, extents);
      if (is_adjoint_) {
        add_to(place, from);
      } else if (k == self) {
        run_copy(part_of_view(x, block.from, of_source), place);
        continue;
      } else {
        const Strides strides = Layout::dense(x.dtype, extents).strides;
        run_copy(ConstView{from, x.dtype, extents, strides}, place);
      }
      from += count_of(block.to) * static_cast<index_t>(item_size(x.dtype));
    }
  }
}

PartRange part_at(const Team& team, const CutAxis& cut, int rank) {
  return part_range(cut.extent, coordinate_of(team, rank, cut.team_axis), team.size(cut.team_axis));
}

namespace {

Ranges whole_ranges(std::span<const index_t> extents) {
  Ranges ranges;
  for (const index_t n : extents) ranges.push_back({0, n});
  return ranges;
}

// The ranges of a rank's part of an array with these extents and cuts; in coordinates of the whole.
Ranges held(const Team& team, const CutAxes& cuts, int rank, std::span<const index_t> extents) {
  Ranges ranges = whole_ranges(extents);
  for (const CutAxis& cut : cuts) ranges[at(cut.axis)] = part_at(team, cut, rank);
  return ranges;
}

bool cuts_along(const CutAxes& cuts, const std::string& team_axis) {
  return std::any_of(cuts.begin(), cuts.end(),
                     [&](const CutAxis& cut) { return cut.team_axis == team_axis; });
}

std::string text_of(const CutAxes& cuts) {
  std::string text;
  for (const CutAxis& cut : cuts) {
    text += fmt::format("{}{} of {} along {}", text.empty() ? "" : "; ", cut.axis, cut.extent,
                        cut.team_axis);
  }
  return "(" + text + ")";
}

// The extents of the whole array, given those of a part. ShapeError if this rank has another part.
Extents whole_extents(const Team& team, const CutAxes& cuts, std::span<const index_t> part,
                      const std::string& who) {
  Extents extents(part.begin(), part.end());
  for (const CutAxis& cut : cuts) {
    const index_t own = part_at(team, cut, team.rank()).size();
    if (at(cut.axis) >= part.size() || part[at(cut.axis)] != own) {
      throw ShapeError(fmt::format("[{}] x: got {}, expected {} along axis {}, the part of rank {}",
                                   who, to_string(part), own, cut.axis, team.rank()));
    }
    extents[at(cut.axis)] = cut.extent;
  }
  return extents;
}

class RedistributeMap final : public PartsMap {
 public:
  RedistributeMap(Team team, AxisNames axes, CutAxes from, CutAxes to)
      : team_(std::move(team)),
        axes_(std::move(axes)),
        from_(std::move(from)),
        to_(std::move(to)),
        group_(group_of(team_, axes_)) {}
  std::string name() const override { return "Redistribute"; }
  std::string parameters() const override {
    return fmt::format("from={}, to={}", text_of(from_), text_of(to_));
  }
  Extents output_extents(std::span<const index_t> input, int receiver) const override {
    Extents extents = whole_extents(team_, from_, input, name());
    for (const CutAxis& cut : to_) {
      if (at(cut.axis) >= extents.size() || extents[at(cut.axis)] != cut.extent) {
        throw ShapeError(fmt::format("[{}] x: got {}, expected {} along axis {}", name(),
                                     to_string(input), cut.extent, cut.axis));
      }
    }
    return extents_of(held(team_, to_, member(receiver), extents));
  }
  Extents input_extents(std::span<const index_t> output) const override {
    return extents_of(held(team_, from_, team_.rank(), whole_extents(team_, to_, output, name())));
  }
  std::vector<PartBlock> blocks_for(std::span<const index_t> input, int receiver) const override {
    const Extents extents = whole_extents(team_, from_, input, name());
    const Ranges wanted = held(team_, to_, member(receiver), extents);
    std::vector<PartBlock> blocks;
    for (int k = 0; k < group_.size(); ++k) {
      if (!is_source(member(k), member(receiver))) continue;
      const Ranges there = held(team_, from_, member(k), extents);
      PartBlock block{k, {}, {}};
      for (std::size_t axis = 0; axis < extents.size(); ++axis) {
        const index_t start = std::max(there[axis].start, wanted[axis].start),
                      stop = std::max(start, std::min(there[axis].stop, wanted[axis].stop));
        block.from.push_back({start - there[axis].start, stop - there[axis].start});
        block.to.push_back({start - wanted[axis].start, stop - wanted[axis].start});
      }
      blocks.push_back(std::move(block));
    }
    return blocks;
  }

 private:
  int member(int k) const { return group_.member(k); }
  static Extents extents_of(const Ranges& ranges) {
    Extents extents;
    for (const PartRange& range : ranges) extents.push_back(range.size());
    return extents;
  }
  // Among ranks that hold the same, those at the receiver's place send to it.
  bool is_source(int sender, int receiver) const {
    return std::all_of(axes_.begin(), axes_.end(), [&](const std::string& axis) {
      return cuts_along(from_, axis) ||
             coordinate_of(team_, sender, axis) == coordinate_of(team_, receiver, axis);
    });
  }

  Team team_;
  AxisNames axes_;
  CutAxes from_, to_;
  Group group_;
};

const char* text_of(HaloEdge edge) {
  return edge == HaloEdge::zero ? "zero" : edge == HaloEdge::periodic ? "periodic" : "nearest";
}

class HaloMap final : public PartsMap {
 public:
  HaloMap(Team team, CutAxis cut, index_t before, index_t after, HaloEdge edge)
      : team_(std::move(team)),
        cut_(std::move(cut)),
        before_(before),
        after_(after),
        edge_(edge),
        group_(group_of(team_, {cut_.team_axis})) {}
  std::string name() const override { return "Halo"; }
  std::string parameters() const override {
    return fmt::format("cut={}, before={}, after={}, edge={}", text_of(CutAxes{cut_}), before_,
                       after_, text_of(edge_));
  }
  Extents output_extents(std::span<const index_t> input, int receiver) const override {
    Extents extents = whole_extents(team_, {cut_}, input, name());
    extents[at(cut_.axis)] = width(part(receiver));
    return extents;
  }
  Extents input_extents(std::span<const index_t> output) const override {
    const PartRange own = part(group_.self);
    if (at(cut_.axis) >= output.size() || output[at(cut_.axis)] != width(own)) {
      throw ShapeError(fmt::format("[{}] x: got {}, expected {} along axis {}, with the halo",
                                   name(), to_string(output), width(own), cut_.axis));
    }
    Extents extents(output.begin(), output.end());
    extents[at(cut_.axis)] = own.size();
    return extents;
  }
  std::vector<PartBlock> blocks_for(std::span<const index_t> input, int receiver) const override {
    const PartRange wanted = part(receiver);
    if (wanted.size() == 0) return {};
    const index_t n = cut_.extent, first = wanted.start - before_, last = wanted.stop + after_;
    std::vector<PartBlock> blocks;
    for (index_t g = first; g < last;) {
      // The longest run of neighbours in the whole array.
      const bool is_outside = g < 0 || g >= n;
      index_t source = g, length = std::min(n, last) - g;
      if (is_outside && edge_ == HaloEdge::periodic) {
        source = (g % n + n) % n;
        length = std::min(n - source, last - g);
      } else if (is_outside) {
        source = g < 0 ? 0 : n - 1;
        length = 1;
      }
      if (!is_outside || edge_ != HaloEdge::zero) {
        add_run(blocks, input, source, length, g - first);
      }
      g += length;
    }
    std::stable_sort(blocks.begin(), blocks.end(),
                     [](const PartBlock& a, const PartBlock& b) { return a.sender < b.sender; });
    return blocks;
  }

 private:
  PartRange part(int member) const { return part_at(team_, cut_, group_.member(member)); }
  index_t width(PartRange part) const {
    return part.size() == 0 ? 0 : before_ + part.size() + after_;
  }
  void add_run(std::vector<PartBlock>& blocks, std::span<const index_t> input, index_t source,
               index_t length, index_t to) const {
    for (int k = 0; k < group_.size(); ++k) {
      const PartRange there = part(k);
      const index_t start = std::max(source, there.start),
                    stop = std::min(source + length, there.stop);
      if (start >= stop) continue;
      PartBlock block{k, whole_ranges(input), whole_ranges(input)};
      block.from[at(cut_.axis)] = {start - there.start, stop - there.start};
      block.to[at(cut_.axis)] = {to + start - source, to + stop - source};
      blocks.push_back(std::move(block));
    }
  }

  Team team_;
  CutAxis cut_;
  index_t before_, after_;
  HaloEdge edge_;
  Group group_;
};

}  // namespace

Variable redistribute(const Variable& x, const Team& team, const CutAxes& from, const CutAxes& to) {
  AxisNames axes;
  for (const TeamAxis& axis : team.axes()) {
    if (cuts_along(from, axis.name) || cuts_along(to, axis.name)) axes.push_back(axis.name);
  }
  if (group_of(team, axes).size() == 1) {
    // The part is the whole, and its extents are known.
    Extents extents(x.rank(), kUnknown);
    for (const CutAxes* cuts : {&from, &to}) {
      for (const CutAxis& cut : *cuts) extents[at(cut.axis)] = cut.extent;
    }
    return ops::specify_shape(x, extents);
  }
  const auto op = std::make_shared<MoveParts>(
      team, axes, std::make_shared<RedistributeMap>(team, axes, from, to), false);
  return op->make_node({&x, 1}).output(0);
}

namespace {

Variable moved_parts(const Variable& x, const Team& team, const CutAxis& cut, PartsMapPtr map,
                     bool is_adjoint) {
  const auto op =
      std::make_shared<MoveParts>(team, AxisNames{cut.team_axis}, std::move(map), is_adjoint);
  return op->make_node({&x, 1}).output(0);
}

}  // namespace

Variable halo(const Variable& x, const Team& team, const CutAxis& cut, index_t before,
              index_t after, HaloEdge edge) {
  return moved_parts(x, team, cut, std::make_shared<HaloMap>(team, cut, before, after, edge),
                     false);
}

Variable halo_adjoint(const Variable& y, const Team& team, const CutAxis& cut, index_t before,
                      index_t after, HaloEdge edge) {
  return moved_parts(y, team, cut, std::make_shared<HaloMap>(team, cut, before, after, edge), true);
}

}  // namespace palimpsest::distributed_detail
