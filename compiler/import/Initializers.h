//===- Initializers.h - tensors of a file that are initializers by right ------===//
#pragma once

#include "compiler/import/Flatten.h"
#include "compiler/import/files/Metadata.h"
#include "compiler/import/files/WireScan.h"

#include <set>
#include <string>

namespace ds::import {

/// Makes initializers of Constant nodes of floats, as Paddle's exporter writes weights, in a file that has no other
/// floats as initializers.
void liftConstants(ScannedModel &model, FlatGraph &graph);

/// Makes initializers of the Identity nodes by which PyTorch's older exporter names parameters whose values were those
/// of another when it wrote the file, as those of fresh norms and copied layers are. A parameter that a module has
/// twice is one initializer there, and has no Identity. Returns their names.
std::set<std::string> separateMerged(ScannedModel &model, FlatGraph &graph, const Metadata &metadata);

} // namespace ds::import
