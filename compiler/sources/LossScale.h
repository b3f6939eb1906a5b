//===- LossScale.h - whether a plan scales the loss as fp16 asks ----------===//
#pragma once

#include "compiler/sources/ConfigFile.h"
#include "runtime/plan/plan.pb.h"

#include <string>

namespace ds::sources {

/// State of a plan whose first value is the configuration's.
inline constexpr const char *lossScaleName = "optimizer::loss_scale",
                            *hysteresisName = "optimizer::loss_scale_hysteresis";

/// Runs the reference program's arithmetic on the loss scale in many states, beside DeepSpeed's rule. Throws ds::Error,
/// or returns what was found.
std::string requireLossScale(const plan::proto::Plan &plan, const Fp16 &wanted);

} // namespace ds::sources
