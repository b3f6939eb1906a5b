//===- Launcher.cpp - mpirun, srun and torchrun ---------------------------===//
#include "tools/ds-run/Launcher.h"

#include "runtime/core/Error.h"

#include <cstdlib>
#include <string>

namespace ds::run {

void refuseLaunchers() {
  // Open MPI; MPICH, Intel MPI and srun --mpi=pmi2; srun; torchrun.
  for (const char *name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "WORLD_SIZE"}) {
    const char *value = std::getenv(name);
    if (value != nullptr && std::strtol(value, nullptr, 10) > 1)
      throw Error("a launcher started this as one of " + std::string(value) + " processes (" + name +
                  "), which is not available yet; start ds-run by itself");
  }
}

} // namespace ds::run
