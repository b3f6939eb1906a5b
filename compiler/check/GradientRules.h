//===- GradientRules.h - gradients are complete, updates are made once ----===//
#pragma once

#include "compiler/check/RankMemory.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ds::check {

/// What an optimizer takes is, element by element, the gradient of the parameters that it updates: each micro-batch of
/// each rank once. Or, where the reference program says so, that of the step before. Refuses ("coverage") other sums
/// and a second update in one step; throws Mismatch where its settings, its state or its scalars are not the reference
/// program's. `read`, `values`: what its operands hold.
void requireGradient(RankMemory &memory, const std::vector<Contents> &read, std::span<const uint32_t> values,
                     size_t index);

/// Refuses ("meaning") to take what an operand holds as elements of another type than they are.
void requireSumType(const RankMemory &memory, const proto::Operand &operand, const Contents &sums, size_t index);

/// Refuses ("coverage", "meaning") squares of a gradient that is of this rank alone, not the whole one, or of another
/// type.
void requireSummed(const RankMemory &memory, const Contents &gradient, size_t index);

/// Why bytes of a pending variable, from its byte `byte` on, are not this step's whole gradient when the step has
/// ended, or empty.
std::string whyNotPending(const RankMemory &memory, const Known &held, uint32_t variable, uint64_t byte);

/// What a reduction adds up in its source. Sums of gradients lie in buffers of their own, with their contributions. A
/// gradient that was computed elsewhere, over an activation that died, say, is this micro-batch's contribution where
/// the command is said to accumulate that value.
Contents summands(RankMemory &memory, const proto::Operand &source, size_t index);

} // namespace ds::check
