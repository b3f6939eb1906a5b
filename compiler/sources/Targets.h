//===- Targets.h - whether a plan weighs its loss by targets --------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <string>

namespace ds::sources {

/// That losses and gradients are sums over the labels that are not ignored, and are divided by the number of these over
/// the whole batch, each once. Throws ds::Error, or returns what was found.
std::string requireTargets(const plan::proto::Plan &plan);

} // namespace ds::sources
