//===- TailRules.h - what decides whether a tail runs ---------------------===//
#pragma once

#include "compiler/check/RankMemory.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace ds::check {

/// The factor of gradients that the tail of a program asks for, when all calls before have ended; nothing where the
/// program has no tail. Refuses ("value", "meaning") what is not there, is not alike on all ranks, or is no factor by
/// which the reference program's updates multiply their gradients. `memories`: by role.
std::optional<uint32_t> requireFactor(const std::vector<std::unique_ptr<RankMemory>> &memories);

} // namespace ds::check
