//===- Integers.cpp - arithmetic, bits and shifts of integers --------------===//
//
// ISA 9.7.1 (integer arithmetic) and 9.7.8 (logic and shift).
//
//===----------------------------------------------------------------------===//
#include "core/Error.h"
#include "kernels/ptx/Decoder.h"
#include "kernels/ptx/Functions.h"

#include <bit>
#include <limits>
#include <string_view>
#include <type_traits>

namespace ds::ptx {

namespace {

// Sums wrap: they are made of 64 unsigned bits.
struct Add {
  template <typename T> static T of(T a, T b) { return T(uint64_t(a) + uint64_t(b)); }
};
struct Sub {
  template <typename T> static T of(T a, T b) { return T(uint64_t(a) - uint64_t(b)); }
};
/// ".sat", of s32 only.
template <int sign> struct Saturated {
  static int32_t of(int32_t a, int32_t b) {
    const int64_t sum = int64_t(a) + sign * int64_t(b);
    return int32_t(std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX));
  }
};
struct MulLow {
  template <typename T> static T of(T a, T b) { return T(uint64_t(a) * uint64_t(b)); }
};
struct MulHigh {
  template <typename T> static T of(T a, T b) {
    using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return T(Wide(a) * Wide(b) >> (8 * sizeof(T)));
  }
};
/// The whole product, of twice the width.
struct MulWide {
  template <typename T> static uint64_t of(T a, T b) {
    return lowBits(uint64_t(a) * uint64_t(b), int(std::min<size_t>(64, 16 * sizeof(T))));
  }
};
struct Div {
  template <typename T> static T of(T a, T b) {
    if (b == 0)
      throw Error("divides by zero, whose result the ISA leaves open");
    if (std::is_signed_v<T> && b == T(-1))
      return T(0 - uint64_t(a));
    return T(a / b);
  }
};
struct Rem {
  template <typename T> static T of(T a, T b) {
    if (b == 0)
      throw Error("divides by zero, whose result the ISA leaves open");
    if (std::is_signed_v<T> && b == T(-1))
      return 0;
    return T(a % b);
  }
};
struct Min {
  template <typename T> static T of(T a, T b) { return b < a ? b : a; }
};
struct Max {
  template <typename T> static T of(T a, T b) { return a < b ? b : a; }
};
struct Neg {
  template <typename T> static T of(T a) { return T(0 - uint64_t(a)); }
};
struct Abs {
  template <typename T> static T of(T a) { return a < 0 ? T(0 - uint64_t(a)) : a; }
};

struct And {
  template <typename T> static T of(T a, T b) { return T(a & b); }
};
struct Or {
  template <typename T> static T of(T a, T b) { return T(a | b); }
};
struct Xor {
  template <typename T> static T of(T a, T b) { return T(a ^ b); }
};
struct Not {
  template <typename T> static T of(T a) { return T(~a); }
};
struct LogicalNot { ///< cnot
  template <typename T> static T of(T a) { return T(a == 0 ? 1 : 0); }
};
struct Popc {
  template <typename T> static uint64_t of(T a) { return uint64_t(std::popcount(std::make_unsigned_t<T>(a))); }
};
struct Clz {
  template <typename T> static uint64_t of(T a) { return uint64_t(std::countl_zero(std::make_unsigned_t<T>(a))); }
};
struct Brev {
  template <typename T> static uint64_t of(T a) {
    uint64_t result = 0;
    for (size_t bit = 0; bit < 8 * sizeof(T); ++bit)
      result = result << 1 | (uint64_t(a) >> bit & 1);
    return result;
  }
};

// The amount has 32 bits, whatever the type; what exceeds the width counts as the width.
template <typename T> uint64_t shiftedLeft(uint64_t a, uint64_t amount, uint64_t) {
  return amount >= 8 * sizeof(T) ? 0 : lowBits(a << amount, 8 * sizeof(T));
}
template <typename T> uint64_t shiftedRight(uint64_t a, uint64_t amount, uint64_t) {
  constexpr uint64_t width = 8 * sizeof(T);
  if constexpr (std::is_signed_v<T>)
    return lowBits(uint64_t(signedOf(a, width) >> std::min(amount, width - 1)), width);
  else
    return amount >= width ? 0 : a >> amount;
}

template <bool left, bool wraps> uint64_t funnelShifted(uint64_t low, uint64_t high, uint64_t amount) {
  const uint64_t bits = high << 32 | low, count = wraps ? amount & 31 : std::min<uint64_t>(amount, 32);
  return left ? bits << count >> 32 : lowBits(bits >> count, 32);
}

/// ISA 9.7.1.20: position and length are taken modulo 256, and the sign is that of the field's last bit.
template <typename T> uint64_t extractedField(uint64_t a, uint64_t b, uint64_t c) {
  constexpr int width = 8 * sizeof(T);
  const int position = int(b & 255), length = int(c & 255);
  const int last = std::min(position + length - 1, width - 1);
  const bool sign = std::is_signed_v<T> && length > 0 && (a >> last & 1) != 0;
  uint64_t result = sign ? ~uint64_t(0) : 0;
  for (int bit = 0; bit < length && bit < width; ++bit) {
    const bool isSet = position + bit < width ? (a >> (position + bit) & 1) != 0 : sign;
    result = (result & ~(uint64_t(1) << bit)) | uint64_t(isSet) << bit;
  }
  return lowBits(result, width);
}

/// The mask of a field, by position and length modulo 256; first half of bfi.
template <int width> uint64_t fieldMask(uint64_t position, uint64_t length, uint64_t) {
  uint64_t mask = 0;
  for (uint64_t bit = position & 255; bit < (position & 255) + (length & 255) && bit < width; ++bit)
    mask |= uint64_t(1) << bit;
  return mask;
}
uint64_t movedTo(uint64_t a, uint64_t position, uint64_t) { return (position & 255) > 63 ? 0 : a << (position & 255); }
uint64_t mixed(uint64_t a, uint64_t b, uint64_t mask) { return (a & mask) | (b & ~mask); }

/// ISA 9.7.9.7: the default mode. A selector's fourth bit copies the byte's sign.
uint64_t permuted(uint64_t a, uint64_t b, uint64_t selectors) {
  const uint64_t bytes = b << 32 | a;
  uint64_t result = 0;
  for (int place = 0; place < 4; ++place) {
    const uint64_t selector = selectors >> (4 * place) & 15, byte = bytes >> (8 * (selector & 7)) & 255;
    const uint64_t value = (selector & 8) == 0 ? byte : (byte & 128) != 0 ? 255 : 0;
    result |= value << (8 * place);
  }
  return result;
}
enum class Permutation { Forward4, Backward4, Replicate8, EdgeLeft, EdgeRight, Replicate16 };
/// The selectors that a mode makes of the two low bits of c.
template <Permutation mode> uint64_t selectorsOf(uint64_t c, uint64_t, uint64_t) {
  const int n = int(c & 3);
  uint64_t result = 0;
  for (int place = 0; place < 4; ++place) {
    int byte = 0;
    switch (mode) {
    case Permutation::Forward4:
      byte = n + place;
      break;
    case Permutation::Backward4:
      byte = (n - place) & 7;
      break;
    case Permutation::Replicate8:
      byte = n;
      break;
    case Permutation::EdgeLeft:
      byte = std::max(n, place);
      break;
    case Permutation::EdgeRight:
      byte = std::min(n, place);
      break;
    case Permutation::Replicate16:
      byte = (n & 1) * 2 + (place & 1);
      break;
    }
    result |= uint64_t(byte) << (4 * place);
  }
  return result;
}

/// One term of a table of three operands: the bits where a, b and c are as the table's place says.
template <int place> uint64_t minterm(uint64_t a, uint64_t b, uint64_t c) {
  return ((place & 4) != 0 ? a : ~a) & ((place & 2) != 0 ? b : ~b) & ((place & 1) != 0 ? c : ~c) & 0xFFFFFFFF;
}
constexpr Function minterms[] = {minterm<0>, minterm<1>, minterm<2>, minterm<3>,
                                 minterm<4>, minterm<5>, minterm<6>, minterm<7>};

constexpr Type bits32{Type::Kind::Bits, 32};
constexpr Type unsigned32{Type::Kind::Unsigned, 32};

Function checked(const Decoder &decoder, Function function) {
  if (function == nullptr)
    decoder.refuse("the instruction is not emulated for this type");
  return function;
}

/// d = function(a, ...) of registers of one type.
void plain(Decoder &decoder, Function function, Type type, size_t sources) {
  decoder.expectOperands(sources + 1);
  std::array<Slot, 3> from{zero, zero, zero};
  for (size_t source = 0; source < sources; ++source)
    from[source] = decoder.source(source + 1, type);
  decoder.compute(checked(decoder, function), decoder.destination(0, type), from[0], from[1], from[2]);
}

void arithmetic(Decoder &decoder, Type type, Function function, Function saturated) {
  if (!type.isInteger())
    decoder.refuse("the instruction is not emulated for this type");
  const bool saturates = decoder.take("sat");
  if (saturates && !(type.isSigned() && type.width == 32))
    decoder.refuse("'.sat' is of s32 only");
  plain(decoder, saturates ? saturated : function, type, 2);
}

/// mul and mad, by which half of the product they take. ISA 9.7.1.3 and 9.7.1.4.
void product(Decoder &decoder, Type type, bool adds) {
  const auto part = decoder.takeOneOf({"lo", "hi", "wide"});
  if (part.empty() || !type.isInteger())
    decoder.refuse("a product of integers is .lo, .hi or .wide");
  Function function = part == "lo" ? ofIntegers<MulLow>(type) : ofIntegers<MulHigh>(type);
  Type result = type;
  if (part == "wide") {
    if (type.width == 64)
      decoder.refuse("'.wide' is of 16 and 32 bits");
    function = ofIntegers<MulWide>(type);
    result.width *= 2;
  }
  decoder.expectOperands(adds ? 4 : 3);
  const Slot a = decoder.source(1, type), b = decoder.source(2, type), to = decoder.destination(0, result);
  if (!adds)
    return decoder.compute(checked(decoder, function), to, a, b);
  const Slot between = decoder.temporary(), c = decoder.source(3, result);
  decoder.compute(checked(decoder, function), between, a, b);
  decoder.compute(ofIntegers<Add>(result), to, between, c);
}

/// and, or, xor, not: of bits or predicates.
template <typename Operation> void logic(Decoder &decoder, size_t sources) {
  const Type type = decoder.takeType();
  if (type.isPredicate() && sources == 2) {
    decoder.expectOperands(3);
    return decoder.compute(evaluate<Operation, uint8_t>, decoder.destination(0, type), decoder.source(1, type),
                           decoder.source(2, type));
  }
  if (!type.isBits())
    decoder.refuse("the instruction is of bits");
  plain(decoder, ofIntegers<Operation>(type), type, sources);
}
void notOf(Decoder &decoder) {
  if (decoder.statement.modifiers.empty() || decoder.statement.modifiers.back() != "pred")
    return logic<Not>(decoder, 1);
  plain(decoder, opposite, decoder.takeType(), 1);
}

void shift(Decoder &decoder, bool left) {
  const Type type = decoder.takeType();
  if (type.isFloat() || type.isPredicate() || type.width < 16 || (left && !type.isBits()))
    decoder.refuse("the instruction is not emulated for this type");
  const auto pick = [&]<typename Bits, typename Signed>() -> Function {
    return left ? shiftedLeft<Bits> : type.isSigned() ? shiftedRight<Signed> : shiftedRight<Bits>;
  };
  const Function function = type.width == 16   ? pick.operator()<uint16_t, int16_t>()
                            : type.width == 32 ? pick.operator()<uint32_t, int32_t>()
                                               : pick.operator()<uint64_t, int64_t>();
  decoder.expectOperands(3);
  decoder.compute(function, decoder.destination(0, type), decoder.source(1, type), decoder.source(2, unsigned32));
}

void funnelShift(Decoder &decoder) {
  const auto side = decoder.takeOneOf({"l", "r"}), mode = decoder.takeOneOf({"wrap", "clamp"});
  if (side.empty() || mode.empty() || decoder.takeType().bits() != 32)
    decoder.refuse("a funnel shift is .l or .r, .wrap or .clamp, of b32");
  decoder.expectOperands(4);
  const Function function = side == "l"      ? mode == "wrap" ? funnelShifted<true, true> : funnelShifted<true, false>
                            : mode == "wrap" ? funnelShifted<false, true>
                                             : funnelShifted<false, false>;
  decoder.compute(function, decoder.destination(0, bits32), decoder.source(1, bits32), decoder.source(2, bits32),
                  decoder.source(3, unsigned32));
}

/// popc and clz, whose result has 32 bits.
template <typename Operation> void count(Decoder &decoder) {
  const Type type = decoder.takeType();
  if (!type.isBits() || type.width < 32)
    decoder.refuse("the instruction is of b32 or b64");
  decoder.expectOperands(2);
  decoder.compute(ofIntegers<Operation>(type), decoder.destination(0, unsigned32), decoder.source(1, type));
}

void extractField(Decoder &decoder) {
  const Type type = decoder.takeType();
  if (!type.isInteger() || type.width < 32)
    decoder.refuse("the instruction is of integers of 32 or 64 bits");
  const Function function = type.width == 32  ? type.isSigned() ? extractedField<int32_t> : extractedField<uint32_t>
                            : type.isSigned() ? extractedField<int64_t>
                                              : extractedField<uint64_t>;
  decoder.expectOperands(4);
  decoder.compute(function, decoder.destination(0, type), decoder.source(1, type), decoder.source(2, unsigned32),
                  decoder.source(3, unsigned32));
}

void insertField(Decoder &decoder) {
  const Type type = decoder.takeType();
  if (!type.isBits() || type.width < 32)
    decoder.refuse("the instruction is of b32 or b64");
  decoder.expectOperands(5);
  const Slot position = decoder.source(3, unsigned32), length = decoder.source(4, unsigned32);
  const Slot a = decoder.source(1, type), b = decoder.source(2, type), to = decoder.destination(0, type);
  const Slot mask = decoder.temporary(), moved = decoder.temporary();
  decoder.compute(type.width == 32 ? fieldMask<32> : fieldMask<64>, mask, position, length);
  decoder.compute(movedTo, moved, a, position);
  decoder.compute(mixed, to, moved, b, mask);
}

void permute(Decoder &decoder) {
  const auto mode = decoder.takeOneOf({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
  if (decoder.takeType().bits() != 32)
    decoder.refuse("the instruction is of b32");
  decoder.expectOperands(4);
  Slot selectors = decoder.source(3, bits32);
  const Slot a = decoder.source(1, bits32), b = decoder.source(2, bits32);
  if (!mode.empty()) {
    const Slot made = decoder.temporary();
    decoder.compute(mode == "f4e"   ? selectorsOf<Permutation::Forward4>
                    : mode == "b4e" ? selectorsOf<Permutation::Backward4>
                    : mode == "rc8" ? selectorsOf<Permutation::Replicate8>
                    : mode == "ecl" ? selectorsOf<Permutation::EdgeLeft>
                    : mode == "ecr" ? selectorsOf<Permutation::EdgeRight>
                                    : selectorsOf<Permutation::Replicate16>,
                    made, selectors);
    selectors = made;
  }
  decoder.compute(permuted, decoder.destination(0, bits32), a, b, selectors);
}

/// The sum of the terms that the table has; its place is that of a's, b's and c's bit. ISA 9.7.8.6.
void lookUp(Decoder &decoder) {
  if (decoder.takeType().bits() != 32)
    decoder.refuse("the instruction is of b32");
  decoder.expectOperands(5);
  const Operand &table = decoder.operand(4);
  if (table.kind != Operand::Kind::Integer || table.bits > 255)
    decoder.refuse("the table is a number of 0 to 255");
  const Slot a = decoder.source(1, bits32), b = decoder.source(2, bits32), c = decoder.source(3, bits32);
  const Slot to = decoder.destination(0, bits32);
  Slot sum = zero;
  for (size_t place = 0; place < std::size(minterms); ++place)
    if ((table.bits >> place & 1) != 0) {
      const Slot term = decoder.temporary(), more = decoder.temporary();
      decoder.compute(minterms[place], term, a, b, c);
      decoder.compute(evaluate<Or, uint32_t>, more, sum, term);
      sum = more;
    }
  decoder.compute(evaluate<Or, uint32_t>, to, sum);
}

struct Row {
  std::string_view opcode;
  void (*decode)(Decoder &decoder, Type type);
};
/// Those that have float forms, too.
constexpr Row rows[] = {
    {"add", [](Decoder &d, Type t) { arithmetic(d, t, ofIntegers<Add>(t), evaluate<Saturated<1>, int32_t>); }},
    {"sub", [](Decoder &d, Type t) { arithmetic(d, t, ofIntegers<Sub>(t), evaluate<Saturated<-1>, int32_t>); }},
    {"mul", [](Decoder &d, Type t) { product(d, t, false); }},
    {"mad", [](Decoder &d, Type t) { product(d, t, true); }},
    {"div", [](Decoder &d, Type t) { plain(d, ofIntegers<Div>(t), t, 2); }},
    {"rem", [](Decoder &d, Type t) { plain(d, ofIntegers<Rem>(t), t, 2); }},
    {"min", [](Decoder &d, Type t) { plain(d, ofIntegers<Min>(t), t, 2); }},
    {"max", [](Decoder &d, Type t) { plain(d, ofIntegers<Max>(t), t, 2); }},
    {"neg", [](Decoder &d, Type t) { plain(d, t.isSigned() ? ofIntegers<Neg>(t) : nullptr, t, 1); }},
    {"abs", [](Decoder &d, Type t) { plain(d, t.isSigned() ? ofIntegers<Abs>(t) : nullptr, t, 1); }},
};

struct BitsRow {
  std::string_view opcode;
  void (*decode)(Decoder &decoder);
};
constexpr BitsRow bitsRows[] = {
    {"and", [](Decoder &d) { logic<And>(d, 2); }},
    {"or", [](Decoder &d) { logic<Or>(d, 2); }},
    {"xor", [](Decoder &d) { logic<Xor>(d, 2); }},
    {"not", notOf},
    {"cnot", [](Decoder &d) { logic<LogicalNot>(d, 1); }},
    {"shl", [](Decoder &d) { shift(d, true); }},
    {"shr", [](Decoder &d) { shift(d, false); }},
    {"shf", funnelShift},
    {"popc", count<Popc>},
    {"clz", count<Clz>},
    {"brev", [](Decoder &d) { logic<Brev>(d, 1); }},
    {"bfe", extractField},
    {"bfi", insertField},
    {"prmt", permute},
    {"lop3", lookUp},
};

} // namespace

bool decodeInteger(Decoder &decoder) {
  for (const BitsRow &row : bitsRows)
    if (row.opcode == decoder.statement.opcode) {
      row.decode(decoder);
      return true;
    }
  for (const Row &row : rows)
    if (row.opcode == decoder.statement.opcode) {
      const auto &modifiers = decoder.statement.modifiers;
      const auto type = typeNamed(modifiers.empty() ? "" : modifiers.back());
      if (type && type->isFloat())
        return false; // decodeFloat
      row.decode(decoder, decoder.takeType());
      return true;
    }
  return false;
}

} // namespace ds::ptx
