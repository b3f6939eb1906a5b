//===- LocationName.h - the user's name behind a location -----------------===//
#pragma once

#include "mlir/IR/Location.h"

#include <string>

namespace ds::train {

/// The name of the ONNX node or value that `location` carries, "" where it carries none.
std::string locationName(mlir::Location location);

} // namespace ds::train
