//===- DType.h - element types of tensors ---------------------------------===//
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ds {

/// Element types that a plan may name. The numbers are those of `plan.proto`'s DType and never change.
enum class DType : uint8_t {
  Bool = 1,
  U8 = 2,
  U16 = 3,
  U32 = 4,
  I32 = 5,
  I64 = 6,
  F32 = 7,
  F64 = 8,
  BF16 = 9,
  F16 = 10
};

/// Bytes of one element; a bool takes one byte.
constexpr int64_t byteSize(DType dtype) {
  switch (dtype) {
  case DType::Bool:
  case DType::U8:
    return 1;
  case DType::U16:
  case DType::BF16:
  case DType::F16:
    return 2;
  case DType::U32:
  case DType::I32:
  case DType::F32:
    return 4;
  case DType::I64:
  case DType::F64:
    return 8;
  }
  return 0;
}

/// Of 16 bits: stored and moved, and computed with as float32.
constexpr bool isNarrowFloat(DType dtype) { return dtype == DType::BF16 || dtype == DType::F16; }

/// What losses, sums over ranks and random values are of: 16 bits lose most addends of a sum.
constexpr bool isWideFloat(DType dtype) { return dtype == DType::F32 || dtype == DType::F64; }

constexpr bool isFloat(DType dtype) { return isWideFloat(dtype) || isNarrowFloat(dtype); }

/// The name that users see: PyTorch's, e.g. "float32".
constexpr std::string_view name(DType dtype) {
  switch (dtype) {
  case DType::Bool:
    return "bool";
  case DType::U8:
    return "uint8";
  case DType::U16:
    return "uint16";
  case DType::U32:
    return "uint32";
  case DType::I32:
    return "int32";
  case DType::I64:
    return "int64";
  case DType::F32:
    return "float32";
  case DType::F64:
    return "float64";
  case DType::BF16:
    return "bfloat16";
  case DType::F16:
    return "float16";
  }
  return "?";
}

/// The type that a number of `plan.proto` stands for, if it stands for one.
constexpr std::optional<DType> dtypeFromNumber(int number) {
  if (number < int(DType::Bool) || number > int(DType::F16))
    return std::nullopt;
  return DType(number);
}

} // namespace ds
