//===- EffectRules.h - what has an effect happens once --------------------===//
#pragma once

#include "compiler/check/RankMemory.h"
#include "compiler/check/RankReplay.h"
#include "runtime/plan/plan.pb.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ds::check {

/// How many a run of the program has. Calls of the first role are of as many as those of any other.
uint64_t microbatchesOf(const proto::Plan &plan, const std::string &program);

/// Sums over micro-batches and running statistics take each micro-batch once, in every role that has to do with them.
/// Sums of gradients are looked at byte by byte (GradientRules.h); what is stored is what lies there at the end
/// (EndRules.h, MetricRules.h). Refuses ("coverage") others.
void requireEffects(const proto::Plan &plan, const std::string &program, const std::vector<RankReplay> &replays);

/// A running statistic is averaged with its own old value. Throws ("meaning") where something else lies there.
void requireAveraged(RankMemory &memory, const std::vector<Effect> &effects, size_t index);

} // namespace ds::check
