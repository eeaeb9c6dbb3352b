/* SPDX-License-Identifier: Apache-2.0 */
/* Counts what a process gives to MPI, by the profiling interface, whoever calls: see
 * pylops_mpi_sense.py. A reduction or gather counts the bytes of its send buffer once; what an
 * implementation sends for it is its own affair. */
#include <mpi.h>

static long long bytes, calls;

long long bytes_given_to_mpi(void) { return bytes; }
long long calls_of_mpi(void) { return calls; }

static void count(int n, MPI_Datatype type) {
  int size = 0;
  PMPI_Type_size(type, &size);
  bytes += (long long)n * size;
  ++calls;
}

#define REDUCE(name, call, ...)                                                               \
  int MPI_##name(const void* from, void* to, int n, MPI_Datatype type, MPI_Op op, __VA_ARGS__) { \
    count(n, type);                                                                           \
    return PMPI_##name call;                                                                  \
  }
REDUCE(Allreduce, (from, to, n, type, op, comm), MPI_Comm comm)
REDUCE(Iallreduce, (from, to, n, type, op, comm, request), MPI_Comm comm, MPI_Request* request)
REDUCE(Reduce, (from, to, n, type, op, root, comm), int root, MPI_Comm comm)

#define SEND(name, call, ...)                                                              \
  int MPI_##name(const void* from, int n, MPI_Datatype type, int to, int tag, __VA_ARGS__) { \
    count(n, type);                                                                        \
    return PMPI_##name call;                                                               \
  }
SEND(Send, (from, n, type, to, tag, comm), MPI_Comm comm)
SEND(Isend, (from, n, type, to, tag, comm, request), MPI_Comm comm, MPI_Request* request)

int MPI_Bcast(void* from, int n, MPI_Datatype type, int root, MPI_Comm comm) {
  count(n, type);
  return PMPI_Bcast(from, n, type, root, comm);
}
int MPI_Allgather(const void* from, int n, MPI_Datatype type, void* to, int m, MPI_Datatype other,
                  MPI_Comm comm) {
  count(n, type);
  return PMPI_Allgather(from, n, type, to, m, other, comm);
}
int MPI_Allgatherv(const void* from, int n, MPI_Datatype type, void* to, const int* m,
                   const int* at, MPI_Datatype other, MPI_Comm comm) {
  count(n, type);
  return PMPI_Allgatherv(from, n, type, to, m, at, other, comm);
}
