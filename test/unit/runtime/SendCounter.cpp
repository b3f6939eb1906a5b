//===- SendCounter.cpp - how many bytes a process gives to MPI_Isend ------===//
//
// Preloaded into ds-run: a wrapper of MPI's profiling interface that shares nothing with our own counters. At the end
// it writes the sum to $DS_SEND_COUNTER.RANK.
//
//===----------------------------------------------------------------------===//
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mpi.h>
#include <string>

namespace {
std::atomic<uint64_t> sent = 0;
}

extern "C" int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm communicator,
                         MPI_Request *request) {
  int elementBytes = 0;
  PMPI_Type_size(type, &elementBytes);
  sent += uint64_t(count) * uint64_t(elementBytes);
  return PMPI_Isend(buffer, count, type, to, tag, communicator, request);
}

extern "C" int MPI_Finalize() {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (const char *path = std::getenv("DS_SEND_COUNTER"))
    if (std::FILE *file = std::fopen((path + ("." + std::to_string(rank))).c_str(), "w")) {
      std::fprintf(file, "%llu", static_cast<unsigned long long>(sent.load()));
      std::fclose(file);
    }
  return PMPI_Finalize();
}
