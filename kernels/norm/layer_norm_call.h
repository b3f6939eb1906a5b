//===- layer_norm_call.h - the calls of layer_norm and layer_norm_grad ---===//
#pragma once

#include "kernels/norm/norm_rows.h"

namespace ds::kernels {

struct LayerNormCall : NormRows {
  explicit LayerNormCall(const Call &call) : NormRows(call, {"mean", "rstd"}) {}
};

struct LayerNormGradCall : NormRows {
  explicit LayerNormGradCall(const Call &call, Device device = Device::Cpu) : NormRows(call, {"mean", "rstd"}) {
    call.requireWorkspace(device);
  }
};

} // namespace ds::kernels
