//===- ShortenSchedule.h - the same schedule, fewer micro-batches ---------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <optional>

namespace ds::check {

namespace proto = plan::proto;

/// A plan whose programs `step` repeat themselves, with repetitions left out of the middle of each, as many as are like
/// others that stay; nothing where they do not, or too few could go. Of `plan`, all lives must be apart. Why what is
/// computed in the whole is then what is computed in this: docs/checker.md.
std::optional<proto::Plan> shortenSchedule(const proto::Plan &plan);

} // namespace ds::check
