//===- LoadMpi.h - the MPI transport, where it is installed ---------------===//
#pragma once

#include "runtime/comm/Transport.h"

#include <chrono>
#include <memory>

namespace ds::runtime {

/// Loads the library DSCommMpi, which lies beside the executable or in ../lib, and initializes MPI: this process
/// becomes one rank of those that mpirun or srun has started. Throws ds::Error where library, MPI or its thread support
/// is missing, or where not all processes come within the timeout.
std::unique_ptr<Transport> loadMpiTransport(std::chrono::milliseconds timeout);

/// Whether the library can be loaded.
bool hasMpi();

} // namespace ds::runtime
