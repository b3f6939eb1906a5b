//===- Compare.cpp - comparisons and selections ----------------------------===//
//
// ISA 9.3.1 (which comparison is true of what is no number) and 9.7.6.
//
//===----------------------------------------------------------------------===//
#include "kernels/ptx/Decoder.h"
#include "kernels/ptx/Functions.h"
#include "kernels/ptx/Sentence.h"

#include <cmath>
#include <limits>
#include <string_view>

namespace ds::ptx {

namespace {

enum class Relation { Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual, Numbers, NotNumbers };

/// The value as the host compares it.
template <typename T> auto comparable(T value) {
  if constexpr (isNarrow<T>)
    return widened(value);
  else
    return value;
}

/// `unordered`: what is said of two values one of which is no number.
template <Relation relation, bool unordered = false> struct Compared {
  template <typename T> static bool of(T first, T second) {
    const auto a = comparable(first), b = comparable(second);
    if constexpr (isFloat<T>) {
      const bool isNan = std::isnan(a) || std::isnan(b);
      if (relation == Relation::Numbers || relation == Relation::NotNumbers)
        return isNan == (relation == Relation::NotNumbers);
      if (isNan)
        return unordered;
    }
    switch (relation) {
    case Relation::Equal:
      return a == b;
    case Relation::NotEqual:
      return a != b;
    case Relation::Less:
      return a < b;
    case Relation::LessEqual:
      return a <= b;
    case Relation::Greater:
      return a > b;
    case Relation::GreaterEqual:
      return a >= b;
    default:
      return false;
    }
  }
};

struct Comparison {
  std::string_view name;
  Function (*ofInteger)(Type type); ///< nullptr: of floats only
  Function (*ofFloat)(Type type);   ///< nullptr: of integers only
  bool unsignedOnly = false;
};
template <Relation relation> constexpr Comparison ordered(std::string_view name) {
  return {name, ofIntegers<Compared<relation>>, ofFloats<Compared<relation>>};
}
template <Relation relation> constexpr Comparison unorderedToo(std::string_view name) {
  return {name, nullptr, ofFloats<Compared<relation, true>>};
}
template <Relation relation> constexpr Comparison ofUnsigned(std::string_view name) {
  return {name, ofIntegers<Compared<relation>>, nullptr, true};
}
constexpr Comparison comparisons[] = {
    ordered<Relation::Equal>("eq"),         ordered<Relation::NotEqual>("ne"),
    ordered<Relation::Less>("lt"),          ordered<Relation::LessEqual>("le"),
    ordered<Relation::Greater>("gt"),       ordered<Relation::GreaterEqual>("ge"),
    ofUnsigned<Relation::Less>("lo"),       ofUnsigned<Relation::LessEqual>("ls"),
    ofUnsigned<Relation::Greater>("hi"),    ofUnsigned<Relation::GreaterEqual>("hs"),
    unorderedToo<Relation::Equal>("equ"),   unorderedToo<Relation::NotEqual>("neu"),
    unorderedToo<Relation::Less>("ltu"),    unorderedToo<Relation::LessEqual>("leu"),
    unorderedToo<Relation::Greater>("gtu"), unorderedToo<Relation::GreaterEqual>("geu"),
    unorderedToo<Relation::Numbers>("num"), unorderedToo<Relation::NotNumbers>("nan"),
};

constexpr Type predicateType{Type::Kind::Predicate, 1};

uint64_t bothOf(uint64_t a, uint64_t b, uint64_t) { return a & b; }
uint64_t eitherOf(uint64_t a, uint64_t b, uint64_t) { return a | b; }
uint64_t oneOf(uint64_t a, uint64_t b, uint64_t) { return a ^ b; }
uint64_t selected(uint64_t a, uint64_t b, uint64_t c) { return c != 0 ? a : b; }

Slot flush(Decoder &decoder, bool flushes, Slot slot) {
  if (!flushes)
    return slot;
  const Slot result = decoder.temporary();
  decoder.compute(flushed, result, slot);
  return result;
}

Function functionOf(const Decoder &decoder, std::string_view name, Type type) {
  for (const Comparison &comparison : comparisons) {
    if (comparison.name != name)
      continue;
    const auto pick = type.isFloat() ? comparison.ofFloat : comparison.ofInteger;
    const bool isOrder = name != "eq" && name != "ne";
    if (pick == nullptr || (comparison.unsignedOnly && type.isSigned()) || (isOrder && type.isBits()) ||
        type.lanes != 1 || type.isPredicate() || type.width == 8)
      decoder.refuse(sentence("{} is no comparison of this type", name));
    return pick(type);
  }
  decoder.refuse(sentence("'{}' is no comparison", name));
}

/// setp.lt.and.f32 p, a, b, c: p = (a < b) and c.
void setPredicate(Decoder &decoder) {
  const Type type = decoder.takeType();
  const auto combination = decoder.takeOneOf({"and", "or", "xor"});
  const bool flushes = type.kind == Type::Kind::Float && type.width == 32 && decoder.take("ftz");
  if (decoder.statement.modifiers.empty())
    decoder.refuse("a comparison is expected");
  const std::string_view name = decoder.statement.modifiers.front();
  (void)decoder.take(name);
  decoder.expectOperands(combination.empty() ? 3 : 4);
  const Function function = functionOf(decoder, name, type);
  const Slot a = flush(decoder, flushes, decoder.source(1, type));
  const Slot b = flush(decoder, flushes, decoder.source(2, type));
  const Slot to = decoder.destination(0, predicateType);
  if (combination.empty())
    return decoder.compute(function, to, a, b);
  const Slot result = decoder.temporary(), c = decoder.predicate(decoder.operand(3));
  decoder.compute(function, result, a, b);
  decoder.compute(combination == "and" ? bothOf : combination == "or" ? eitherOf : oneOf, to, result, c);
}

/// Of any type of 16 bits and more that is no pair.
Type selectedType(Decoder &decoder) {
  const Type type = decoder.takeType();
  if (type.isPredicate() || type.width < 16 || (type.isFloat() && type.width == 16))
    decoder.refuse("the instruction is not emulated for this type");
  return type;
}

void select(Decoder &decoder) {
  const Type type = selectedType(decoder);
  decoder.expectOperands(4);
  const Slot c = decoder.predicate(decoder.operand(3));
  decoder.compute(selected, decoder.destination(0, type), decoder.source(1, type), decoder.source(2, type), c);
}

struct NotNegative {
  template <typename T> static bool of(T a) { return a >= 0; }
};

/// slct.dtype.ctype d, a, b, c: a where c >= 0.
void selectBySign(Decoder &decoder) {
  const Type by = decoder.takeType(), type = selectedType(decoder);
  const bool isFloat = by.kind == Type::Kind::Float, flushes = isFloat && decoder.take("ftz");
  if (by.width != 32 || !(isFloat || by.isSigned()))
    decoder.refuse("slct goes by s32 or f32");
  decoder.expectOperands(4);
  const Slot c = flush(decoder, flushes, decoder.source(3, by)), chosen = decoder.temporary();
  const Slot a = decoder.source(1, type), b = decoder.source(2, type), to = decoder.destination(0, type);
  decoder.compute(isFloat ? evaluate<NotNegative, float> : evaluate<NotNegative, int32_t>, chosen, c);
  decoder.compute(selected, to, a, b, chosen);
}

enum class Class { Finite, Infinite, Number, NotANumber, Normal, Subnormal };
template <Class kind> struct Tested {
  template <typename T> static bool of(T a) {
    switch (kind) {
    case Class::Finite:
      return std::isfinite(a);
    case Class::Infinite:
      return std::isinf(a);
    case Class::Number:
      return !std::isnan(a);
    case Class::NotANumber:
      return std::isnan(a);
    case Class::Normal: // "as a special case, positive and negative zero are considered normal numbers"
      return std::isnormal(a) || a == 0;
    case Class::Subnormal:
      return std::fpclassify(a) == FP_SUBNORMAL;
    }
    return false;
  }
};
struct NamedClass {
  std::string_view name;
  Function (*of)(Type type);
};
constexpr NamedClass classes[] = {
    {"finite", ofWideFloats<Tested<Class::Finite>>}, {"infinite", ofWideFloats<Tested<Class::Infinite>>},
    {"number", ofWideFloats<Tested<Class::Number>>}, {"notanumber", ofWideFloats<Tested<Class::NotANumber>>},
    {"normal", ofWideFloats<Tested<Class::Normal>>}, {"subnormal", ofWideFloats<Tested<Class::Subnormal>>}};

/// ISA 9.7.3.5.
void test(Decoder &decoder) {
  const Type type = decoder.takeType();
  for (const NamedClass &named : classes)
    if (const Function function = named.of(type); function != nullptr && decoder.take(named.name)) {
      decoder.expectOperands(2);
      return decoder.compute(function, decoder.destination(0, predicateType), decoder.source(1, type));
    }
  decoder.refuse("no property of f32 or f64 that is emulated");
}

} // namespace

bool decodeCompare(Decoder &decoder) {
  const std::string_view opcode = decoder.statement.opcode;
  if (opcode == "setp")
    setPredicate(decoder);
  else if (opcode == "selp")
    select(decoder);
  else if (opcode == "slct")
    selectBySign(decoder);
  else if (opcode == "testp")
    test(decoder);
  else
    return false;
  return true;
}

} // namespace ds::ptx
