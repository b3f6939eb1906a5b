//===- KernelRow.h - one kernel's operands and attributes, read from its row --===//
//
// The rows of Kernels.inc are text that this file reads while it is compiled: a row that it cannot read, and a name
// that no row has, fail the build.
//
//   operands    name types [shape] {rw | whole | if attribute | unless attribute | over operands | by attribute}, ...
//               What stands behind "->" is written; "rw" is read and written. "name..." is any number of operands.
//   types       one or more of these, with '|' between:
//                 T  any float       F  float32, float64       N  any number       X  any type
//                 A  any type, whose bytes are moved: such a kernel never looks at a number
//                    T, F, N, X and A: the same for all operands of a call that are so marked, the call's own type
//                 S  statistics, losses, scales: the call's own type, but float32 where that has 16 bits
//                 G  sums over many elements, such as gradients of parameters: the call's own type, or float32
//                    where that has 16 bits (then not rounded)
//                 E  any type, whatever the others have         I  int32, int64
//                 bool, u8, i32, i64, bf16, f16, f32, f64: where a row names a float of 16 bits, the kernel reads it
//                    as it is, also on a CPU; beside the call's own type, all operands of that type
//   shape       sizes by name, the same wherever the name stands: "[rows, cols]". One name may be "..." or "name...",
//               any number of sizes. A size that is no name ("ceil(n / block)") is checked by the kernel itself. No
//               brackets: the kernel checks the shape. Where the row's factors are namedFactors (Factors.h), a name is
//               a factor, which passes from operands to results; "cols!", where it stands first: a whole one.
//   if, unless  the operand is there if the attribute is (not) 0, "" or left out; "if epilogue=gelu" asks for one value
//   by          there are as many operands as the attribute, a list, has entries
//   over        the operand may lie in the memory of one of these, "dy|x", if shape and bytes of an element are the
//               same
//   whole       of an optimizer's p: it is all of a variable, since what becomes of one element depends on all others
//   attributes  name kind [?], ...  where kind is integer, number, flag (0 or 1), integers, numbers, text, or the
//               texts that are allowed: "mean|sum". With '?' it may be left out: then it is 0, "" or empty.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/DType.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ds::kernels {

/// The element types that an operand may have.
struct OperandTypes {
  bool own = false;       ///< the call's own type, which the first such operand sets
  bool statistic = false; ///< S
  bool sum = false;       ///< G
  bool moved = false;     ///< of A or E: no arithmetic
  uint16_t any = 0;       ///< types besides, a bit for each DType's number; with `own`, those that it may be
  uint16_t also = 0;      ///< with `own`: types that may stand beside another own type

  /// Whether the row has the type itself, and not as the call's own.
  constexpr bool names(DType dtype) const { return (also & bit(dtype)) != 0; }

  static constexpr uint16_t bit(DType dtype) { return uint16_t(1u << unsigned(dtype)); }
};

enum class OperandAccess : uint8_t { Read, Write, ReadWrite };
enum class Presence : uint8_t { Always, If, Unless, By };

/// An operand as its row says it.
struct OperandRow {
  std::string_view name;
  OperandTypes types;
  std::string_view typeNames; ///< as the row spells them
  std::string_view shape;     ///< with its brackets; empty: not said
  Presence presence = Presence::Always;
  std::string_view attribute, value; ///< that `presence` asks for
  OperandAccess access = OperandAccess::Read;
  bool repeated = false;
  bool whole = false; ///< all of a variable
  uint16_t over = 0;  ///< operands of the row whose memory it may take, a bit each

  constexpr bool isRead() const { return access != OperandAccess::Write; }
  constexpr bool isWritten() const { return access != OperandAccess::Read; }
};

enum class AttributeKind : uint8_t { Integer, Number, Flag, Text, Integers, Numbers };

struct AttributeRow {
  std::string_view name;
  AttributeKind kind = AttributeKind::Integer;
  std::string_view choices; ///< of a text, '|' between; empty: any
  bool optional = false;
};

/// Some rows, in their order.
template <typename Row, size_t most> struct RowList {
  static constexpr size_t capacity = most;

  std::array<Row, most> rows{};
  size_t count = 0;

  constexpr const Row *begin() const { return rows.data(); }
  constexpr const Row *end() const { return rows.data() + count; }
  constexpr size_t size() const { return count; }
  constexpr const Row &operator[](size_t i) const { return rows[i]; }
  constexpr void add(const Row &row) {
    if (count == most)
      throw "a row has more entries than RowList has room for";
    rows[count++] = row;
  }
  /// Where the row of that name stands, or SIZE_MAX.
  constexpr size_t find(std::string_view name) const {
    for (size_t i = 0; i < count; ++i)
      if (rows[i].name == name)
        return i;
    return SIZE_MAX;
  }
};

struct KernelRow {
  std::string_view name;
  RowList<OperandRow, 12> operands;
  RowList<AttributeRow, 24> attributes;

  /// The index of an operand or attribute of the row; a name that is not there fails the build.
  consteval size_t operand(std::string_view wanted) const { return there(operands.find(wanted)); }
  consteval size_t attribute(std::string_view wanted) const { return there(attributes.find(wanted)); }

  /// Whether arithmetic is done on elements of the call's own type; else they are only moved.
  constexpr bool computes() const {
    for (const OperandRow &operand : operands)
      if (operand.types.own && !operand.types.moved)
        return true;
    return false;
  }
  /// Whether it is an optimizer's update: operand `parameter`, p, is changed by operand `gradient`, g, and what the
  /// optimizer keeps for it stands from operand `state` on.
  constexpr bool isOptimizer() const {
    return operands.size() > state && operands[parameter].name == "p" && operands[parameter].isWritten() &&
           operands[gradient].name == "g";
  }
  static constexpr size_t parameter = 0, gradient = 1, state = 2;
  /// Whether an optimizer's update is of a whole parameter; else it is element by element.
  constexpr bool updatesWhole() const { return isOptimizer() && operands[parameter].whole; }
  /// Of an optimizer's update: where `clip`, which gradients are multiplied by, stands among the operands of its op.
  /// They begin with `lr`: what stands before it in the row are variables.
  constexpr size_t clip() const { return operands.find("clip") - operands.find("lr"); }

private:
  static consteval size_t there(size_t index) {
    if (index == SIZE_MAX)
      throw "the kernel's row has no such name";
    return index;
  }
};

/// Reads rows; see the head of this file.
class RowReader {
  // In this order: Clang calls no template at compile time that stands further below.
  static constexpr std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\n'))
      text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\n'))
      text.remove_suffix(1);
    return text;
  }

  /// visit(part) for what stands between separators that are not in brackets.
  template <typename Visit> static constexpr void forEachPart(std::string_view text, char separator, Visit visit) {
    size_t depth = 0, begin = 0;
    for (size_t i = 0; i <= text.size(); ++i) {
      if (i < text.size() && (text[i] == '[' || text[i] == '('))
        ++depth;
      if (i < text.size() && (text[i] == ']' || text[i] == ')'))
        --depth;
      if (i < text.size() && (text[i] != separator || depth > 0))
        continue;
      if (const std::string_view part = trimmed(text.substr(begin, i - begin)); !part.empty())
        visit(part);
      begin = i + 1;
    }
  }

  static constexpr OperandTypes readTypes(std::string_view text) {
    constexpr auto bit = OperandTypes::bit;
    constexpr uint16_t wide = bit(DType::F32) | bit(DType::F64), floats = wide | bit(DType::BF16) | bit(DType::F16),
                       numbers = floats | bit(DType::U8) | bit(DType::U16) | bit(DType::U32) | bit(DType::I32) |
                                 bit(DType::I64),
                       all = numbers | bit(DType::Bool);
    OperandTypes types;
    forEachPart(text, '|', [&](std::string_view name) {
      const uint16_t own = name == "T"                  ? floats
                           : name == "F"                ? wide
                           : name == "N"                ? numbers
                           : name == "X" || name == "A" ? all
                                                        : uint16_t(0);
      const uint16_t other = name == "E"      ? all
                             : name == "I"    ? uint16_t(bit(DType::I32) | bit(DType::I64))
                             : name == "bool" ? bit(DType::Bool)
                             : name == "i32"  ? bit(DType::I32)
                             : name == "i64"  ? bit(DType::I64)
                             : name == "u8"   ? bit(DType::U8)
                             : name == "bf16" ? bit(DType::BF16)
                             : name == "f16"  ? bit(DType::F16)
                             : name == "f32"  ? bit(DType::F32)
                             : name == "f64"  ? bit(DType::F64)
                                              : uint16_t(0);
      types.own |= own != 0;
      types.statistic |= name == "S";
      types.sum |= name == "G";
      types.moved |= name == "A" || name == "E";
      types.any |= own | other;
      types.also |= other;
      if (own == 0 && other == 0 && name != "S" && name != "G")
        throw "KernelRow.h knows no such type";
    });
    return types;
  }

  static constexpr AttributeRow readAttribute(std::string_view text) {
    AttributeRow attribute;
    int word = 0;
    forEachPart(text, ' ', [&](std::string_view part) {
      if (word++ == 0) {
        attribute.name = part;
        return;
      }
      attribute.optional = part.ends_with('?');
      if (attribute.optional)
        part.remove_suffix(1);
      constexpr std::string_view kinds[] = {"integer", "number", "flag", "text", "integers", "numbers"};
      attribute.kind = AttributeKind::Text;
      attribute.choices = part;
      for (size_t kind = 0; kind < 6; ++kind)
        if (part == kinds[kind]) {
          attribute.kind = AttributeKind(kind);
          attribute.choices = {};
        }
    });
    if (word != 2)
      throw "an attribute is a name and a kind";
    return attribute;
  }

  static constexpr void readCondition(const KernelRow &row, OperandRow &operand, std::string_view keyword,
                                      std::string_view what) {
    if (keyword == "over") {
      forEachPart(what, '|', [&](std::string_view name) {
        const size_t index = row.operands.find(name);
        if (index == SIZE_MAX)
          throw "an operand lies over one that does not stand before it";
        operand.over |= uint16_t(1u << index);
      });
      return;
    }
    if (keyword != "if" && keyword != "unless" && keyword != "by")
      throw "only if, unless, by and over stand behind an operand's types and shape";
    operand.presence = keyword == "if" ? Presence::If : keyword == "unless" ? Presence::Unless : Presence::By;
    const size_t equals = what.find('=');
    operand.attribute = what.substr(0, equals);
    if (equals != std::string_view::npos)
      operand.value = what.substr(equals + 1);
  }

  static constexpr OperandRow readOperand(const KernelRow &row, std::string_view text, OperandAccess access) {
    OperandRow operand;
    operand.access = access;
    int word = 0;
    std::string_view keyword;
    forEachPart(text, ' ', [&](std::string_view part) {
      if (word++ == 0) {
        operand.repeated = part.ends_with("...");
        operand.name = operand.repeated ? part.substr(0, part.size() - 3) : part;
      } else if (word == 2) {
        operand.types = readTypes(part);
        operand.typeNames = part;
      } else if (part.front() == '[') {
        operand.shape = part;
      } else if (part == "rw") {
        operand.access = OperandAccess::ReadWrite;
      } else if (part == "whole") {
        operand.whole = true;
      } else if (keyword.empty()) {
        keyword = part;
      } else {
        readCondition(row, operand, keyword, part);
        keyword = {};
      }
    });
    if (word < 2 || !keyword.empty())
      throw "an operand is a name, its types, and what KernelRow.h allows behind them";
    return operand;
  }

  static constexpr void readOperands(KernelRow &row, std::string_view text, OperandAccess access) {
    forEachPart(text, ',', [&](std::string_view part) { row.operands.add(readOperand(row, part, access)); });
  }

public:
  static constexpr KernelRow read(std::string_view name, std::string_view operands, std::string_view attributes) {
    KernelRow row;
    row.name = name;
    const size_t arrow = operands.find("->");
    readOperands(row, operands.substr(0, arrow), OperandAccess::Read);
    if (arrow != std::string_view::npos)
      readOperands(row, operands.substr(arrow + 2), OperandAccess::Write);
    forEachPart(attributes, ',', [&](std::string_view part) { row.attributes.add(readAttribute(part)); });
    for (const OperandRow &operand : row.operands)
      if (operand.presence != Presence::Always && row.attributes.find(operand.attribute) == SIZE_MAX)
        throw "an operand hangs on an attribute that the row does not have";
    if (row.isOptimizer()) {
      const size_t rate = row.operands.find("lr"), clip = row.operands.find("clip");
      if (rate > clip || clip == SIZE_MAX)
        throw "an optimizer's operands are variables, then lr, and clip behind it";
      for (size_t i = rate; i <= clip; ++i)
        if (row.operands[i].presence != Presence::Always)
          throw "an optimizer's operands from lr to clip are always there";
    }
    return row;
  }
};

} // namespace ds::kernels
