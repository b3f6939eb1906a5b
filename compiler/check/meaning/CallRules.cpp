//===- CallRules.cpp - kernels' own checks of their calls -----------------===//
#include "compiler/check/meaning/CallRules.h"

#include "compiler/check/meaning/Mismatch.h"
#include "core/Error.h"
#include "kernels/KernelTable.h"
#include "runtime/plan/run/Invocations.h"

#include <string>

namespace ds::check {

void requireCalls(const proto::Plan &plan) {
  const bool onGpu = plan.machine().device() == "cuda";
  for (const proto::Role &role : plan.roles())
    for (const proto::Routine &routine : role.routines())
      for (int i = 0; i < routine.commands_size(); ++i)
        try {
          const proto::Command &command = routine.commands(i);
          const bool onHost = role.queues(int(command.queue())).kind() == proto::Queue::HOST;
          if (command.has_kernel())
            kernels::requireCall(plan::invocationOf(command.kernel()),
                                 onGpu && !onHost ? kernels::Device::Cuda : kernels::Device::Cpu);
        } catch (const Error &error) {
          throw Mismatch{"role " + role.name() + ", routine " + routine.name() + ", command " + std::to_string(i) +
                         ": " + error.what()};
        }
}

} // namespace ds::check
