//===- TransferBytes.cpp - what a rank copies between memories in a step ---===//
#include "compiler/report/TransferBytes.h"

#include "compiler/report/Facts.h"
#include "core/DType.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>

namespace ds::report {

TransferBytes transferBytesPerStep(const plan::proto::Role &role) {
  const auto isInDevice = [&](const plan::proto::Operand &operand) {
    return role.arenas(int(role.buffers(int(operand.buffer())).arena())).space() == "device";
  };
  TransferBytes sum;
  for (const plan::proto::Program &program : role.programs())
    for (const plan::proto::Call &call : program.calls())
      for (const plan::proto::Command &command : role.routines(int(call.routine())).commands()) {
        if (program.name() != "step" || !command.has_copy())
          continue;
        const plan::proto::Operand &source = command.copy().source(), &target = command.copy().target();
        const auto dtype = dtypeFromNumber(int(source.dtype()));
        const uint64_t bytes = dtype ? elements(source.shape()) * uint64_t(byteSize(*dtype)) : 0;
        sum.out += isInDevice(source) && !isInDevice(target) ? bytes : 0;
        sum.back += !isInDevice(source) && isInDevice(target) ? bytes : 0;
      }
  return sum;
}

} // namespace ds::report
