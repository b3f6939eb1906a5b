//===- Initializers.h - tensors of a file that are initializers by right ------===//
#pragma once

#include "compiler/import/Flatten.h"
#include "compiler/import/LossFile.h"
#include "compiler/import/files/Metadata.h"
#include "compiler/import/files/WireScan.h"

namespace ds::import {

/// Whether a file has its weights in Constant nodes, as Paddle's exporter writes them: it has no other floats as
/// initializers, and is not PyTorch's, whose parameters are initializers.
bool hasWeightsInConstants(const ScannedModel &model, const Metadata &metadata);

/// Makes initializers of the graph of those that the bodies of control flow have, and with `constantsLearn` of their
/// Constant nodes, too. A name that several bodies have stays where it is.
void liftFromBodies(ScannedModel &model, bool constantsLearn);

/// Makes initializers of all Constant nodes, those of few elements too.
void liftConstants(ScannedModel &model, FlatGraph &graph, const JoinedLoss &loss);

/// Makes initializers of the Identity nodes by which PyTorch's older exporter names parameters whose values were those
/// of another when it wrote the file, as those of fresh norms and copied layers are. A parameter that a module has
/// twice is one initializer there, and has no Identity. ScannedModel::merged has their names.
void separateMerged(ScannedModel &model, FlatGraph &graph, const Metadata &metadata);

} // namespace ds::import
