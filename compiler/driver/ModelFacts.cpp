//===- ModelFacts.cpp - what a configuration may ask of the model ---------===//
#include "compiler/driver/ModelFacts.h"

#include "dialects/Train/Train.h"

#include "mlir/IR/BuiltinTypes.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>

using namespace mlir;
using namespace ds;

static std::string nameOf(Type type) {
  return type.isBF16() ? "bfloat16" : "float" + std::to_string(type.getIntOrFloatBitWidth());
}

config::ModelFacts driver::modelFacts(ModuleOp module) {
  std::map<int64_t, int64_t> matrices; // by the length of a side
  config::ModelFacts facts;
  for (train::VariableOp variable : module.getOps<train::VariableOp>()) {
    if (!variable.getTrainable())
      continue;
    const auto type = cast<RankedTensorType>(variable.getType());
    facts.dtype = nameOf(type.getElementType());
    if (type.getRank() == 2)
      for (const int64_t side : std::set<int64_t>(type.getShape().begin(), type.getShape().end()))
        if (side < int64_t(1) << 31) // its square is a number of elements
          ++matrices[side];
  }
  int64_t most = 0;
  for (const auto &[side, count] : matrices) // from the shortest
    if (count >= most) {
      most = count;
      facts.hiddenSize = side;
    }
  return facts;
}
