//===- WrittenOperands.cpp - what a command writes ------------------------===//
#include "runtime/executor/WrittenOperands.h"

#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <vector>

namespace ds::runtime {

std::vector<const plan::proto::Operand *> writtenBy(const plan::proto::Command &command) {
  std::vector<const plan::proto::Operand *> written;
  for (const plan::proto::Operand &operand : command.kernel().operands())
    if (operand.access() == plan::proto::Operand::WRITE || operand.access() == plan::proto::Operand::READ_WRITE)
      written.push_back(&operand);
  if (command.has_fill())
    written.push_back(&command.fill().target());
  if (command.has_copy())
    written.push_back(&command.copy().target());
  if (command.has_feed())
    written.push_back(&command.feed().target());
  for (const plan::proto::CollectivePart &part : command.collective().parts())
    written.push_back(&part.target());
  for (const plan::proto::Operand &operand : command.receive().targets())
    written.push_back(&operand);
  return written;
}

std::vector<const plan::proto::Operand *> readBy(const plan::proto::KernelCommand &command) {
  std::vector<const plan::proto::Operand *> read;
  for (const plan::proto::Operand &operand : command.operands())
    if (operand.access() == plan::proto::Operand::READ || operand.access() == plan::proto::Operand::READ_WRITE)
      read.push_back(&operand);
  return read;
}

} // namespace ds::runtime
