//===- State.h - whether a plan carries what its model's forward changes --===//
#pragma once

#include "compiler/sources/ModelFile.h"
#include "compiler/sources/Sources.h"
#include "runtime/plan/plan.pb.h"

#include <optional>

namespace ds::sources {

/// Each micro-batch stores in the buffers of deepstatic.state what the model's nodes make of them, and in no other.
/// Nothing where there are none. Throws ds::Error.
std::optional<Claim> requireState(const plan::proto::Plan &plan, const ModelFile &model);

} // namespace ds::sources
