//===- RoleSchedule.h - what a role runs when, for all of its ranks -------===//
#pragma once

#include "compiler/check/schedule/Effects.h"
#include "compiler/check/schedule/Timeline.h"
#include "runtime/plan/plan.pb.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace ds::check {

/// What is the same for all ranks of a role in one program.
struct RoleSchedule {
  RoleSchedule(const proto::Role &role, const proto::Program &program, const Timeline &timeline);

  std::vector<std::vector<size_t>> instanceOf;      ///< by call and command
  std::vector<std::vector<Effect>> effects;         ///< by instance
  std::map<uint32_t, uint32_t> firstCall, lastCall; ///< by routine
  /// By buffer that holds a variable or a bucket: its next, where the program writes that. Its tail counts, whether it
  /// runs or not, for the two exchange what they hold in any case.
  std::map<uint32_t, uint32_t> nexts;
  /// By routine and micro-batch: its first and its last call.
  std::map<std::pair<uint32_t, uint64_t>, std::pair<uint32_t, uint32_t>> calls;
};

} // namespace ds::check
