//===- LocationName.cpp - the user's name behind a location ---------------===//
#include "dialects/Train/LocationName.h"

#include "mlir/IR/BuiltinAttributes.h"

std::string ds::train::locationName(mlir::Location location) {
  if (auto name = llvm::dyn_cast<mlir::NameLoc>(location))
    return name.getName().str();
  if (auto fused = llvm::dyn_cast<mlir::FusedLoc>(location))
    for (mlir::Location part : fused.getLocations())
      if (std::string name = locationName(part); !name.empty())
        return name;
  return "";
}
