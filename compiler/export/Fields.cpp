//===- Fields.cpp - small conversions from attributes to fields -----------===//
#include "compiler/export/Fields.h"

#include "dialects/Train/Train.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ds;
using namespace ds::exporting;

plan::proto::DType ds::exporting::exportDType(Type element) {
  if (element.isF32())
    return plan::proto::DTYPE_F32;
  if (element.isF64())
    return plan::proto::DTYPE_F64;
  if (element.isBF16())
    return plan::proto::DTYPE_BF16;
  if (element.isF16())
    return plan::proto::DTYPE_F16;
  if (element.isInteger(64))
    return plan::proto::DTYPE_I64;
  if (element.isInteger(32))
    return plan::proto::DTYPE_I32;
  return element.isInteger(1) ? plan::proto::DTYPE_BOOL : plan::proto::DTYPE_U8;
}

bool ds::exporting::exportAttribute(NamedAttribute attribute, plan::proto::Attribute &message) {
  message.set_name(attribute.getName().str());
  return TypeSwitch<Attribute, bool>(attribute.getValue())
      .Case([&](IntegerAttr value) {
        message.set_integer(value.getType().isInteger(1) ? int64_t(value.getValue().getBoolValue())
                                                         : value.getValue().getSExtValue());
        return true;
      })
      .Case([&](FloatAttr value) {
        message.set_number(value.getValueAsDouble());
        return true;
      })
      .Case([&](StringAttr value) {
        message.set_text(value.str());
        return true;
      })
      .Case([&](train::ReductionAttr value) {
        message.set_text(train::stringifyReduction(value.getValue()).str());
        return true;
      })
      .Case([&](train::ScatterReductionAttr value) {
        message.set_text(train::stringifyScatterReduction(value.getValue()).str());
        return true;
      })
      .Case([&](UnitAttr) {
        message.set_integer(1);
        return true;
      })
      .Case([&](DenseI64ArrayAttr value) {
        for (int64_t item : value.asArrayRef())
          message.mutable_integers()->add_values(item);
        message.mutable_integers();
        return true;
      })
      .Case([&](DenseF64ArrayAttr value) {
        for (double item : value.asArrayRef())
          message.mutable_numbers()->add_values(item);
        message.mutable_numbers();
        return true;
      })
      .Default(false);
}

std::string ds::exporting::exportElements(ElementsAttr elements) {
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(elements)) {
    ArrayRef<char> data = resource.getRawHandle().getBlob()->getData();
    return std::string(data.data(), data.size());
  }
  auto dense = cast<DenseElementsAttr>(elements);
  std::string bytes;
  if (dense.getElementType().isInteger(1)) {
    for (bool value : dense.getValues<bool>())
      bytes.push_back(char(value));
    return bytes;
  }
  ArrayRef<char> raw = dense.getRawData();
  const int64_t count = dense.isSplat() ? dense.getNumElements() : 1;
  bytes.reserve(raw.size() * count);
  for (int64_t i = 0; i < count; ++i)
    bytes.append(raw.data(), raw.size());
  return bytes;
}
