//===- GradientRules.h - gradients are complete, updates are made once ----===//
#pragma once

#include "compiler/check/RankMemory.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ds::check {

/// What an optimizer takes is, element by element, the gradient of the parameters that it updates: each micro-batch of
/// each rank once. Or, where the reference program says so, that of the step before. Refuses ("coverage") other sums
/// and a second update in one step; throws Mismatch where its settings, its state or its scalars are not the reference
/// program's. `values`: what its operands hold.
void requireGradient(RankMemory &memory, std::span<const uint32_t> values, size_t index);

/// Refuses ("coverage") squares of a gradient that is of this rank alone, or not the whole one.
void requireSummed(RankMemory &memory, const proto::Operand &gradient, size_t index);

/// Why bytes of a pending variable, from its byte `byte` on, are not this step's whole gradient when the step has
/// ended, or empty.
std::string whyNotPending(const RankMemory &memory, const Content &content, uint32_t variable, uint64_t byte);

/// Where the ranks share out a sum of gradients, each rank's optimizer reads its own slice alone: so every slice of
/// what is summed is looked at here. Refuses ("coverage") what is not the gradients of the bucket that the result
/// updates.
void requireSlices(RankMemory &memory, const proto::CollectivePart &part, size_t index);

/// What a reduction adds up: `bytes` bytes of its source behind the first `skip`. Sums of gradients lie in buffers of
/// their own, with their contributions. A gradient that was computed elsewhere, over an activation that died, say, is
/// this micro-batch's contribution where the command is said to accumulate that value.
std::vector<OperandSegment> summands(RankMemory &memory, const proto::Operand &source, uint64_t skip, uint64_t bytes,
                                     size_t index);

} // namespace ds::check
