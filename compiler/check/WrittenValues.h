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

/// By effect, what its operand holds once the command is done; nothing for operands that are not written. `read`: what
/// the operands held, `results`: what requireMeaning says of them. Refuses ("coverage", "value") sums of sums and
/// messages of other micro-batches.
std::vector<Contents> writtenBy(RankMemory &memory, const std::vector<Effect> &effects,
                                const std::vector<Contents> &read, const std::vector<Meaning::Result> &results,
                                size_t index);

/// What one part of a collective puts into its target (CollectiveValues.cpp).
Contents resultOfCollective(RankMemory &memory, const proto::Operand &target, size_t index);

/// Two sums added: cut where either is, contributions together. Nothing where ranks have shares of them along different
/// axes.
std::optional<Contents> sumOf(const RankMemory &memory, const Contents &a, const Contents &b);

} // namespace ds::check
