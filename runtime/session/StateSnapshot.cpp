//===- StateSnapshot.cpp - a step that can be undone ----------------------===//
#include "runtime/session/StateSnapshot.h"

#include "core/Error.h"
#include "runtime/device/Device.h"
#include "runtime/executor/Executor.h"
#include "runtime/executor/Storage.h"
#include "runtime/executor/WrittenOperands.h"
#include "runtime/plan/format/Lengths.h"
#include "runtime/plan/plan.pb.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace ds::runtime {
namespace {

/// What a run writes over, so that a copy must be kept.
bool isOverwritten(const plan::proto::Buffer &buffer) {
  return buffer.scope() == plan::proto::Buffer::PLAN && !buffer.has_next_of();
}

} // namespace

StateSnapshot::StateSnapshot(Executor &executor, std::string_view program) : executor_(executor) {
  const plan::proto::Role &role = executor.role();
  std::set<uint32_t> written;
  for (const plan::proto::Program &one : role.programs())
    for (const plan::proto::Call &call : one.calls())
      for (const plan::proto::Command &command : role.routines(int(call.routine())).commands())
        for (const plan::proto::Operand *operand : writtenBy(command))
          if (plan::isProgram(one.name(), program))
            written.insert(operand->buffer());
  uint64_t bytes = 0;
  for (const uint32_t buffer : written)
    bytes += isOverwritten(role.buffers(int(buffer))) ? role.buffers(int(buffer)).bytes() : 0;
  if (const uint64_t available = availableMemory(); bytes > available)
    throw Error("--on-nonfinite skip keeps the state before each step, " + std::to_string(bytes) +
                " bytes of main memory for rank " + std::to_string(executor.position().rank) + ", but there are " +
                std::to_string(available) + " available; leave it out, which stops the run at such a step");
  for (const uint32_t buffer : written)
    if (isOverwritten(role.buffers(int(buffer))))
      kept_.push_back(
          {executor.storage().buffer(buffer).base, std::vector<std::byte>(role.buffers(int(buffer)).bytes())});
}

void StateSnapshot::take() noexcept {
  for (Kept &kept : kept_)
    executor_.device().read(kept.bytes, kept.place);
}

void StateSnapshot::restore() const noexcept {
  executor_.exchangeBack();
  for (const Kept &kept : kept_)
    executor_.device().write(kept.place, kept.bytes);
}

} // namespace ds::runtime
