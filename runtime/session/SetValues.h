//===- SetValues.h - --set: what a run may change of its plan -------------===//
#pragma once

#include "runtime/checkpoint/Manifest.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ds::runtime {

/// Flags "optimizer.params.lr=0.001", given when so many steps had been done. Throws ds::Error for what is no
/// key=value.
std::vector<Manifest::Change> parseSettings(std::span<const std::string> flags, uint64_t stepsDone);

/// Changes the numbers that commands of the plan have been given, in order: learning rates, their schedules, clipping.
/// Throws ds::Error for a key that is structure, that the plan does not use, and for a value that it cannot have.
void applySettings(plan::proto::Plan &plan, std::span<const Manifest::Change> changes);

} // namespace ds::runtime
