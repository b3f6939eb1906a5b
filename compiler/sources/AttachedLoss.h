//===- AttachedLoss.h - whether a plan's loss is the one that was attached ===//
#pragma once

#include "compiler/sources/ConfigFile.h"
#include "compiler/sources/ModelFile.h"
#include "compiler/sources/Sources.h"
#include "core/AttachedLoss.h"
#include "runtime/plan/plan.pb.h"

#include <optional>

namespace ds::sources {

/// The loss that a plan says was put behind its model's logits; nothing: the model has its own.
std::optional<AttachedLoss> attachedLossOf(const plan::proto::Plan &plan);

/// That a plan with an attached loss has the one of the configuration, or else of the model's class, and that its
/// reference program computes it from the labels: shift, ignored label, smoothing. A null source is not compared.
/// Throws ds::Error; nothing for a model with a loss of its own.
std::optional<Claim> requireAttachedLoss(const plan::proto::Plan &plan, const ModelFile *model,
                                         const ConfigFile *config);

} // namespace ds::sources
