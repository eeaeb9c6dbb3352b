// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/code_pages.hpp"

#if defined(__linux__)
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#endif

namespace palimpsest::cli {

#if defined(__linux__)
namespace {

int release(dl_phdr_info* object, std::size_t, void*) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    const std::uintptr_t first = (begin + page - 1) / page * page;
    const std::uintptr_t last = (begin + segment.p_memsz) / page * page;
    if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
  }
  return 0;
}

}  // namespace

void release_code_pages() { dl_iterate_phdr(release, nullptr); }
#else
void release_code_pages() {}
#endif

}  // namespace palimpsest::cli
