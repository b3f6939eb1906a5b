//===- IrModel.h - Functions.h as values of LLVM's IR ----------------------===//
#pragma once

#include "compiler/codegen/Functions.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Intrinsics.h"

#include <cstdint>
#include <limits>

namespace ds::codegen {

using Builder = llvm::IRBuilder<>; // folds what is constant

/// A value and where the next one is made of it. The kinds are types of their own: C++ then picks the right operator.
struct IrValue {
  Builder *builder;
  llvm::Value *value;
};
struct IrFloat : IrValue {};
struct IrInt : IrValue {};
struct IrLong : IrValue {};
struct IrBool : IrValue {};

// clang-format off
inline IrFloat operator+(IrFloat a, IrFloat b) { return {{a.builder, a.builder->CreateFAdd(a.value, b.value)}}; }
inline IrFloat operator-(IrFloat a, IrFloat b) { return {{a.builder, a.builder->CreateFSub(a.value, b.value)}}; }
inline IrFloat operator*(IrFloat a, IrFloat b) { return {{a.builder, a.builder->CreateFMul(a.value, b.value)}}; }
inline IrFloat operator/(IrFloat a, IrFloat b) { return {{a.builder, a.builder->CreateFDiv(a.value, b.value)}}; }
inline IrFloat operator-(IrFloat a) { return {{a.builder, a.builder->CreateFNeg(a.value)}}; }
inline IrBool operator<(IrFloat a, IrFloat b) { return {{a.builder, a.builder->CreateFCmpOLT(a.value, b.value)}}; }
inline IrBool operator>(IrFloat a, IrFloat b) { return {{a.builder, a.builder->CreateFCmpOGT(a.value, b.value)}}; }
inline IrBool operator<=(IrFloat a, IrFloat b) { return {{a.builder, a.builder->CreateFCmpOLE(a.value, b.value)}}; }
inline IrBool operator>=(IrFloat a, IrFloat b) { return {{a.builder, a.builder->CreateFCmpOGE(a.value, b.value)}}; }
inline IrBool operator==(IrFloat a, IrFloat b) { return {{a.builder, a.builder->CreateFCmpOEQ(a.value, b.value)}}; }
inline IrBool operator!=(IrFloat a, IrFloat b) { return {{a.builder, a.builder->CreateFCmpUNE(a.value, b.value)}}; }

inline IrInt operator+(IrInt a, IrInt b) { return {{a.builder, a.builder->CreateAdd(a.value, b.value)}}; }
inline IrInt operator-(IrInt a, IrInt b) { return {{a.builder, a.builder->CreateSub(a.value, b.value)}}; }
inline IrInt operator&(IrInt a, IrInt b) { return {{a.builder, a.builder->CreateAnd(a.value, b.value)}}; }
inline IrInt operator|(IrInt a, IrInt b) { return {{a.builder, a.builder->CreateOr(a.value, b.value)}}; }
inline IrInt operator<<(IrInt a, unsigned by) { return {{a.builder, a.builder->CreateShl(a.value, by)}}; }
inline IrBool operator==(IrInt a, IrInt b) { return {{a.builder, a.builder->CreateICmpEQ(a.value, b.value)}}; }
inline IrBool operator!=(IrInt a, IrInt b) { return {{a.builder, a.builder->CreateICmpNE(a.value, b.value)}}; }

inline IrLong operator+(IrLong a, IrLong b) { return {{a.builder, a.builder->CreateAdd(a.value, b.value)}}; }
inline IrLong operator-(IrLong a, IrLong b) { return {{a.builder, a.builder->CreateSub(a.value, b.value)}}; }
inline IrLong operator*(IrLong a, IrLong b) { return {{a.builder, a.builder->CreateMul(a.value, b.value)}}; }
inline IrLong operator|(IrLong a, IrLong b) { return {{a.builder, a.builder->CreateOr(a.value, b.value)}}; }
inline IrLong operator<<(IrLong a, unsigned by) { return {{a.builder, a.builder->CreateShl(a.value, by)}}; }
inline IrLong operator<<(IrLong a, IrLong by) { return {{a.builder, a.builder->CreateShl(a.value, by.value)}}; }
// clang-format on

class IrModel {
public:
  using Float = IrFloat;
  using Int = IrInt;
  using Long = IrLong;
  using Bool = IrBool;

  explicit IrModel(Builder &builder) : b(builder) {}

  Float of(llvm::Value *value) { return {{&b, value}}; }
  /// NaNs are those that the GPU makes of any NaN.
  Float number(float value) {
    if (value != value)
      return fromBits(integer(0x7fffffff));
    return of(llvm::ConstantFP::get(b.getFloatTy(), double(value)));
  }
  Int integer(uint32_t value) { return {{&b, b.getInt32(value)}}; }
  Long longInteger(uint64_t value) { return {{&b, b.getInt64(value)}}; }
  Float fma(Float x, Float y, Float z) {
    return of(b.CreateIntrinsic(llvm::Intrinsic::fma, {b.getFloatTy()}, {x.value, y.value, z.value}));
  }
  Float unary(llvm::Intrinsic::ID id, Float x) { return of(b.CreateUnaryIntrinsic(id, x.value)); }
  Float abs(Float x) { return unary(llvm::Intrinsic::fabs, x); }
  Float floor(Float x) { return unary(llvm::Intrinsic::floor, x); }
  Float withSignOf(Float x, Float y) { // on bits: PTX and other languages disagree on the operands' order
    return fromBits((bits(x) & integer(0x7fffffff)) | (bits(y) & integer(0x80000000)));
  }
  Int bits(Float x) { return {{&b, b.CreateBitCast(x.value, b.getInt32Ty())}}; }
  Float fromBits(Int x) { return of(b.CreateBitCast(x.value, b.getFloatTy())); }
  Float toFloat(Int x) { return of(b.CreateSIToFP(x.value, b.getFloatTy())); }
  Float toFloat(Long x) { return of(b.CreateSIToFP(x.value, b.getFloatTy())); }
  Long widen(Int x) { return {{&b, b.CreateZExt(x.value, b.getInt64Ty())}}; }
  Int narrow(Long x) { return {{&b, b.CreateTrunc(x.value, b.getInt32Ty())}}; }
  Int shiftRight(Int x, unsigned by) { return {{&b, b.CreateAShr(x.value, by)}}; }
  Long shiftRight(Long x, unsigned by) { return {{&b, b.CreateLShr(x.value, by)}}; }
  Bool isNegative(Int x) { return {{&b, b.CreateICmpSLT(x.value, b.getInt32(0))}}; }
  Bool both(Bool x, Bool y) { return {{&b, b.CreateAnd(x.value, y.value)}}; }
  Bool either(Bool x, Bool y) { return {{&b, b.CreateOr(x.value, y.value)}}; }
  Bool negate(Bool x) { return {{&b, b.CreateNot(x.value)}}; }
  template <typename T> T select(Bool condition, T x, T y) {
    return {{&b, b.CreateSelect(condition.value, x.value, y.value)}};
  }

private:
  Builder &b;
};

} // namespace ds::codegen
