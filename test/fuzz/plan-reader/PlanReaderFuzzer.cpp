//===- PlanReaderFuzzer.cpp - any bytes as a plan -------------------------===//
//
// Bytes that begin as a plan file go through the frame; all others are taken for the message itself, as no mutation
// would ever meet the checksum. What validation lets through must then be safe to prepare and to walk: the null device
// does.
//
//===----------------------------------------------------------------------===//
#include "compiler/certify/Refusal.h"
#include "core/Error.h"
#include "kernels/KernelRegistry.h"
#include "runtime/device/null/NullDevice.h"
#include "runtime/executor/Executor.h"
#include "runtime/plan/format/PlanFile.h"
#include "runtime/plan/format/PlanReader.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <google/protobuf/stubs/logging.h>
#include <string>

namespace {

namespace proto = ds::plan::proto;

/// A kernel that does nothing, so that the names of kernels do not end every walk.
std::unique_ptr<ds::kernels::Kernel> noKernel(const ds::kernels::Invocation &, const ds::kernels::BuildOptions &) {
  return nullptr;
}

/// Enough to take every branch; longer walks only cost time.
bool isShort(const proto::Plan &plan) {
  uint64_t commands = 0;
  for (const proto::Role &role : plan.roles())
    for (const proto::Program &program : role.programs())
      for (const proto::Call &call : program.calls())
        commands += uint64_t(role.routines(int(call.routine())).commands_size()) + 1;
  return commands < 10000;
}

void walk(const proto::Plan &plan) {
  ds::kernels::KernelRegistry kernels;
  for (const proto::Routine &routine : plan.roles(0).routines())
    for (const proto::Command &command : routine.commands())
      if (command.has_kernel())
        kernels.add(command.kernel().kernel(), noKernel);
  ds::runtime::NullDevice device;
  ds::runtime::Executor executor(plan, device, kernels, {.checkMemory = true, .checkNumerics = true});
  for (const char *name : {"step", "evaluate"})
    if (const auto program = executor.program(name))
      if (!executor.execute({.program = *program}).ok())
        std::abort(); // validation said that every run comes to its end
}

} // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer looks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const google::protobuf::LogSilencer silencer;
  proto::Plan plan;
  try {
    if (size >= 6 && std::memcmp(data, "DSPLAN", 6) == 0)
      plan = ds::plan::unframePlan(std::as_bytes(std::span(data, size)));
    else if (!plan.ParseFromArray(data, int(size)))
      return 0;
    ds::plan::validatePlan(plan);
    if (!isShort(plan))
      return 0;
    (void)ds::certify::refusalOf(plan); // says what it says, and comes back
    walk(plan);
  } catch (const ds::Error &error) {
    if (std::strlen(error.what()) == 0)
      std::abort();
  }
  return 0;
}
