//===- Types.h - ONNX's element types -------------------------------------===//
#pragma once

#include "core/DType.h"
#include "core/Shape.h"

#include "mlir/IR/BuiltinTypes.h"

#include <optional>
#include <string>

namespace ds::import {

/// The element type that a number of ONNX's DataType stands for, or nothing where training does not support it.
std::optional<DType> dtypeFromOnnx(int number);
/// The same for values between operators, which may also be of 16 bits.
std::optional<DType> valueTypeFromOnnx(int number);
/// The same for values that are known while importing: unsigned integers, too.
std::optional<DType> knownTypeFromOnnx(int number);
/// The name of a number of ONNX's DataType, as PyTorch spells it, e.g. "bfloat16".
std::string onnxTypeName(int number);

/// Throws Failure for what is known while importing only.
mlir::Type elementType(mlir::MLIRContext *context, DType dtype);
mlir::RankedTensorType tensorType(mlir::MLIRContext *context, DType dtype, const Shape &shape);
DType dtypeOf(mlir::Type element);

/// Number of elements; throws Failure where a dimension is negative, the rank passes 16 or the bytes pass 2^48.
int64_t checkedElements(const Shape &shape, DType dtype, const std::string &what);

} // namespace ds::import
