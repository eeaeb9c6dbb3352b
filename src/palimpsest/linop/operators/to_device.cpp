// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/linop/operators/to_device.hpp"

#include "palimpsest/linop/core/prelude.hpp"
#include "palimpsest/ops/control/device.hpp"

namespace palimpsest {
namespace {

Variable moved(const NamedLinop& A, const Variable& x, const char* from, const char* to) {
  const Device expected = Device::parse(A.attr(from).as_string());
  if (x.type().device != expected) {
    throw DeviceError(who(A) + "device: got " + x.type().device.str() + ", expected " +
                      expected.str());
  }
  return ops::to_device(x, Device::parse(A.attr(to).as_string()));
}

Variable to_device_fn(const NamedLinop& A, const Variable& x) { return moved(A, x, "from", "to"); }
Variable to_device_adj_fn(const NamedLinop& A, const Variable& y) {
  return moved(A, y, "to", "from");
}

std::string devices_of(const NamedLinop& A) {
  const std::string from = A.attr("from").as_string(), to = A.attr("to").as_string();
  return A.is_flipped() ? to + " -> " + from : from + " -> " + to;
}

void check_to_device(const NamedLinop& A) {
  for (const char* end : {"from", "to"}) Device::parse(A.attr(end).as_string());
}

}  // namespace

const LinopType& linop_types::to_device() {
  return PALIMPSEST_LINOP_TYPE(.name = "ToDevice",
                               .functions = {.fn = to_device_fn,
                                             .adj_fn = to_device_adj_fn,
                                             .split = split_unchanged},
                               .normal = unitary_normal, .check = check_to_device,
                               .remark = devices_of, .one_shape = true);
}

NamedLinop ToDevice(Device from, Device to, Dims dims) {
  return make_linop(linop_types::to_device(), NamedShape(std::move(dims)), {},
                    {{"from", from.str()}, {"to", to.str()}});
}

}  // namespace palimpsest
