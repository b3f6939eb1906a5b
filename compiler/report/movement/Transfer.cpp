//===- Transfer.cpp - copies between memories -------------------------------===//
#include "compiler/report/movement/Transfer.h"

#include "runtime/plan/plan.pb.h"
#include "runtime/plan/run/Tail.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace ds::report {

using plan::proto::Command;
using plan::proto::Operand;
using plan::proto::Role;

static uint64_t &bytesIn(TransferBytes &sum, Transfer::Direction direction) {
  return direction == Transfer::Out    ? sum.out
         : direction == Transfer::Back ? sum.back
         : direction == Transfer::Read ? sum.read
                                       : sum.written;
}

std::optional<Transfer> transferOf(const Role &role, const Command &command) {
  if (!command.has_copy())
    return std::nullopt;
  const auto bufferOf = [&](const Operand &operand) -> const plan::proto::Buffer & {
    return role.buffers(int(operand.buffer()));
  };
  const auto spaceOf = [&](const Operand &operand) { return role.arenas(int(bufferOf(operand).arena())).space(); };
  const Operand &source = command.copy().source(), &target = command.copy().target();
  if (spaceOf(source) == spaceOf(target))
    return std::nullopt;
  const Transfer::Direction direction = spaceOf(source) == "nvme"     ? Transfer::Read
                                        : spaceOf(target) == "nvme"   ? Transfer::Write
                                        : spaceOf(source) == "device" ? Transfer::Out
                                                                      : Transfer::Back;
  // The end that is farther away: nearer buffers may hold several tensors in turn.
  const bool leaves = direction == Transfer::Out || direction == Transfer::Write;
  return Transfer{bufferOf(leaves ? target : source).name(), direction, bytesOf(source)};
}

TransferBytes transferBytesPerStep(const Role &role) {
  TransferBytes sum;
  for (const plan::proto::Program &program : role.programs())
    for (const plan::proto::Call &call : plan::callsBeforeTail(program))
      for (const Command &command : role.routines(int(call.routine())).commands())
        if (const auto moved = transferOf(role, command); moved && program.name() == "step")
          bytesIn(sum, moved->direction) += moved->bytes;
  return sum;
}

const plan::proto::Program &stepOf(const Role &role) {
  return *std::ranges::find(role.programs(), "step", &plan::proto::Program::name);
}

} // namespace ds::report
