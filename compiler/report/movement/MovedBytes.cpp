//===- MovedBytes.cpp - bytes moved beside the least that any schedule could move ---===//
#include "compiler/report/movement/MovedBytes.h"

#include "compiler/report/movement/StepTensors.h"
#include "compiler/report/movement/Transfer.h"
#include "compiler/scheduling/MovementProblem.h"
#include "compiler/scheduling/TensorUses.h"
#include "core/Error.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <optional>

namespace ds::report {
namespace {

using plan::proto::Plan;
using plan::proto::Role;

uint64_t arenaBytes(const Role &role) {
  uint64_t bytes = 0;
  for (const plan::proto::Arena &arena : role.arenas())
    bytes += arena.space() == "device" ? arena.bytes() : 0;
  return bytes;
}

uint64_t roomOf(const Plan &plan, const Role &role) {
  const uint64_t memory = plan.machine().device_memory(), reserve = plan.machine().reserve();
  return memory > reserve ? memory - reserve : arenaBytes(role);
}

} // namespace

std::optional<MovedBytes> movedBytes(const Plan &plan, const Role &role) {
  const TransferBytes transfers = transferBytesPerStep(role);
  MovedBytes result{.room = roomOf(plan, role), .moved = transfers.out + transfers.back};
  if (result.moved == 0 && arenaBytes(role) <= result.room)
    return std::nullopt;
  const StepTensors step = stepTensors(plan, role);
  const scheduling::Movement movement = scheduling::movementOf(step.tensors, step.used, int64_t(result.room));
  const auto least = scheduling::leastMovement(movement.problem);
  if (!least)
    return std::nullopt;
  if (const auto wrong = scheduling::verify(movement.problem, *least))
    throw Error("the least bytes that role " + role.name() + " could move are wrong: " + *wrong);
  result.forced = uint64_t(movement.forced);
  result.least = uint64_t(movement.forced + least->bytes);
  return result;
}

} // namespace ds::report
