//===- Shuffle.h - a seeded permutation per epoch -------------------------===//
#pragma once

#include <cstdint>

namespace ds::runtime {

/// Which sample stands at `position` of epoch `epoch` when `count` samples are shuffled. A Feistel network over the
/// smallest power of four that holds `count`, its rounds drawn from Philox, walked until it lands below `count` (Black
/// and Rogaway, "Ciphers with arbitrary finite domains", 2002): no table, and any position at once.
uint64_t shuffled(uint64_t position, uint64_t count, uint64_t seed, uint64_t epoch) noexcept;

} // namespace ds::runtime
