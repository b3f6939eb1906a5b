//===- Movement.cpp - bytes moved beside the least that any schedule could move ---===//
#include "compiler/report/Movement.h"

#include "compiler/report/Facts.h"
#include "compiler/report/PeakMemory.h"
#include "compiler/report/StepTensors.h"
#include "compiler/report/Transfers.h"
#include "compiler/scheduling/MovementProblem.h"
#include "compiler/scheduling/TensorUses.h"
#include "core/Error.h"
#include "runtime/plan/plan.pb.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

namespace ds::report {
namespace {

using plan::proto::Plan;
using plan::proto::Role;

uint64_t roomOf(const Plan &plan, const Role &role) {
  const uint64_t memory = plan.machine().device_memory(), reserve = plan.machine().reserve();
  return memory > reserve ? memory - reserve : measure(role, "device").arenaBytes;
}

/// "1.031", of what must move.
std::string ratioText(const MovedBytes &moved) {
  if (moved.moved == 0 || moved.least == 0)
    return "";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f", double(moved.moved) / double(moved.least));
  return text.data();
}

} // namespace

std::optional<MovedBytes> movedBytes(const Plan &plan, const Role &role) {
  const TransferBytes transfers = transferBytesPerStep(role);
  MovedBytes result{.room = roomOf(plan, role), .moved = transfers.out + transfers.back};
  if (result.moved == 0 && measure(role, "device").programPeak(role, "step") <= result.room)
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
  if (const auto times = transferTimes(plan, role)) {
    result.exposed = times->exposed();
    // Both ways at once; what does not fit beside a step without transfers is seen.
    const double secondsAByte = 1 / linkOf(plan, Transfer::Out)->bytes_per_second();
    result.leastExposed = std::max(0.0, double(result.least) / 2 * secondsAByte - times->stepWithout);
  }
  return result;
}

Table movementTable(const Plan &plan) {
  Table table({"rank", "device memory", "moved", "least", "moved / least", "exposed", "least"},
              {false, true, true, true, true, true, true});
  const bool knowsLink = linkOf(plan, Transfer::Out) != nullptr;
  for (const Role &role : plan.roles())
    if (const auto moved = movedBytes(plan, role))
      table.add({rankRanges(role), grouped(moved->room), grouped(moved->moved), grouped(moved->least),
                 ratioText(*moved), knowsLink ? secondsText(moved->exposed) : "",
                 knowsLink ? secondsText(moved->leastExposed) : ""});
  return table;
}

} // namespace ds::report
