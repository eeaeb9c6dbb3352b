// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstddef>

#include "palimpsest/base/view.hpp"
#include "palimpsest/device/device.hpp"

// Copies of elements between any two devices. No other code of memory/, tensor/, plan/ and run/
// asks on which device elements lie before it copies them.
namespace palimpsest {

/// out[i] = x[i], as strided_copy(), with x on one device and out on another or the same one. On
/// return `out` is written if it is on the host; else the copy is enqueued behind earlier work of
/// its device, and x may be changed if it is on the host.
///
/// Aliases  x and out are disjoint, or the very same elements
/// Errors   OutOfMemory: no staging memory; DeviceError: a device is lost
/// Cost     on one host or within one device one pass; else at most 32 MiB of staging at a time.
///          Copies on a device that convert, or of scattered elements, pass through the host.
void copy_elements_on(Device from, const ConstView& x, Device to, const MutableView& out);

/// out[i] = the element at `value`, which is on the host and has the dtype of out.
void fill_elements_on(const void* value, Device device, const MutableView& out);

/// The same for bytes in a row.
void copy_bytes_on(Device from, const void* x, Device to, void* out, std::size_t bytes);
/// Sets bytes in a row.
void fill_bytes_on(Device device, void* to, std::byte value, std::size_t bytes);

}  // namespace palimpsest
