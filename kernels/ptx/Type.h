//===- Type.h - types of instructions and registers ------------------------===//
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ds::ptx {

/// ISA 5.2.1.
struct Type {
  enum class Kind : uint8_t { Bits, Unsigned, Signed, Float, Brain, Predicate };
  Kind kind = Kind::Bits;
  int width = 0; ///< bits of a lane; 1: a predicate
  int lanes = 1; ///< 2: two floats of 16 bits

  bool isInteger() const { return kind == Kind::Unsigned || kind == Kind::Signed; }
  bool isFloat() const { return kind == Kind::Float || kind == Kind::Brain; }
  bool isSigned() const { return kind == Kind::Signed; }
  bool isBits() const { return kind == Kind::Bits; }
  bool isPredicate() const { return kind == Kind::Predicate; }
  int bits() const { return width * lanes; }
  int bytes() const { return bits() / 8; }
};

struct NamedType {
  std::string_view name;
  Type type;
};
inline constexpr NamedType namedTypes[] = {
    {"b8", {Type::Kind::Bits, 8}},          {"b16", {Type::Kind::Bits, 16}},       {"b32", {Type::Kind::Bits, 32}},
    {"b64", {Type::Kind::Bits, 64}},        {"u8", {Type::Kind::Unsigned, 8}},     {"u16", {Type::Kind::Unsigned, 16}},
    {"u32", {Type::Kind::Unsigned, 32}},    {"u64", {Type::Kind::Unsigned, 64}},   {"s8", {Type::Kind::Signed, 8}},
    {"s16", {Type::Kind::Signed, 16}},      {"s32", {Type::Kind::Signed, 32}},     {"s64", {Type::Kind::Signed, 64}},
    {"f16", {Type::Kind::Float, 16}},       {"f16x2", {Type::Kind::Float, 16, 2}}, {"bf16", {Type::Kind::Brain, 16}},
    {"bf16x2", {Type::Kind::Brain, 16, 2}}, {"f32", {Type::Kind::Float, 32}},      {"f64", {Type::Kind::Float, 64}},
    {"pred", {Type::Kind::Predicate, 1}},
};

inline std::optional<Type> typeNamed(std::string_view name) {
  for (const NamedType &named : namedTypes)
    if (named.name == name)
      return named.type;
  return {};
}

/// Whether a register of one type may be an operand of an instruction of the other; of one size. ISA 9.4, table 29.
inline bool agree(Type instruction, Type registers) {
  if (instruction.isPredicate() || registers.isPredicate() || instruction.isBits() || registers.isBits())
    return instruction.isPredicate() == registers.isPredicate();
  if (instruction.isInteger() || registers.isInteger())
    return instruction.isInteger() && registers.isInteger();
  return instruction.kind == registers.kind && instruction.lanes == registers.lanes;
}

} // namespace ds::ptx
