//===- Code.h - an entry, decoded ------------------------------------------===//
//
// All that an instruction reads is in slots: registers, constants, parameters and special registers alike. A slot holds
// the bits of its value, zero above its width. One instruction of the text may be several here, which pass their
// results on in slots of their own.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace ds::ptx {

using Slot = uint32_t;
inline constexpr Slot none = UINT32_MAX;
inline constexpr Slot zero = 0; ///< the constant 0: what an instruction with fewer operands reads

/// The result's bits, of those of up to three operands.
using Function = uint64_t (*)(uint64_t a, uint64_t b, uint64_t c);

struct Instruction {
  enum class Kind : uint8_t { Compute, Load, Store, Branch, End, Trap };
  Kind kind;
  bool negated = false; ///< runs where the guard is false
  uint8_t elements = 0; ///< Load, Store: of a vector, 1 to 4
  uint8_t bytes = 0;    ///< Load, Store: of an element
  Slot guard = none;
  uint32_t line = 0;
  Function function = nullptr; ///< Compute; Load: what becomes of an element, of it and a register's width
  Slot to = none;              ///< Compute
  std::array<Slot, 3> from{zero, zero, zero};         ///< Load, Store: the address first
  int64_t offset = 0;                                 ///< Load, Store: added to it; Branch: where it goes
  std::array<Slot, 4> vector{none, none, none, none}; ///< Load, Store; none: the element goes nowhere
};

/// Registers of one declaration, in slots one after another.
struct Registers {
  std::string name; ///< in front of the number
  Slot first;
  uint32_t count;
  bool numbered;
};

struct Code {
  enum class Special : uint8_t { Thread, Threads, Block, Blocks };

  std::vector<Instruction> instructions;
  std::vector<uint64_t> constants; ///< by slot; 0 where it is none
  std::vector<uint8_t> defined;    ///< by slot: whether it holds a value before the first instruction
  std::vector<Registers> registers;
  std::vector<Slot> parameters; ///< by parameter
  std::vector<std::pair<Slot, Special>> specials;
  std::vector<std::string> lines; ///< of the text, from `firstLine`
  uint32_t firstLine = 1;

  /// For sentences; "" for a slot that is no register.
  std::string nameOf(Slot slot) const;
};

} // namespace ds::ptx
