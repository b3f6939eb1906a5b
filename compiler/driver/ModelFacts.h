//===- ModelFacts.h - what a configuration may ask of the model -----------===//
#pragma once

#include "compiler/config/Config.h"

#include "mlir/IR/BuiltinOps.h"

namespace ds::driver {

/// The hidden size is the side that most matrices among the trained parameters have, of equally common ones the
/// longest: projections, embeddings and heads all begin or end at the residual stream.
config::ModelFacts modelFacts(mlir::ModuleOp module);

} // namespace ds::driver
