// SPDX-License-Identifier: Apache-2.0
// Internal: what the library asks of Linux and other systems do in another way or not at all. All
// other files keep to POSIX, but for inspect/debug/fault_handler.cpp, which has a guard of its own.
#pragma once

#include <cstddef>
#include <string>

namespace palimpsest::system_detail {

// Asks once for barrier_of_threads(); false: the system has none.
bool register_barrier_of_threads() noexcept;
// Orders the memory accesses of all threads of the process; false: not done.
bool barrier_of_threads() noexcept;

// A file without a name, which is closed by exec(); its descriptor, or -1 with errno set.
int make_memory_file(const char* name) noexcept;
// Forbids changes of the size of such a file. False with errno set: not possible.
bool seal_size(int descriptor) noexcept;
// True if nobody can change the size; on systems without seals of every file.
bool has_sealed_size(int descriptor) noexcept;
// The path by which this process opens the file of a descriptor anew.
std::string path_of(int descriptor);

// A figure of the process in bytes, by its name in /proc/self/status, such as "VmData"; 0: the
// system does not tell. Allocates nothing.
std::size_t status_bytes(const char* name) noexcept;

// Asks for the end of this process when its parent ends. Others call getppid() to see it.
void end_with_parent() noexcept;

// Bytes that a block of malloc() has.
std::size_t allocated_bytes(void* block) noexcept;

}  // namespace palimpsest::system_detail
