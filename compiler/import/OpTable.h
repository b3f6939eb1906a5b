//===- OpTable.h - which operators are known, in which opsets --------------------===//
#pragma once

#include "compiler/import/Node.h"

namespace ds::import {

using OpBuilderFn = void (*)(Node &);

/// The builder of a node's operator at its opset; throws Failure, saying what works, where there is none.
OpBuilderFn findOp(const FlatNode &node);

} // namespace ds::import
