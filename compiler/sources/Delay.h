//===- Delay.h - whether updates are of the step before -------------------===//
#pragma once

#include "compiler/sources/ConfigFile.h"
#include "runtime/plan/plan.pb.h"

#include <optional>

namespace ds::sources {

/// Of a plan whose updates are delayed by one step: a plan with the reference program in which each takes this step's
/// gradient and scalars at once, of which all other settings are asked; nothing where they are not delayed. Throws
/// ds::Error where that is not what the configuration asks for, or where an update takes something else.
std::optional<plan::proto::Plan> withoutDelay(const plan::proto::Plan &plan, const ConfigFile &config);

} // namespace ds::sources
