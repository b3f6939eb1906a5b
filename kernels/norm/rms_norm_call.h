//===- rms_norm_call.h - the calls of rms_norm and rms_norm_grad ---------===//
#pragma once

#include "kernels/norm/norm_rows.h"

namespace ds::kernels {

struct RmsNormCall : NormRows {
  explicit RmsNormCall(const Call &call) : NormRows(call, {"rrms"}) {}
};

struct RmsNormGradCall : NormRows {
  explicit RmsNormGradCall(const Call &call, Device device = Device::Cpu) : NormRows(call, {"rrms"}) {
    call.requireWorkspace(device);
  }
};

} // namespace ds::kernels
