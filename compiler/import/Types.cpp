//===- Types.cpp - ONNX's element types -----------------------------------===//
#include "compiler/import/Types.h"

#include "compiler/import/files/Failure.h"

using namespace mlir;

namespace ds::import {

std::optional<DType> dtypeFromOnnx(int number) {
  switch (number) {
  case 1:
    return DType::F32;
  case 6:
    return DType::I32;
  case 7:
    return DType::I64;
  case 9:
    return DType::Bool;
  case 11:
    return DType::F64;
  default:
    return std::nullopt;
  }
}

std::optional<DType> valueTypeFromOnnx(int number) {
  return number == 10 ? DType::F16 : number == 16 ? DType::BF16 : dtypeFromOnnx(number);
}

std::optional<DType> knownTypeFromOnnx(int number) {
  switch (number) {
  case 2:
    return DType::U8;
  case 4:
    return DType::U16;
  case 12:
    return DType::U32;
  default:
    return valueTypeFromOnnx(number);
  }
}

std::string onnxTypeName(int number) {
  static const char *const names[] = {"undefined",      "float32",  "uint8",        "int8",           "uint16",
                                      "int16",          "int32",    "int64",        "string",         "bool",
                                      "float16",        "float64",  "uint32",       "uint64",         "complex64",
                                      "complex128",     "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
                                      "float8e5m2fnuz", "uint4",    "int4",         "float4e2m1"};
  if (number < 0 || size_t(number) >= std::size(names))
    return "data type " + std::to_string(number);
  return names[number];
}

Type elementType(MLIRContext *context, DType dtype) {
  switch (dtype) {
  case DType::F32:
    return Float32Type::get(context);
  case DType::F64:
    return Float64Type::get(context);
  case DType::F16:
    return Float16Type::get(context);
  case DType::BF16:
    return BFloat16Type::get(context);
  case DType::I64:
    return IntegerType::get(context, 64);
  case DType::I32:
    return IntegerType::get(context, 32);
  case DType::Bool:
    return IntegerType::get(context, 1);
  default:
    throw Failure(std::string(name(dtype)) + " values are for constants alone, and here they meet what is fed or " +
                  "trained; cast them to int64, bool or float32 first");
  }
}

RankedTensorType tensorType(MLIRContext *context, DType dtype, const Shape &shape) {
  return RankedTensorType::get(shape, elementType(context, dtype));
}

DType dtypeOf(Type element) {
  if (element.isF32())
    return DType::F32;
  if (element.isF64())
    return DType::F64;
  if (element.isF16() || element.isBF16())
    return element.isF16() ? DType::F16 : DType::BF16;
  return element.isInteger(64) ? DType::I64 : element.isInteger(32) ? DType::I32 : DType::Bool;
}

int64_t checkedElements(const Shape &shape, DType dtype, const std::string &what) {
  constexpr int64_t maxBytes = int64_t(1) << 48;
  if (shape.size() > 16)
    throw Failure(what + " has " + std::to_string(shape.size()) + " dimensions; at most 16 are supported");
  std::optional<int64_t> count = checkedElementCount(shape);
  if (!count)
    throw Failure(what + " has the impossible shape " + toString(shape));
  if (*count > maxBytes / byteSize(dtype))
    throw Failure(what + " of shape " + toString(shape) + " passes the limit of 2^48 bytes for one tensor");
  return *count;
}

} // namespace ds::import
