//===- Functions.h - a function for an operation and a type ----------------===//
//
// An operation is a struct with `template <typename T> static ... of(T a, ...)`, of one to three values. What it
// returns is a T, a bool, or uint64_t, the bits themselves.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/ptx/Code.h"
#include "kernels/ptx/Numbers.h"
#include "kernels/ptx/Type.h"

namespace ds::ptx {

template <typename R> uint64_t resultBits(R value) {
  if constexpr (std::is_same_v<R, bool>)
    return value ? 1 : 0;
  else
    return bitsOf(value);
}

template <typename Operation, typename T> uint64_t evaluate(uint64_t a, uint64_t b, uint64_t c) {
  if constexpr (requires(T x) { Operation::of(x); })
    return resultBits(Operation::of(as<T>(a)));
  else if constexpr (requires(T x) { Operation::of(x, x); })
    return resultBits(Operation::of(as<T>(a), as<T>(b)));
  else
    return resultBits(Operation::of(as<T>(a), as<T>(b), as<T>(c)));
}

/// On each half of 32 bits by itself.
template <Function function> uint64_t both(uint64_t a, uint64_t b, uint64_t c) {
  return function(a & 0xFFFF, b & 0xFFFF, c & 0xFFFF) | function(a >> 16, b >> 16, c >> 16) << 16;
}

// What several files of instructions need.
inline uint64_t same(uint64_t a, uint64_t, uint64_t) { return a; }
inline uint64_t opposite(uint64_t a, uint64_t, uint64_t) { return a ^ 1; } ///< of a predicate
template <int from, int to> uint64_t signExtended(uint64_t a, uint64_t, uint64_t) {
  return lowBits(uint64_t(signedOf(a, from)), to);
}
/// ".ftz": a subnormal float32 as zero of its sign.
inline uint64_t flushed(uint64_t a, uint64_t, uint64_t) { return (a & 0x7F800000) == 0 ? a & 0x80000000 : a; }

/// By width and sign; nullptr for what is no integer of 16, 32 or 64 bits. Bits are unsigned.
template <typename Operation> Function ofIntegers(Type type) {
  if (type.isFloat() || type.isPredicate())
    return nullptr;
  switch (type.width) {
  case 16:
    return type.isSigned() ? evaluate<Operation, int16_t> : evaluate<Operation, uint16_t>;
  case 32:
    return type.isSigned() ? evaluate<Operation, int32_t> : evaluate<Operation, uint32_t>;
  case 64:
    return type.isSigned() ? evaluate<Operation, int64_t> : evaluate<Operation, uint64_t>;
  default:
    return nullptr;
  }
}

/// float32 and float64.
template <typename Operation> Function ofWideFloats(Type type) {
  if (type.kind != Type::Kind::Float || type.width == 16)
    return nullptr;
  return type.width == 32 ? evaluate<Operation, float> : evaluate<Operation, double>;
}

/// Every float type.
template <typename Operation> Function ofFloats(Type type) {
  if (!type.isFloat())
    return nullptr;
  if (type.width != 16)
    return ofWideFloats<Operation>(type);
  if (type.kind == Type::Kind::Brain)
    return type.lanes == 2 ? both<evaluate<Operation, Brain>> : evaluate<Operation, Brain>;
  return type.lanes == 2 ? both<evaluate<Operation, Half>> : evaluate<Operation, Half>;
}

} // namespace ds::ptx
