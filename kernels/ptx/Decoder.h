//===- Decoder.h - an entry's statements become instructions ---------------===//
#pragma once

#include "kernels/ptx/Code.h"
#include "kernels/ptx/Ptx.h"
#include "kernels/ptx/Syntax.h"
#include "kernels/ptx/Type.h"

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ds::ptx {

/// Holds one entry while it is read, and the statement in hand. What the files of instructions decide by.
class Decoder {
public:
  Decoder(Tokens &tokens, Entry &entry);

  void addParameter(std::string_view name, Type type);
  /// From "{" to "}".
  void body();

  // The statement in hand.
  Statement statement;
  [[noreturn]] void refuse(std::string_view rule) const { tokens_.refuse(statement.line, rule); }
  /// Whether the modifier is there; each is there once and asked for once.
  bool take(std::string_view modifier);
  /// The first of them that is there, or "".
  std::string_view takeOneOf(std::initializer_list<std::string_view> modifiers);
  /// The last modifier, which is a type.
  Type takeType();
  /// Refuses modifiers that nobody took, and any other number of operands.
  void expectOperands(size_t count) const;
  const Operand &operand(size_t place) const { return statement.operands[place]; }

  // Operands. A source may be a register, a number or a special register. ISA 6.
  Slot source(const Operand &operand, Type type, bool mayBeWider = false);
  Slot source(size_t place, Type type) { return source(operand(place), type); }
  /// Of a register; its type goes to `registerType`.
  Slot destination(const Operand &operand, Type type, bool mayBeWider = false, Type *registerType = nullptr);
  Slot destination(size_t place, Type type) { return destination(operand(place), type); }
  Slot predicate(const Operand &operand);
  bool isSink(const Operand &operand) const { return operand.name == "_"; }
  /// Of [name] or [name + offset] where it is a parameter: its slot and type.
  bool findParameter(std::string_view name, Slot &slot, Type &type) const;
  Slot constant(uint64_t bits);
  Slot temporary();

  // Instructions; all of a statement have its guard.
  void compute(Function function, Slot to, Slot a, Slot b = zero, Slot c = zero);
  Instruction &add(Instruction::Kind kind);
  void branch(std::string_view label);
  void approximates();

private:
  struct Name {
    Slot first;
    uint32_t count;
    Type type;
    bool numbered;
  };
  struct Jump {
    size_t instruction;
    std::string_view label;
    uint32_t line;
  };
  using Scope = std::unordered_map<std::string_view, Name>;

  Slot newSlot(uint64_t constant, bool defined);
  void declareRegisters();
  void declare(std::string_view name, Type type, uint32_t count, bool numbered);
  void label(std::string_view name);
  void finish();
  bool find(std::string_view name, Slot &slot, Type &type) const;
  bool findSpecial(std::string_view name, Slot &slot, Type &type);
  uint64_t literal(const Operand &operand, Type type) const;
  void checkType(std::string_view name, Type found, Type type, bool mayBeWider) const;

  Tokens &tokens_;
  Entry &entry_;
  std::shared_ptr<Code> code_;
  std::vector<Scope> scopes_;
  std::unordered_map<std::string_view, std::pair<Slot, Type>> parameters_;
  std::unordered_map<std::string_view, size_t> labels_;
  std::vector<Jump> jumps_;
  std::map<uint64_t, Slot> constants_;
  std::map<std::string_view, Slot> specials_;
  uint32_t registers_ = 0;
  Slot guard_ = none;
};

/// Decodes the statement in hand, or returns false if its opcode is not emulated.
bool decodeInteger(Decoder &decoder);
bool decodeFloat(Decoder &decoder);
bool decodeCompare(Decoder &decoder);
bool decodeConversion(Decoder &decoder);
bool decodeMove(Decoder &decoder);

} // namespace ds::ptx
