// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/memory/device_copy.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "palimpsest/base/error.hpp"
#include "palimpsest/copy/strided_copy.hpp"
#include "palimpsest/device/devices.hpp"
#include "palimpsest/memory/staging.hpp"

namespace palimpsest {
namespace {

constexpr index_t kPieceBytes = index_t{32} << 20;
// Beyond so many rows a copy within a device passes through the host.
constexpr index_t kMostRows = 64;

index_t item_bytes(DType dtype) { return static_cast<index_t>(item_size(dtype)); }

// The elements of a view that lie in a row from some axis on.
struct Rows {
  std::size_t axis;  // the axes from here on are dense
  index_t elements;  // of one row
};

Rows rows_of(std::span<const index_t> extents, std::span<const index_t> strides) {
  Rows rows{extents.size(), 1};
  while (rows.axis > 0) {
    const std::size_t axis = rows.axis - 1;
    if (extents[axis] != 1 && strides[axis] != rows.elements) break;
    rows.elements *= extents[axis];
    rows.axis = axis;
  }
  return rows;
}

// Calls visit(offset) with the offset in elements of each row, in row-major order.
template <class Visit>
void for_each_row(std::span<const index_t> extents, std::span<const index_t> strides,
                  const Visit& visit, index_t offset = 0) {
  if (extents.empty()) return visit(offset);
  for (index_t i = 0; i < extents[0]; ++i) {
    for_each_row(extents.subspan(1), strides.subspan(1), visit, offset + i * strides[0]);
  }
}

// Calls copy(x, out) with the views, or with parts of them of at most kPieceBytes each.
template <class Copy>
void for_pieces(const ConstView& x, const MutableView& out, const Copy& copy) {
  const index_t bytes = byte_count(out.extents, out.dtype);
  std::size_t axis = 0;
  while (axis < out.extents.size() && out.extents[axis] <= 1) ++axis;
  if (bytes <= kPieceBytes || axis == out.extents.size()) return copy(x, out);
  const index_t n = out.extents[axis];
  const index_t at_once = std::clamp<index_t>(kPieceBytes / std::max<index_t>(bytes / n, 1), 1, n);
  Extents extents(out.extents.begin(), out.extents.end());
  for (index_t i = 0; i < n; i += at_once) {
    extents[axis] = std::min(at_once, n - i);
    const auto* const from =
        static_cast<const std::byte*>(x.data) + i * x.strides[axis] * item_bytes(x.dtype);
    auto* const to =
        static_cast<std::byte*>(out.data) + i * out.strides[axis] * item_bytes(out.dtype);
    for_pieces(ConstView{from, x.dtype, extents, x.strides},
               MutableView{to, out.dtype, extents, out.strides}, copy);
  }
}

void upload(const ConstView& x, Device device, const MutableView& out) {
  DeviceBackend& backend = backend_of(device);
  const auto bytes = static_cast<std::size_t>(byte_count(out.extents, out.dtype));
  Staging staging(device, backend, bytes);
  const Strides dense = contiguous_strides(out.extents);
  strided_copy(x, {staging.data(), out.dtype, out.extents, dense});
  const Rows rows = rows_of(out.extents, out.strides);
  const auto row_bytes = static_cast<std::size_t>(rows.elements * item_bytes(out.dtype));
  const std::byte* from = staging.data();
  for_each_row(std::span(out.extents).first(rows.axis), std::span(out.strides).first(rows.axis),
               [&](index_t offset) {
                 backend.copy(static_cast<std::byte*>(out.data) + offset * item_bytes(out.dtype),
                              from, row_bytes);
                 from += row_bytes;
               });
  staging.give_back_later();
}

void download(Device device, const ConstView& x, const MutableView& out) {
  DeviceBackend& backend = backend_of(device);
  const Strides dense = contiguous_strides(x.extents);
  const auto bytes = static_cast<std::size_t>(byte_count(x.extents, x.dtype));
  Staging staging(device, backend, bytes);
  // An axis of stride 0 is read once per repetition: such views are small.
  const Rows rows = rows_of(x.extents, x.strides);
  const auto row_bytes = static_cast<std::size_t>(rows.elements * item_bytes(x.dtype));
  std::byte* to = staging.data();
  for_each_row(std::span(x.extents).first(rows.axis), std::span(x.strides).first(rows.axis),
               [&](index_t offset) {
                 backend.copy(to,
                              static_cast<const std::byte*>(x.data) + offset * item_bytes(x.dtype),
                              row_bytes);
                 to += row_bytes;
               });
  backend.wait_on_host(backend.mark());
  strided_copy({staging.data(), x.dtype, x.extents, dense}, out);
}

// False if the elements lie so that the host has to sort them.
bool copied_within(Device device, const ConstView& x, const MutableView& out) {
  if (x.dtype != out.dtype) return false;
  const Rows of_x = rows_of(x.extents, x.strides), of_out = rows_of(out.extents, out.strides);
  const std::size_t axis = std::max(of_x.axis, of_out.axis);
  const auto outer = std::span(out.extents).first(axis);
  if (element_count(outer) > kMostRows) return false;
  DeviceBackend& backend = backend_of(device);
  const index_t item = item_bytes(x.dtype);
  const auto row_bytes =
      static_cast<std::size_t>((axis == of_x.axis ? of_x : of_out).elements * item);
  std::vector<index_t> sources;
  for_each_row(outer, std::span(x.strides).first(axis),
               [&](index_t offset) { sources.push_back(offset); });
  auto source = sources.begin();
  for_each_row(outer, std::span(out.strides).first(axis), [&](index_t offset) {
    backend.copy(static_cast<std::byte*>(out.data) + offset * item,
                 static_cast<const std::byte*>(x.data) + *source++ * item, row_bytes);
  });
  return true;
}

void copy_over_host(Device from, const ConstView& x, Device to, const MutableView& out) {
  const auto bytes = static_cast<std::size_t>(byte_count(x.extents, x.dtype));
  Staging middle(from, backend_of(from), bytes);
  const Strides dense = contiguous_strides(x.extents);
  download(from, x, {middle.data(), x.dtype, x.extents, dense});
  upload({middle.data(), x.dtype, x.extents, dense}, to, out);
}

}  // namespace

void copy_elements_on(Device from, const ConstView& x, Device to, const MutableView& out) {
  if (from.is_host() && to.is_host()) return strided_copy(x, out);
  if (element_count(out.extents) == 0) return;
  if (from == to && (x.data == out.data || copied_within(from, x, out))) return;
  for_pieces(x, out, [&](const ConstView& part, const MutableView& target) {
    if (from.is_host()) {
      upload(part, to, target);
    } else if (to.is_host()) {
      download(from, part, target);
    } else {
      copy_over_host(from, part, to, target);
    }
  });
}

void fill_elements_on(const void* value, Device device, const MutableView& out) {
  if (device.is_host()) return strided_fill(value, out);
  const std::span bytes(static_cast<const std::byte*>(value), item_size(out.dtype));
  const bool is_one_byte =
      std::all_of(bytes.begin(), bytes.end(), [&](std::byte b) { return b == bytes[0]; });
  const Rows rows = rows_of(out.extents, out.strides);
  if (is_one_byte && rows.axis == 0) {
    const auto n = static_cast<std::size_t>(rows.elements) * bytes.size();
    return fill_bytes_on(device, out.data, bytes[0], n);
  }
  const Strides repeated(out.extents.size(), 0);
  copy_elements_on({}, {value, out.dtype, out.extents, repeated}, device, out);
}

void copy_bytes_on(Device from, const void* x, Device to, void* out, std::size_t bytes) {
  if (bytes == 0) return;
  if (from.is_host() && to.is_host()) {
    std::memcpy(out, x, bytes);
    return;
  }
  const Extents extents{static_cast<index_t>(bytes)};
  const Strides dense{1};
  copy_elements_on(from, {x, DType::uint8, extents, dense}, to,
                   {out, DType::uint8, extents, dense});
}

void fill_bytes_on(Device device, void* to, std::byte value, std::size_t bytes) {
  if (bytes == 0) return;
  if (device.is_host()) {
    std::memset(to, static_cast<int>(value), bytes);
  } else {
    backend_of(device).fill(to, static_cast<std::uint8_t>(value), bytes);
  }
}

}  // namespace palimpsest
