//===- MeaningRules.h - commands compute what they are said to ------------===//
#pragma once

#include "compiler/check/RankMemory.h"
#include "compiler/check/meaning/Meaning.h"
#include "compiler/check/schedule/Effects.h"

#include <cstddef>
#include <vector>

namespace ds::check {

/// What a command gives its operands, by effect, as `read` what they hold. Refuses ("meaning") a command that does not
/// do what its reference ops say of the values that lie in its operands, and ("coverage") gradients that are not
/// complete.
std::vector<Meaning::Result> requireMeaning(RankMemory &memory, const std::vector<Effect> &effects,
                                            const std::vector<Contents> &read, size_t index);

} // namespace ds::check
