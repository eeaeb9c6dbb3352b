// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "palimpsest/device/backend.hpp"
#include "palimpsest/graph/op.hpp"
#include "palimpsest/graph/variable.hpp"

// Kernels of an accelerator for the ops: for each application the texts, and the launches that
// replace Op::run.
namespace palimpsest {

/// The start of an operand or of a piece of scratch, or a number.
struct LaunchArgument {
  /// number, imaginary: an input of one element on the host, whose value (part) is passed
  enum class Kind : std::uint8_t {
    input,
    output,
    scratch,
    constant,
    integer,
    real,
    number,
    imaginary
  };
  Kind kind = Kind::integer;
  int operand = 0;          ///< of input, output, number, imaginary
  index_t byte_offset = 0;  ///< from the first element, from the start of scratch or constants
  std::int64_t integer = 0;
  double real = 0;
};

struct PlannedLaunch {
  std::shared_ptr<const KernelText> text;  ///< of one kernel
  std::array<index_t, 3> groups{1, 1, 1};
  int items = 1;
  std::vector<LaunchArgument> arguments;
};

/// A step on an accelerator. Plain data: no code of the op runs in a call.
struct DeviceStep {
  /// A constant input: its elements are copied to the device with the memory of the plan, dense in
  /// row-major order.
  struct PlacedConstant {
    int input = 0;
    index_t offset = 0;
  };
  /// Numbers that follow from the parameters, placed in the same way.
  struct Table {
    std::vector<index_t> numbers;
    index_t offset = 0;
  };
  /// An input of the host with positions in an axis, which looks for those outside.
  struct IndexCheck {
    int input = 0;
    index_t size = 0;  ///< of the axis
    std::string who;
  };
  std::vector<PlacedConstant> constants;
  std::vector<Table> tables;
  index_t constant_bytes = 0;
  std::vector<IndexCheck> checks;
  /// Launches, the first ones, that look for wrong indices. A call that finds one throws the error
  /// of the host before it writes any result.
  std::size_t n_checking = 0;
  index_t check_word = 0;  ///< in scratch: they set it to 1, an int32
  std::vector<PlannedLaunch> launches;
  index_t scratch_bytes = 0;
};

/// An application to be lowered. The layouts of inputs and outputs are those of the plan, within
/// their buffers.
struct LowerRequest {
  const Apply& node;
  std::span<const Layout> inputs, outputs;
  std::vector<int> input_buffers, output_buffers;  ///< in which they lie
  std::vector<bool> on_host;                       ///< per input: the host has it
  const DeviceFacts& facts;
};

/// The launches of an application; nothing if there is no text for it: it runs on the host.
///
/// Math  elementwise programs, and sums in the order of the host: the bits of the host
/// Cost  makes texts; compiles nothing
std::optional<DeviceStep> lower_step(const LowerRequest& request);

namespace lower {
// The same for an op of a family, else nothing. A file each.
std::optional<DeviceStep> lower_program(const LowerRequest& request);
std::optional<DeviceStep> lower_moves(const LowerRequest& request);
std::optional<DeviceStep> lower_sums(const LowerRequest& request);
std::optional<DeviceStep> lower_indexed(const LowerRequest& request);
std::optional<DeviceStep> lower_products(const LowerRequest& request);
std::optional<DeviceStep> lower_filters(const LowerRequest& request);
std::optional<DeviceStep> lower_generators(const LowerRequest& request);
}  // namespace lower

}  // namespace palimpsest
