//===- Replay.h - what a run does to memory -------------------------------===//
#pragma once

#include "compiler/check/meaning/Meaning.h"
#include "compiler/check/schedule/Timeline.h"

#include <cstdint>
#include <optional>
#include <string>

namespace ds::check {

/// Follows every byte that the roles touch in a run, all of them together, messages from one to the other. Refuses
/// races ("race"), reads of what is not there any more or not yet ("value"), gradients that lack or repeat a
/// micro-batch or a rank, elements that are updated twice or never ("coverage"), and commands that do not do what they
/// are said to ("meaning"). All ranks of a role at once (ShadowMemory.h).
///
/// Of a program with a tail, `joint` is of a run with it, whose calls before the tail come first; returned is the
/// factor that the tail asks for (Values), which must be one by which the reference program's updates multiply their
/// gradients. Or `one` is that factor, which is 1 in a run without the tail.
std::optional<uint32_t> replay(const proto::Plan &plan, Meaning &meaning, const std::string &program,
                               const JointTimeline &joint, std::optional<uint32_t> one = std::nullopt);

} // namespace ds::check
