// SPDX-License-Identifier: Apache-2.0
#include "distributed/counted_messages.hpp"

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

namespace {
palimpsest::Traffic sent;
}

// Takes precedence over the library's function: the program is searched first.
extern "C" __attribute__((visibility("default"))) int MPI_Isend(const void* buffer, int count,
                                                                MPI_Datatype type, int peer,
                                                                int tag, MPI_Comm comm,
                                                                MPI_Request* request) {
  int item = 0;
  MPI_Type_size(type, &item);
  sent.bytes += static_cast<palimpsest::index_t>(count) * item;
  sent.messages += 1;
  return PMPI_Isend(buffer, count, type, peer, tag, comm, request);
}

namespace palimpsest::testing {
Traffic sent_messages() { return sent; }
}  // namespace palimpsest::testing
