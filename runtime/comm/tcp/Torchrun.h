//===- Torchrun.h - what torchrun tells a process -------------------------===//
#pragma once

#include "runtime/comm/tcp/Admission.h"
#include "runtime/comm/tcp/Socket.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace ds::runtime {

/// From MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE, which torchrun and whoever follows it sets. The run's id is
/// DS_RUN_ID or TORCHELASTIC_RUN_ID, its secret DS_RUN_SECRET or the first line of the file DS_RUN_SECRET_FILE; they
/// are empty where none of these is set.
struct Torchrun {
  StoreAddress address;
  uint32_t rank = 0, ranks = 1;
  RunKey key;
};

/// The value of an environment variable, or nullptr.
using Environment = std::function<const char *(const char *name)>;

/// None where WORLD_SIZE is not set. Throws ds::Error for a variable that is missing or makes no sense.
std::optional<Torchrun> readTorchrun(const Environment &environment);

} // namespace ds::runtime
