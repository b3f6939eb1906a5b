//===- ShortenSchedule.h - the same schedule, fewer micro-batches ---------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <optional>

namespace ds::check {

namespace proto = plan::proto;

/// A plan whose programs `step` repeat themselves, with repetitions left out of the middle of each, as many as are like
/// others that stay; nothing where they do not, or too few could go. Why it stands for the whole: docs/checker.md.
std::optional<proto::Plan> shortenSchedule(const proto::Plan &plan);

/// The same with slots turned, so that the last micro-batches of `step` have the slots that they have in `plan`; in
/// `shorter` the first ones do. Nothing where both do.
std::optional<proto::Plan> turnSlots(const proto::Plan &plan, const proto::Plan &shorter);

} // namespace ds::check
