//===- Launcher.cpp - mpirun, srun and torchrun ---------------------------===//
#include "tools/ds-run/Launcher.h"

#include "core/Error.h"
#include "runtime/session/Training.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

namespace ds::run {
namespace {

/// The number in an environment variable.
std::optional<uint64_t> number(const char *name) {
  const char *text = std::getenv(name);
  char *end = nullptr;
  const uint64_t value = text != nullptr ? std::strtoull(text, &end, 10) : 0;
  return end != nullptr && end != text ? std::optional(value) : std::nullopt;
}

} // namespace

std::optional<runtime::Launch> detectLauncher(const std::string &arguments) {
  const uint64_t workers = number("WORLD_SIZE").value_or(1);
  const runtime::Launch torchrun{.launcher = "torchrun", .processes = workers, .byTcp = true, .arguments = arguments};
  if (workers > 1 && std::getenv("TORCHELASTIC_RUN_ID") != nullptr) // whatever started torchrun itself
    return torchrun;
  const bool slurm = number("SLURM_PROCID").has_value();
  const char *launcher = slurm ? "srun" : "mpirun";
  if (const auto processes = number("OMPI_COMM_WORLD_SIZE")) // Open MPI's mpirun, prterun
    return runtime::Launch{.launcher = launcher, .processes = processes};
  if (const auto processes = number("PMI_SIZE")) // MPICH's and Intel MPI's mpiexec, srun --mpi=pmi2
    return runtime::Launch{.launcher = launcher, .processes = processes};
  if (number("PMIX_RANK")) // srun --mpi=pmix: only MPI itself knows how many
    return runtime::Launch{.launcher = launcher, .processes = std::nullopt};
  const uint64_t tasks = number("SLURM_STEP_NUM_TASKS").value_or(1);
  if (slurm && tasks > 1)
    throw Error("srun started this as one of " + std::to_string(tasks) +
                    " processes, but without a way to find each other (neither PMIX_RANK nor PMI_SIZE is set)",
                "srun --mpi=pmix ds-run" + arguments);
  return workers > 1 ? std::optional(torchrun) : std::nullopt;
}

uint64_t processesStarted() {
  uint64_t most = 1;
  for (const char *name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "WORLD_SIZE"})
    most = std::max(most, number(name).value_or(1));
  return most;
}

} // namespace ds::run
