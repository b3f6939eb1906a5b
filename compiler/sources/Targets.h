//===- Targets.h - whether a plan weighs its loss by targets --------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <string>

namespace ds::sources {

/// That losses and gradients are sums over the labels that are not ignored, and targets the number of these;
/// UpdateProgram.cpp, that each is divided by it once. Throws ds::Error, or returns what was found.
std::string requireTargets(const plan::proto::Plan &plan);

} // namespace ds::sources
