//===- Conversion.cpp - cvt and cvta ---------------------------------------===//
//
// ISA 9.7.9.21. One function converts all types; which, it reads from a constant. The frequent ones have their own.
//
//===----------------------------------------------------------------------===//
#include "kernels/ptx/Decoder.h"
#include "kernels/ptx/Functions.h"
#include "kernels/ptx/Sentence.h"

#include <bit>
#include <cmath>
#include <limits>
#include <string_view>

namespace ds::ptx {

namespace {

struct Conversion {
  Type::Kind to, from;
  uint8_t toWidth, fromWidth, registerWidth;
  Rounding rounding;
  bool toInteger; ///< of a float to one: what is rounded is the value
  bool saturates;
};
static_assert(sizeof(Conversion) == sizeof(uint64_t));

double floatOf(uint64_t bits, Type::Kind kind, int width) {
  if (kind == Type::Kind::Brain)
    return widened(as<Brain>(bits));
  return width == 16 ? widened(as<Half>(bits)) : width == 32 ? double(as<float>(bits)) : as<double>(bits);
}

/// A NaN is the GPU's own, but in float64.
uint64_t bitsOfFloat(double value, Type::Kind kind, int width, Rounding rounding) {
  if (kind == Type::Kind::Brain)
    return brainOf(value, rounding).bits;
  if (width == 16)
    return halfOf(value, rounding).bits;
  return width == 32 ? bitsOf(rounded<float>(narrowed(value, floatFormat, rounding))) : bitsOf(value);
}

/// Of up to 64 bits as a double whose last bit is odd where it is not exact: a second rounding is as one.
double oddDoubleOf(__int128 value) {
  const bool isNegative = value < 0;
  auto magnitude = uint64_t(isNegative ? -value : value);
  if (magnitude >> 53 != 0) {
    const int shift = 11 - std::countl_zero(magnitude);
    const uint64_t kept = magnitude >> shift;
    magnitude = (kept | (lowBits(magnitude, shift) != 0 ? 1 : 0)) << shift;
  }
  return isNegative ? -double(magnitude) : double(magnitude);
}

/// Exact where it can be, else by the rounding.
double doubleOf(__int128 value, Rounding rounding) {
  const auto nearest = double(value); // the host's
  const auto back = __int128(nearest);
  const bool isZero = rounding == Rounding::Zero;
  if (back > value && (rounding == Rounding::Down || (isZero && value > 0)))
    return std::nextafter(nearest, -std::numeric_limits<double>::infinity());
  if (back < value && (rounding == Rounding::Up || (isZero && value < 0)))
    return std::nextafter(nearest, std::numeric_limits<double>::infinity());
  return nearest;
}

__int128 leastOf(Type::Kind kind, int width) { return kind == Type::Kind::Signed ? -(__int128(1) << (width - 1)) : 0; }
__int128 mostOf(Type::Kind kind, int width) {
  return (__int128(1) << (kind == Type::Kind::Signed ? width - 1 : width)) - 1;
}

uint64_t integerOf(double value, const Conversion &how) {
  // "In float-to-integer conversions, NaN inputs are converted to" 0, or with 64 bits to the highest bit alone.
  if (std::isnan(value))
    return how.fromWidth < 64 && how.toWidth < 64 ? 0 : uint64_t(1) << (how.toWidth - 1);
  const double whole = roundedToInteger(value, how.rounding);
  const __int128 least = leastOf(how.to, how.toWidth), most = mostOf(how.to, how.toWidth);
  if (whole <= double(least))
    return uint64_t(least);
  return whole >= double(most) ? uint64_t(most) : uint64_t(__int128(whole));
}

uint64_t floatFromInteger(__int128 value, const Conversion &how) {
  if (how.toWidth == 64)
    return bitsOf(doubleOf(value, how.rounding));
  return bitsOfFloat(oddDoubleOf(value), how.to, how.toWidth, how.rounding);
}

bool isFloatKind(Type::Kind kind) { return kind == Type::Kind::Float || kind == Type::Kind::Brain; }

/// ISA 9.4.1: a register that is wider than the type gets the sign, or zeros.
uint64_t extended(uint64_t bits, const Conversion &how) {
  const uint64_t low = lowBits(bits, how.toWidth);
  return how.to == Type::Kind::Signed ? lowBits(uint64_t(signedOf(low, how.toWidth)), how.registerWidth) : low;
}

uint64_t converted(uint64_t a, uint64_t constant, uint64_t) {
  const auto how = std::bit_cast<Conversion>(constant);
  if (isFloatKind(how.from)) {
    double value = floatOf(a, how.from, how.fromWidth);
    if (!isFloatKind(how.to))
      return extended(integerOf(value, how), how);
    if (how.toInteger)
      value = roundedToInteger(value, how.rounding);
    if (how.saturates)
      value = value > 1 ? 1 : value > 0 ? value : 0;
    return bitsOfFloat(value, how.to, how.toWidth, how.toInteger ? Rounding::Nearest : how.rounding);
  }
  const bool isSigned = how.from == Type::Kind::Signed;
  __int128 value = isSigned ? __int128(signedOf(a, how.fromWidth)) : __int128(lowBits(a, how.fromWidth));
  if (isFloatKind(how.to))
    return floatFromInteger(value, how);
  if (how.saturates)
    value = std::clamp(value, leastOf(how.to, how.toWidth), mostOf(how.to, how.toWidth));
  return extended(uint64_t(value), how);
}

// The frequent ones.
template <int width> uint64_t low(uint64_t a, uint64_t, uint64_t) { return lowBits(a, width); }
uint64_t floatOfBrain(uint64_t a, uint64_t, uint64_t) {
  return bitsOf(number(std::bit_cast<float>(uint32_t(a & 0xFFFF) << 16)));
}
uint64_t brainOfFloat(uint64_t a, uint64_t, uint64_t) {
  const auto bits = uint32_t(a);
  if ((bits & 0x7FFFFFFF) > 0x7F800000)
    return 0x7FFF;
  return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}
uint64_t pairOf(uint64_t high, uint64_t low, uint64_t) { return high << 16 | low; }
uint64_t rectified(uint64_t a, uint64_t, uint64_t) { // of 16 bits, either kind: 0x7FFF is what is no number
  return a != 0x7FFF && (a & 0x8000) != 0 ? 0 : a;
}

bool isSingle(Type type) { return type.kind == Type::Kind::Float && type.width == 32; }

/// The quick function, or nullptr.
Function quick(const Conversion &how) {
  if (how.saturates)
    return nullptr;
  if (how.from == Type::Kind::Brain && how.to == Type::Kind::Float && how.toWidth == 32 && !how.toInteger)
    return floatOfBrain;
  if (how.to == Type::Kind::Brain && how.from == Type::Kind::Float && how.fromWidth == 32 &&
      how.rounding == Rounding::Nearest)
    return brainOfFloat;
  if (isFloatKind(how.to) || isFloatKind(how.from))
    return nullptr;
  const bool narrows = how.toWidth <= how.fromWidth;
  if (how.to != Type::Kind::Signed && (narrows || how.from != Type::Kind::Signed)) {
    const int width = std::min(how.toWidth, how.fromWidth);
    return width == 8 ? low<8> : width == 16 ? low<16> : width == 32 ? low<32> : low<64>;
  }
  if (how.to == Type::Kind::Signed && how.from == Type::Kind::Signed && how.fromWidth == 32 && how.toWidth == 64)
    return signExtended<32, 64>;
  return nullptr;
}

/// What rounds, and whether to an integer; which must be there and which must not follows from the types.
Rounding roundingOf(Decoder &decoder, Type to, Type from, bool &toInteger) {
  const auto name = decoder.takeOneOf({"rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi"});
  toInteger = name.size() == 3;
  const bool isSame = to.kind == from.kind && to.width == from.width;
  const bool narrows =
      to.isFloat() && (!from.isFloat() || from.width > to.width || (from.width == to.width && from.kind != to.kind));
  const bool wantsInteger = from.isFloat() && !to.isFloat();
  if (wantsInteger && !toInteger)
    decoder.refuse("from a float to an integer one of .rni, .rzi, .rmi and .rpi is expected");
  if (narrows && (name.empty() || toInteger))
    decoder.refuse("to this float one of .rn, .rz, .rm and .rp is expected");
  if (!name.empty() && !wantsInteger && !narrows && !(toInteger && from.isFloat() && isSame))
    decoder.refuse(sentence("nothing is rounded here, and .{} stands there", name));
  if (name.empty() || name.starts_with("rn"))
    return Rounding::Nearest;
  return name.starts_with("rz") ? Rounding::Zero : name.starts_with("rm") ? Rounding::Down : Rounding::Up;
}

/// Emits what turns `from` into `to`'s bits.
void emit(Decoder &decoder, const Conversion &how, Slot to, Slot from) {
  if (const Function function = quick(how))
    return decoder.compute(function, to, from);
  decoder.compute(converted, to, from, decoder.constant(std::bit_cast<uint64_t>(how)));
}

/// cvt.rn.bf16x2.f32 d, a, b: a goes to the upper half.
void convertPair(Decoder &decoder, Type to, Type from) {
  bool toInteger = false;
  const Rounding rounding = roundingOf(decoder, {to.kind, 16}, from, toInteger);
  if (!isSingle(from) || rounding == Rounding::Down || rounding == Rounding::Up)
    decoder.refuse("a pair is made of two f32, by .rn or .rz");
  const bool rectifies = decoder.take("relu");
  decoder.expectOperands(3);
  const Conversion how{to.kind, from.kind, 16, 32, 16, rounding, false, false};
  const Slot a = decoder.source(1, from), b = decoder.source(2, from), d = decoder.destination(0, to);
  Slot high = decoder.temporary(), low = decoder.temporary();
  emit(decoder, how, high, a);
  emit(decoder, how, low, b);
  if (rectifies)
    for (Slot *half : {&high, &low}) {
      const Slot result = decoder.temporary();
      decoder.compute(rectified, result, *half);
      *half = result;
    }
  decoder.compute(pairOf, d, high, low);
}

void convert(Decoder &decoder) {
  const Type from = decoder.takeType(), to = decoder.takeType();
  if (from.lanes > 1 || from.isBits() || to.isBits() || from.isPredicate() || to.isPredicate())
    decoder.refuse("a conversion between these types is not emulated");
  if (to.lanes > 1)
    return convertPair(decoder, to, from);
  bool toInteger = false;
  const Rounding rounding = roundingOf(decoder, to, from, toInteger);
  const bool flushes = (isSingle(to) || isSingle(from)) && decoder.take("ftz");
  const bool saturates = decoder.take("sat"), rectifies = to.width == 16 && to.isFloat() && decoder.take("relu");
  decoder.expectOperands(2);
  Type registers;
  Slot source = decoder.source(decoder.operand(1), from, true);
  const Slot result = decoder.destination(decoder.operand(0), to, true, &registers);
  const Conversion how{to.kind,  from.kind, uint8_t(to.width), uint8_t(from.width), uint8_t(registers.bits()),
                       rounding, toInteger, saturates};
  if (flushes && isSingle(from)) {
    const Slot number = decoder.temporary();
    decoder.compute(flushed, number, source);
    source = number;
  }
  const bool flushesResult = flushes && isSingle(to);
  if (!flushesResult && !rectifies)
    return emit(decoder, how, result, source);
  const Slot between = decoder.temporary();
  emit(decoder, how, between, source);
  decoder.compute(flushesResult ? flushed : rectified, result, between);
}

/// Addresses of device memory are the same in both spaces.
void convertAddress(Decoder &decoder) {
  (void)decoder.take("to");
  if (!decoder.take("global"))
    decoder.refuse("of the state spaces only .global is emulated");
  const Type type = decoder.takeType();
  if (type.width != 64)
    decoder.refuse("an address has 64 bits");
  decoder.expectOperands(2);
  decoder.compute(same, decoder.destination(0, type), decoder.source(1, type));
}

} // namespace

bool decodeConversion(Decoder &decoder) {
  if (decoder.statement.opcode == "cvt")
    convert(decoder);
  else if (decoder.statement.opcode == "cvta")
    convertAddress(decoder);
  else
    return false;
  return true;
}

} // namespace ds::ptx
