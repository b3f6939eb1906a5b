//===- CallRules.cpp - kernels' own checks of their calls -----------------===//
#include "compiler/check/meaning/CallRules.h"

#include "compiler/check/meaning/Mismatch.h"
#include "core/Error.h"
#include "kernels/KernelTable.h"
#include "runtime/plan/Invocations.h"

#include <string>

namespace ds::check {

void requireCalls(const proto::Plan &plan) {
  const kernels::Device device = plan.machine().device() == "cuda" ? kernels::Device::Cuda : kernels::Device::Cpu;
  for (const proto::Role &role : plan.roles())
    for (const proto::Routine &routine : role.routines())
      for (int i = 0; i < routine.commands_size(); ++i)
        try {
          if (routine.commands(i).has_kernel())
            kernels::requireCall(plan::invocationOf(routine.commands(i).kernel()), device);
        } catch (const Error &error) {
          throw Mismatch{"role " + role.name() + ", routine " + routine.name() + ", command " + std::to_string(i) +
                         ": " + error.what()};
        }
}

} // namespace ds::check
