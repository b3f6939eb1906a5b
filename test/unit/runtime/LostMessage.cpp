//===- LostMessage.cpp - a network that loses messages --------------------===//
//
// Preloaded into ds-run: of the messages of MPI that hold at least DS_LOSE_BYTES, the DS_LOSE_NUMBER-th that this
// process sends, counted from 1, is taken from it and never sent, and so is whatever it sends to the same rank later:
// a network keeps the order of a link, so nothing arrives behind what is lost. The rank is written to DS_LOSE_NOTE.
//
//===----------------------------------------------------------------------===//
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mpi.h>

namespace {

std::atomic<long> messages = 0;
std::atomic<int> dead = -1; // the rank that nothing reaches any more

long number(const char *name) {
  const char *text = std::getenv(name);
  return text != nullptr ? std::atol(text) : 0;
}

} // namespace

extern "C" int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm communicator,
                         MPI_Request *request) {
  const bool first = count >= number("DS_LOSE_BYTES") && ++messages == number("DS_LOSE_NUMBER");
  if (!first && to != dead)
    return PMPI_Isend(buffer, count, type, to, tag, communicator, request);
  if (first)
    dead = to;
  if (std::FILE *note = first ? std::fopen(std::getenv("DS_LOSE_NOTE"), "w") : nullptr) {
    std::fprintf(note, "%d", to);
    std::fclose(note);
  }
  *request = MPI_REQUEST_NULL;
  return MPI_SUCCESS;
}
