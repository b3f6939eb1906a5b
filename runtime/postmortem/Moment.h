//===- Moment.h - the records as they stood at one moment -----------------===//
#pragma once

#include "runtime/plan/plan.pb.h"
#include "runtime/postmortem/Records.h"

#include <cstdint>

namespace ds::runtime {

/// Of the waits for others that have not ended, the middle of the one that began first: who holds it up did so then.
/// What it did later may be another thing. A process that was stopped goes on when the run is over, ends what all have
/// waited for, begins the next, and only then writes its record. INT64_MAX if nobody waits.
int64_t momentOfTheHang(const plan::proto::Plan &plan, const Records &records);

/// What had not begun at the moment is taken back; what had not ended is running again and keeps its end. A record that
/// was written before stays as it is.
Records asOf(const plan::proto::Plan &plan, Records records, int64_t momentMs);

} // namespace ds::runtime
