//===- Torchrun.h - what torchrun tells a process -------------------------===//
#pragma once

#include "runtime/comm/tcp/Socket.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace ds::runtime {

/// From MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE, which torchrun and whoever follows it sets.
struct Torchrun {
  StoreAddress address;
  uint32_t rank = 0, ranks = 1;
};

/// The value of an environment variable, or nullptr.
using Environment = std::function<const char *(const char *name)>;

/// None where WORLD_SIZE is not set. Throws ds::Error for a variable that is missing or makes no sense.
std::optional<Torchrun> readTorchrun(const Environment &environment);

} // namespace ds::runtime
