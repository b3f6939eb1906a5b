//===- Train.cpp - registration of the train dialect ----------------------===//
#include "dialects/Train/Train.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ds::train;

#include "dialects/Train/TrainDialect.cpp.inc"
#include "dialects/Train/TrainEnums.cpp.inc"
#include "dialects/Train/TrainInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Train/TrainAttributes.cpp.inc"

void TrainDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Train/TrainAttributes.cpp.inc"
      >();
  registerTrainDialectOperations(this);
}

Operation *TrainDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return ConstantOp::create(builder, loc, type, elements);
}

Numerics ds::train::numericsOf(ModuleOp module) {
  auto numerics = module->getAttrOfType<NumericsAttr>(numericsAttribute);
  return numerics ? numerics.getValue() : Numerics::BitEqual;
}

void ds::train::raiseNumerics(ModuleOp module, Numerics numerics) {
  if (numerics > numericsOf(module))
    module->setAttr(numericsAttribute, NumericsAttr::get(module.getContext(), numerics));
}
