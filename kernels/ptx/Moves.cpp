//===- Moves.cpp - mov, ld, st, and where a thread goes on -----------------===//
//
// ISA 9.7.9 (data movement) and 9.7.12 (control flow).
//
//===----------------------------------------------------------------------===//
#include "kernels/ptx/Decoder.h"
#include "kernels/ptx/Functions.h"
#include "kernels/ptx/Sentence.h"

#include <string_view>
#include <vector>

namespace ds::ptx {

namespace {

/// `count` bits from `place` on.
uint64_t part(uint64_t a, uint64_t place, uint64_t count) { return lowBits(a >> place, int(count)); }
/// a, and b above it.
uint64_t joined(uint64_t a, uint64_t b, uint64_t place) { return a | b << place; }

/// What a register of `to` bits gets of an element of `from`; nullptr: the element.
Function extension(const Decoder &decoder, Type from, int to) {
  if (!from.isSigned() || from.width >= to)
    return nullptr;
  switch (from.width * 100 + to) {
  case 816:
    return signExtended<8, 16>;
  case 832:
    return signExtended<8, 32>;
  case 864:
    return signExtended<8, 64>;
  case 1632:
    return signExtended<16, 32>;
  case 1664:
    return signExtended<16, 64>;
  case 3264:
    return signExtended<32, 64>;
  default:
    decoder.refuse("a register of this width is not emulated here");
  }
}

/// The elements' type in a vector of `count` that fills `type`.
Type elementOf(const Decoder &decoder, Type type, size_t count) {
  const Type element{Type::Kind::Bits, int(size_t(type.bits()) / count)};
  if (!type.isBits() || (count != 2 && count != 4) || element.width < 16)
    decoder.refuse("a vector of this size does not fill the type");
  return element;
}

/// mov.b32 {%rs1, %rs2}, %r1: the lowest bits come first.
void unpack(Decoder &decoder, Type type) {
  const auto &elements = decoder.operand(0).elements;
  const Type element = elementOf(decoder, type, elements.size());
  const Slot from = decoder.source(1, type);
  for (size_t place = 0; place < elements.size(); ++place)
    if (!decoder.isSink(elements[place]))
      decoder.compute(part, decoder.destination(elements[place], element), from,
                      decoder.constant(place * size_t(element.width)), decoder.constant(uint64_t(element.width)));
}

void pack(Decoder &decoder, Type type) {
  const auto &elements = decoder.operand(1).elements;
  const Type element = elementOf(decoder, type, elements.size());
  const Slot to = decoder.destination(0, type);
  Slot all = decoder.source(elements[0], element);
  for (size_t place = 1; place < elements.size(); ++place) {
    const Slot next = place + 1 == elements.size() ? to : decoder.temporary();
    decoder.compute(joined, next, all, decoder.source(elements[place], element),
                    decoder.constant(place * size_t(element.width)));
    all = next;
  }
}

void move(Decoder &decoder) {
  const Type type = decoder.takeType();
  if (type.width == 8)
    decoder.refuse("the instruction is not emulated for this type");
  decoder.expectOperands(2);
  if (decoder.operand(0).kind == Operand::Kind::Vector)
    unpack(decoder, type);
  else if (decoder.operand(1).kind == Operand::Kind::Vector)
    pack(decoder, type);
  else
    decoder.compute(same, decoder.destination(0, type), decoder.source(1, type));
}

/// How a cache is used, and orders that one thread does not see.
void takeHints(Decoder &decoder) {
  (void)decoder.takeOneOf({"weak", "volatile", "relaxed"});
  (void)decoder.takeOneOf({"cta", "gpu", "sys"});
  (void)decoder.takeOneOf({"ca", "cg", "cs", "lu", "cv", "wb", "wt"});
  (void)decoder.take("nc");
  (void)decoder.takeOneOf(
      {"L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate"});
  (void)decoder.takeOneOf({"L2::64B", "L2::128B", "L2::256B"});
}

/// The elements of a vector, or the one operand.
std::vector<Operand> elementsOf(const Decoder &decoder, const Operand &operand, std::string_view vector) {
  const size_t count = vector == "v4" ? 4 : vector == "v2" ? 2 : 1;
  if ((operand.kind == Operand::Kind::Vector ? operand.elements.size() : 1) != count ||
      (operand.kind == Operand::Kind::Vector) != (count > 1))
    decoder.refuse(sentence("{} values are expected", count));
  return count > 1 ? operand.elements : std::vector<Operand>{operand};
}

/// ld.param.b32 %r1, [scale_param_2+4]
void loadParameter(Decoder &decoder, Type type) {
  decoder.expectOperands(2);
  const Operand &address = decoder.operand(1);
  Slot parameter = none;
  Type found, registers;
  if (address.kind != Operand::Kind::Address || !decoder.findParameter(address.name, parameter, found))
    decoder.refuse("a parameter of this entry is expected");
  if (address.bits > 8 || int(address.bits) + type.bytes() > found.bytes() || int(address.bits) % type.bytes() != 0)
    decoder.refuse(sentence("{} has {} bytes", address.name, found.bytes()));
  const Slot to = decoder.destination(decoder.operand(0), type, true, &registers);
  const Slot bits = decoder.temporary();
  decoder.compute(part, bits, parameter, decoder.constant(8 * address.bits), decoder.constant(uint64_t(type.bits())));
  const Function function = extension(decoder, type, registers.bits());
  decoder.compute(function != nullptr ? function : same, to, bits);
}

struct Access {
  Type type;
  std::string_view vector;
};
Access accessOf(Decoder &decoder) {
  const Type type = decoder.takeType();
  if (type.isPredicate() || (type.isFloat() && type.width == 16))
    decoder.refuse("a load or store of this type is not emulated");
  takeHints(decoder);
  return {type, decoder.takeOneOf({"v2", "v4"})};
}

/// Fills in where the memory is.
void setAddress(Decoder &decoder, const Operand &address, Instruction &to) {
  if (address.kind != Operand::Kind::Address)
    decoder.refuse("an address in brackets is expected");
  to.from[0] = zero;
  to.offset = int64_t(address.bits);
  if (address.name.empty())
    return;
  Operand base;
  base.name = address.name;
  to.from[0] = decoder.source(base, {Type::Kind::Unsigned, 64});
}

/// Of a load or a store.
Instruction access(Decoder &decoder, Instruction::Kind kind, Type type, const Operand &address, size_t elements) {
  Instruction result{kind};
  result.elements = uint8_t(elements);
  result.bytes = uint8_t(type.bytes());
  if (elements * size_t(type.bytes()) > 16)
    decoder.refuse("an access of more than 16 bytes is not emulated");
  setAddress(decoder, address, result);
  return result;
}

/// Puts it behind the others, with the statement's guard.
void append(Decoder &decoder, const Instruction &made) {
  Instruction &result = decoder.add(made.kind);
  result.elements = made.elements;
  result.bytes = made.bytes;
  result.function = made.function;
  result.from = made.from;
  result.offset = made.offset;
  result.vector = made.vector;
}

void load(Decoder &decoder) {
  const bool ofParameter = decoder.take("param");
  const auto [type, vector] = accessOf(decoder);
  if (ofParameter && vector.empty())
    return loadParameter(decoder, type);
  (void)decoder.take("global"); // or generic, which is the same
  decoder.expectOperands(2);
  const auto elements = elementsOf(decoder, decoder.operand(0), vector);
  Instruction made = access(decoder, Instruction::Kind::Load, type, decoder.operand(1), elements.size());
  int width = 0;
  for (size_t place = 0; place < elements.size(); ++place) {
    if (decoder.isSink(elements[place]))
      continue;
    Type registers;
    made.vector[place] = decoder.destination(elements[place], type, true, &registers);
    if (width != 0 && width != registers.bits())
      decoder.refuse("registers of one vector have one width");
    width = registers.bits();
    made.function = extension(decoder, type, width);
  }
  append(decoder, made);
}

void store(Decoder &decoder) {
  const auto [type, vector] = accessOf(decoder);
  (void)decoder.take("global");
  decoder.expectOperands(2);
  const auto elements = elementsOf(decoder, decoder.operand(1), vector);
  Instruction made = access(decoder, Instruction::Kind::Store, type, decoder.operand(0), elements.size());
  for (size_t place = 0; place < elements.size(); ++place)
    made.vector[place] = decoder.source(elements[place], type, true);
  append(decoder, made);
}

void branch(Decoder &decoder) {
  (void)decoder.take("uni");
  decoder.expectOperands(1);
  if (decoder.operand(0).kind != Operand::Kind::Name)
    decoder.refuse("a label is expected");
  decoder.branch(decoder.operand(0).name);
}

void end(Decoder &decoder, Instruction::Kind kind) {
  (void)decoder.take("uni");
  decoder.expectOperands(0);
  (void)decoder.add(kind);
}

} // namespace

bool decodeMove(Decoder &decoder) {
  const std::string_view opcode = decoder.statement.opcode;
  if (opcode == "mov")
    move(decoder);
  else if (opcode == "ld")
    load(decoder);
  else if (opcode == "st")
    store(decoder);
  else if (opcode == "bra")
    branch(decoder);
  else if (opcode == "ret" || opcode == "exit")
    end(decoder, Instruction::Kind::End);
  else if (opcode == "trap")
    end(decoder, Instruction::Kind::Trap);
  else
    return false;
  return true;
}

} // namespace ds::ptx
