//===- clip_factor_call.h - the call of clip_factor ----------------------===//
#pragma once

#include "kernels/Call.h"
#include "kernels/HostDevice.h"

namespace ds::kernels {

/// norm, factor.
struct ClipFactorCall {
  explicit ClipFactorCall(const Call &call) {
    maxNorm = call.number("max_norm");
    call.require(maxNorm > 0, "attribute 'max_norm' must be positive, not " + std::to_string(maxNorm));
  }

  double maxNorm = 0;
};

/// A NaN norm gives a NaN factor, so that it stays visible.
inline DS_HOST_DEVICE double clipFactorOf(double norm, double maxNorm) {
  const double ratio = (norm + 1e-6) / maxNorm;
  return ratio <= 1 ? 1 : 1 / ratio;
}

} // namespace ds::kernels
