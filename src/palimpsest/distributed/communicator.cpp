// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/distributed/communicator.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "palimpsest/base/error.hpp"
#include "palimpsest/distributed/team.hpp"
#include "palimpsest/memory/held_memory.hpp"

namespace palimpsest::distributed_detail {
namespace {

// Beside the library, by its full path. It stays loaded: MPI has exit handlers. Its symbols are
// global, since MPI loads parts of itself that look for them.
void* open_module() {
  const std::string name = "libpalimpsest_mpi.so";
  constexpr int kFlags = RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE;
  Dl_info self{};
  if (::dladdr(reinterpret_cast<const void*>(&open_module), &self) != 0 && self.dli_fname) {
    const std::string path = self.dli_fname;
    if (void* const found = ::dlopen((path.substr(0, path.rfind('/') + 1) + name).c_str(), kFlags))
      return found;
  }
  return ::dlopen(name.c_str(), kFlags);
}

std::shared_ptr<Communicator> open(const void* mpi_comm) {
  void* const module = open_module();
  const void* const found = module ? ::dlsym(module, "palimpsest_mpi_functions") : nullptr;
  if (!found) {
    const char* const reason = ::dlerror();
    throw NotSupported(fmt::format(
        "[Team] several ranks need MPI, which this build lacks ({}). Try to install libopenmpi-dev "
        "and build again",
        reason ? reason : "no module"));
  }
  std::string problem;
  const auto hold = [](std::span<const std::byte> bytes, bool holds) {
    holds ? hold_memory(bytes) : release_memory(bytes);
  };
  Communicator* const made = static_cast<const MpiFunctions*>(found)->open(mpi_comm, hold, problem);
  if (!made) throw CommunicationError("[Team] MPI cannot be used: " + problem);
  return std::shared_ptr<Communicator>(made);
}

}  // namespace

int launched_ranks() {
  for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"}) {
    if (const char* const text = std::getenv(name)) return std::max(std::atoi(text), 1);
  }
  return 1;
}

std::shared_ptr<Communicator> world_communicator() { return open(nullptr); }
std::shared_ptr<Communicator> communicator_of(const void* mpi_comm) { return open(mpi_comm); }

}  // namespace palimpsest::distributed_detail
