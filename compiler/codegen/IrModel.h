//===- IrModel.h - numbers of elementwise_functions.h as values of LLVM's IR --===//
#pragma once

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

  explicit IrModel(Builder &builder) : b_(builder) {}

  Float of(llvm::Value *value) { return {{&b_, value}}; }
  /// NaNs are those that the GPU makes of any NaN.
  Float number(float value) {
    if (value != value)
      return fromBits(integer(0x7fffffff));
    return of(llvm::ConstantFP::get(b_.getFloatTy(), double(value)));
  }
  Int integer(uint32_t value) { return {{&b_, b_.getInt32(value)}}; }
  Long longInteger(uint64_t value) { return {{&b_, b_.getInt64(value)}}; }
  Float fma(Float x, Float y, Float z) {
    return of(b_.CreateIntrinsic(llvm::Intrinsic::fma, {b_.getFloatTy()}, {x.value, y.value, z.value}));
  }
  Float unary(llvm::Intrinsic::ID id, Float x) { return of(b_.CreateUnaryIntrinsic(id, x.value)); }
  Float abs(Float x) { return unary(llvm::Intrinsic::fabs, x); }
  Float floor(Float x) { return unary(llvm::Intrinsic::floor, x); }
  Float withSignOf(Float x, Float y) { // on bits: PTX and other languages disagree on the operands' order
    return fromBits((bits(x) & integer(0x7fffffff)) | (bits(y) & integer(0x80000000)));
  }
  Int bits(Float x) { return {{&b_, b_.CreateBitCast(x.value, b_.getInt32Ty())}}; }
  Float fromBits(Int x) { return of(b_.CreateBitCast(x.value, b_.getFloatTy())); }
  Float toFloat(Int x) { return of(b_.CreateSIToFP(x.value, b_.getFloatTy())); }
  Float toFloat(Long x) { return of(b_.CreateSIToFP(x.value, b_.getFloatTy())); }
  Long widen(Int x) { return {{&b_, b_.CreateZExt(x.value, b_.getInt64Ty())}}; }
  Int narrow(Long x) { return {{&b_, b_.CreateTrunc(x.value, b_.getInt32Ty())}}; }
  Int shiftRight(Int x, unsigned by) { return {{&b_, b_.CreateAShr(x.value, by)}}; }
  Long shiftRight(Long x, unsigned by) { return {{&b_, b_.CreateLShr(x.value, by)}}; }
  Bool isNegative(Int x) { return {{&b_, b_.CreateICmpSLT(x.value, b_.getInt32(0))}}; }
  Bool both(Bool x, Bool y) { return {{&b_, b_.CreateAnd(x.value, y.value)}}; }
  Bool either(Bool x, Bool y) { return {{&b_, b_.CreateOr(x.value, y.value)}}; }
  Bool negate(Bool x) { return {{&b_, b_.CreateNot(x.value)}}; }
  template <typename T> T select(Bool condition, T x, T y) {
    return {{&b_, b_.CreateSelect(condition.value, x.value, y.value)}};
  }

private:
  Builder &b_;
};

} // namespace ds::codegen
