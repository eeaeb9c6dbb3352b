// SPDX-License-Identifier: Apache-2.0
// Internal.
#pragma once

#include <cstdint>
#include <string>

#include "palimpsest/device/backend.hpp"

namespace palimpsest {

/// Compiled kernels in files of a folder, one for each text, compiler and device; but those of
/// drivers that compile late, which keep their own. Files appear
/// whole, and carry their length and a hash: those that are damaged, or that the driver refuses,
/// are replaced. What the folder refuses is logged, and costs only a compilation.
///
/// Threads  any; processes share the folder
class KernelCache {
 public:
  static constexpr std::uint64_t kLimit = std::uint64_t{256} << 20;

  /// `folder` empty: nothing is kept. `limit`: bytes of all files; those that were not used for
  /// longest go first. `texts`: folder in which texts are kept for reading; empty: they are not.
  KernelCache(std::string folder, std::string texts, std::uint64_t limit = kLimit);

  /// The kernels of a text.
  ///
  /// Errors   DeviceError "does not compile on"
  KernelProgram load(DeviceBackend& backend, const KernelText& text) const;

 private:
  std::string file_of(const DeviceFacts& facts, const KernelText& text) const;
  void keep_text(const KernelText& text) const;
  void keep(const std::string& path, const LoadedKernels& program) const;
  void make_room(const std::string& path) const;

  std::string folder_;
  std::string texts_;
  std::uint64_t limit_;
};

/// The folder for a setting: `off`, a folder, or null for `palimpsest/kernels` in the user's folder
/// of caches.
std::string kernel_folder(const char* setting, const char* cache_home, const char* home);

/// The cache of the process: PALIMPSEST_KERNEL_CACHE is its folder or `off`, PALIMPSEST_KERNELS the
/// folder for texts.
const KernelCache& kernel_cache();

/// The kernels of a text from the cache of the process; those that somebody still has are not
/// loaded again.
///
/// Errors   DeviceError "does not compile on"
KernelProgram shared_kernels(DeviceBackend& backend, const KernelText& text);

}  // namespace palimpsest
