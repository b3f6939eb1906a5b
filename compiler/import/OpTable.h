//===- OpTable.h - which operators are known, in which opsets --------------------===//
#pragma once

#include "compiler/import/Node.h"

namespace ds::import {

using OpBuilderFn = void (*)(Node &);

/// The builder of a node's operator at its opset; throws Failure, saying what works, where there is none.
OpBuilderFn findOp(const FlatNode &node);

/// Throws Failure where a model that says opset 18 has operators of later ones, as torch.onnx.export writes it when it
/// is asked for an opset that it cannot convert to.
void checkStampedOpset(const FlatGraph &graph);

} // namespace ds::import
