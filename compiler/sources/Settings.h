//===- Settings.h - whether a plan computes what its configuration asks ---===//
#pragma once

#include "compiler/sources/ConfigFile.h"
#include "compiler/sources/Sources.h"
#include "runtime/plan/plan.pb.h"

#include <vector>

namespace ds::sources {

/// Batches, optimizer, clipping, scales and learning rates of the reference program. Throws ds::Error.
std::vector<Claim> requireSettings(const plan::proto::Plan &plan, const ConfigFile &config);

} // namespace ds::sources
