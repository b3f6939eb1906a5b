//===- EndRules.h - what a run leaves behind ------------------------------===//
#pragma once

#include "compiler/check/RankMemory.h"

#include <cstddef>

namespace ds::check {

/// At the end of a run every buffer that outlives it holds what the reference program leaves in its variables: the new
/// value of those that this program changes, the old value of all others, alike on all ranks but for running
/// statistics. Where the program writes a buffer's next, this lies there. So what a run begins with may be taken for
/// right: docs/checker.md. Refuses ("coverage") others.
void requireEnds(RankMemory &memory);

/// Refuses ("coverage") a command of a program that changes no state, such as an evaluation, which writes some.
void requireKept(const RankMemory &memory, const proto::Operand &written, size_t index);

} // namespace ds::check
