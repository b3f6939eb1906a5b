//===- Fields.h - small conversions from attributes to fields -------------===//
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

#include "runtime/plan/plan.pb.h"

#include <string>

namespace ds::exporting {

plan::proto::DType exportDType(mlir::Type element);

/// Fills `dtype` and `shape` of a message that has both.
template <typename Message> void exportType(mlir::Type type, Message &message) {
  auto tensor = mlir::cast<mlir::RankedTensorType>(type);
  message.set_dtype(exportDType(tensor.getElementType()));
  for (int64_t dim : tensor.getShape())
    message.add_shape(dim);
}

/// An attribute as a field; false for kinds that plans have no field for.
bool exportAttribute(mlir::NamedAttribute attribute, plan::proto::Attribute &message);

/// The elements as bytes, little-endian, row-major, a bool one byte.
std::string exportElements(mlir::ElementsAttr elements);

} // namespace ds::exporting
