//===- Replay.h - what a run does to memory ----------------------------------===//
#pragma once

#include "compiler/check/Meaning.h"
#include "compiler/check/Timeline.h"

namespace ds::check {

/// Follows every byte that one role touches in a run: refuses races ("race"), reads of what is not there any more or
/// not yet ("value"), gradients that lack or repeat a micro-batch or a rank, elements that are updated twice or never
/// ("coverage"). For each coordinate at which slices of ranks could meet other ranges in another way: docs/checker.md.
void replay(const proto::Plan &plan, Meaning &meaning, const proto::Role &role, const proto::Program &program,
            const Timeline &timeline);

} // namespace ds::check
