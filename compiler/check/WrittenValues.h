//===- WrittenValues.h - what lies in the operands that a command writes --===//
//
// Gradients are followed as sums of micro-batches; of other bytes it matters which value of the reference program they
// hold and whether an optimizer has made them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/check/RankMemory.h"
#include "compiler/check/meaning/Meaning.h"
#include "compiler/check/schedule/Effects.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace ds::check {

/// By effect, what its operand holds once the command is done; nothing for operands that are not written. `results`:
/// what requireMeaning says of them. Refuses ("coverage", "value") sums of sums and messages of other micro-batches.
std::vector<std::vector<OperandSegment>> writtenBy(RankMemory &memory, const std::vector<Effect> &effects,
                                                   const std::vector<Meaning::Result> &results, size_t index);

/// What one part of a collective puts into its target (CollectiveValues.cpp).
std::vector<OperandSegment> resultOfCollective(RankMemory &memory, const proto::Operand &target, size_t index);

/// All slices of what an operand holds of what was scattered, or of zeros: such as `own`, this rank's. Nothing where
/// that is not known.
std::optional<Scattered> scatteredIn(RankMemory &memory, const proto::Operand &operand, uint32_t communicator,
                                     const std::vector<OperandSegment> &own);
/// The same of an operand that a command sends.
std::optional<Scattered> scatteredIn(RankMemory &memory, const proto::Operand &operand,
                                     const std::vector<OperandSegment> &own);

/// Two sums added: both lists cut where either is, contributions together.
std::vector<OperandSegment> sumOf(const std::vector<OperandSegment> &a, const std::vector<OperandSegment> &b);

} // namespace ds::check
