//===- Decoder.cpp - an entry's statements become instructions -------------===//
#include "kernels/ptx/Decoder.h"

#include "core/Error.h"
#include "kernels/ptx/Functions.h"
#include "kernels/ptx/Sentence.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>

namespace ds::ptx {

namespace {

constexpr size_t mostScopes = 16;

struct NamedSpecial {
  std::string_view name;
  Code::Special special;
};
/// ISA 10. Grids are one-dimensional, so of y and z all is known.
constexpr NamedSpecial specials[] = {{"%tid.x", Code::Special::Thread},
                                     {"%ntid.x", Code::Special::Threads},
                                     {"%ctaid.x", Code::Special::Block},
                                     {"%nctaid.x", Code::Special::Blocks}};
constexpr std::string_view zeros[] = {"%tid.y", "%tid.z", "%ctaid.y", "%ctaid.z"};
constexpr std::string_view ones[] = {"%ntid.y", "%ntid.z", "%nctaid.y", "%nctaid.z"};

template <typename List> bool contains(const List &list, std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

constexpr Type predicateType{Type::Kind::Predicate, 1};
constexpr Type wordType{Type::Kind::Unsigned, 32};

} // namespace

std::string Code::nameOf(Slot slot) const {
  for (const Registers &declared : registers)
    if (slot >= declared.first && slot - declared.first < declared.count)
      return declared.numbered ? declared.name + std::to_string(slot - declared.first) : declared.name;
  return "";
}

Decoder::Decoder(Tokens &tokens, Entry &entry)
    : tokens_(tokens), entry_(entry), code_(std::make_shared<Code>()), scopes_(1) {
  (void)constant(0); // slot `zero`
  code_->firstLine = tokens.peek().line;
}

Slot Decoder::newSlot(uint64_t constant, bool defined) {
  code_->constants.push_back(constant);
  code_->defined.push_back(defined ? 1 : 0);
  return Slot(code_->constants.size() - 1);
}

Slot Decoder::constant(uint64_t bits) {
  const auto [found, isNew] = constants_.try_emplace(bits, none);
  if (isNew)
    found->second = newSlot(bits, true);
  return found->second;
}

Slot Decoder::temporary() { return newSlot(0, false); }

void Decoder::addParameter(std::string_view name, Type type) {
  const Slot slot = newSlot(0, true);
  if (!parameters_.try_emplace(name, slot, type).second)
    tokens_.refuse(sentence("two parameters have the name {}", name));
  code_->parameters.push_back(slot);
  entry_.parameterBytes.push_back(uint32_t(type.bytes()));
}

bool Decoder::findParameter(std::string_view name, Slot &slot, Type &type) const {
  const auto found = parameters_.find(name);
  if (found == parameters_.end())
    return false;
  std::tie(slot, type) = found->second;
  return true;
}

void Decoder::body() {
  tokens_.expect("{");
  while (!(scopes_.size() == 1 && tokens_.is("}"))) {
    if (tokens_.peek().kind == Token::Kind::End)
      tokens_.refuse(sentence("the text ends within entry '{}'", entry_.name));
    if (tokens_.accept("{")) {
      scopes_.emplace_back();
      if (scopes_.size() > mostScopes)
        tokens_.refuse(sentence("blocks are nested more than {} deep", mostScopes - 1));
    } else if (tokens_.accept("}")) {
      scopes_.pop_back();
    } else if (tokens_.is(".reg")) {
      declareRegisters();
    } else if (tokens_.accept(".pragma")) { // "nounroll", which changes no result
      while (!tokens_.accept(";"))
        if (tokens_.next().kind == Token::Kind::End)
          tokens_.refuse("';' is expected");
    } else if (tokens_.is(":", 1)) {
      label(tokens_.word("a label"));
    } else {
      statement = readStatement(tokens_);
      guard_ = none;
      if (!statement.guard.empty()) {
        Operand guard;
        guard.name = statement.guard;
        guard_ = source(guard, predicateType);
      }
      if (!decodeInteger(*this) && !decodeFloat(*this) && !decodeCompare(*this) && !decodeConversion(*this) &&
          !decodeMove(*this))
        refuse(sentence("'{}' is not among the instructions that are emulated", statement.opcode));
    }
  }
  tokens_.expect("}");
  finish();
}

/// ".reg .b32 %r<10>, %x;"
void Decoder::declareRegisters() {
  tokens_.expect(".reg");
  const std::string_view word = tokens_.word("a type");
  const auto type = typeNamed(word.substr(word.starts_with('.')));
  if (!type || type->width == 8)
    tokens_.refuse(sentence("registers of type {} are not emulated", word));
  do {
    const std::string_view name = tokens_.word("a register's name");
    const bool numbered = tokens_.accept("<");
    const auto count = numbered ? uint32_t(tokens_.integer("a number of registers", mostRegisters)) : 1;
    if (numbered)
      tokens_.expect(">");
    declare(name, *type, count, numbered);
  } while (tokens_.accept(","));
  tokens_.expect(";");
}

void Decoder::declare(std::string_view name, Type type, uint32_t count, bool numbered) {
  registers_ += count;
  if (registers_ > mostRegisters)
    tokens_.refuse(sentence("an entry has at most {} registers", mostRegisters));
  const auto first = Slot(code_->constants.size());
  for (uint32_t left = count; left > 0; --left)
    (void)newSlot(0, false);
  if (!scopes_.back().try_emplace(name, Name{first, count, type, numbered}).second)
    tokens_.refuse(sentence("{} is declared twice", name));
  code_->registers.push_back({std::string(name), first, count, numbered});
}

bool Decoder::find(std::string_view name, Slot &slot, Type &type) const {
  const size_t digits = name.size() - (name.find_last_not_of("0123456789") + 1);
  const std::string_view prefix = name.substr(0, name.size() - digits), number = name.substr(prefix.size());
  uint32_t place = 0;
  const bool numbered = digits > 0 && (digits == 1 || number.front() != '0') &&
                        std::from_chars(number.data(), number.data() + number.size(), place).ec == std::errc();
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto found = scope->find(name); found != scope->end() && !found->second.numbered) {
      slot = found->second.first;
      type = found->second.type;
      return true;
    }
    const auto found = numbered ? scope->find(prefix) : scope->end();
    if (found != scope->end() && found->second.numbered && place < found->second.count) {
      slot = found->second.first + place;
      type = found->second.type;
      return true;
    }
  }
  return false;
}

bool Decoder::findSpecial(std::string_view name, Slot &slot, Type &type) {
  type = wordType;
  if (contains(zeros, name) || contains(ones, name)) {
    slot = constant(contains(ones, name) ? 1 : 0);
    return true;
  }
  for (const NamedSpecial &named : specials)
    if (named.name == name) {
      const auto [found, isNew] = specials_.try_emplace(named.name, none);
      if (isNew) {
        found->second = newSlot(0, true);
        code_->specials.emplace_back(found->second, named.special);
      }
      slot = found->second;
      return true;
    }
  return false;
}

void Decoder::label(std::string_view name) {
  tokens_.expect(":");
  if (!labels_.try_emplace(name, code_->instructions.size()).second)
    tokens_.refuse(sentence("two labels have the name {}", name));
}

void Decoder::finish() {
  using enum Instruction::Kind;
  auto &all = code_->instructions;
  const bool ends = !all.empty() && all.back().guard == none &&
                    (all.back().kind == End || all.back().kind == Branch || all.back().kind == Trap);
  if (!ends)
    tokens_.refuse(sentence("entry '{}' has no ret at its end", entry_.name));
  for (const Jump &jump : jumps_) {
    const auto found = labels_.find(jump.label);
    if (found == labels_.end())
      tokens_.refuse(jump.line, sentence("there is no label {}", jump.label));
    if (found->second == all.size())
      tokens_.refuse(jump.line, sentence("label {} has no instruction behind it", jump.label));
    all[jump.instruction].offset = int64_t(found->second);
  }
  for (uint32_t line = code_->firstLine; line <= all.back().line; ++line)
    code_->lines.push_back(tokens_.lineText(line));
  entry_.code = code_;
}

bool Decoder::take(std::string_view modifier) {
  const auto found = std::find(statement.modifiers.begin(), statement.modifiers.end(), modifier);
  if (found == statement.modifiers.end())
    return false;
  statement.modifiers.erase(found);
  return true;
}

std::string_view Decoder::takeOneOf(std::initializer_list<std::string_view> modifiers) {
  for (const std::string_view modifier : modifiers)
    if (take(modifier))
      return modifier;
  return "";
}

Type Decoder::takeType() {
  const std::string_view name = statement.modifiers.empty() ? "" : statement.modifiers.back();
  const auto type = typeNamed(name);
  if (!type)
    refuse(sentence("'{}' is no type that is emulated", name));
  statement.modifiers.pop_back();
  return *type;
}

void Decoder::expectOperands(size_t count) const {
  if (!statement.modifiers.empty())
    refuse(sentence("'.{}' is not emulated here", statement.modifiers.front()));
  if (statement.operands.size() != count)
    refuse(sentence("{} operands are expected, and there are {}", count, statement.operands.size()));
}

void Decoder::checkType(std::string_view name, Type found, Type type, bool mayBeWider) const {
  if (found.bits() != type.bits() && !(mayBeWider && found.bits() > type.bits() && !found.isFloat() && !type.isFloat()))
    refuse(sentence("{} has {} bits where {} are expected", name, found.bits(), type.bits()));
  if (!agree(type, found))
    refuse(sentence("{} is of another kind than the instruction", name));
}

/// ISA 4.5: constants are of 64 bits, and of as many as their use wants.
uint64_t Decoder::literal(const Operand &operand, Type type) const {
  const bool isInteger = operand.kind == Operand::Kind::Integer;
  if (type.isPredicate() && isInteger)
    return operand.bits != 0 ? 1 : 0;
  if (isInteger && type.isFloat())
    refuse("an integer stands where a float is expected");
  if (isInteger) {
    const int width = type.bits();
    if (lowBits(operand.bits, width) != operand.bits && signedOf(operand.bits, width) != int64_t(operand.bits))
      refuse(sentence("a number of more than {} bits", width));
    return lowBits(operand.bits, width);
  }
  if (type.isInteger() || type.isPredicate() || type.lanes > 1)
    refuse("a float stands where an integer is expected");
  if (operand.kind == Operand::Kind::Float32 && type.bits() == 32)
    return operand.bits;
  if (operand.kind == Operand::Kind::Float64 && type.bits() == 64)
    return operand.bits;
  if (operand.kind == Operand::Kind::Float64 && type.bits() == 32 && type.isFloat())
    return bitsOf(float(as<double>(operand.bits)));
  refuse(sentence("a float of another width stands where {} bits are expected", type.bits()));
}

Slot Decoder::source(const Operand &operand, Type type, bool mayBeWider) {
  if (operand.negated && !type.isPredicate())
    refuse("'!' stands in front of what is no predicate");
  if (operand.kind == Operand::Kind::Vector || operand.kind == Operand::Kind::Address)
    refuse("a register or a number is expected");
  if (operand.kind != Operand::Kind::Name)
    return constant(literal(operand, type));
  Slot slot = none;
  Type found;
  if (!find(operand.name, slot, found) && !findSpecial(operand.name, slot, found))
    refuse(sentence("{} is no register of this entry", operand.name));
  checkType(operand.name, found, type, mayBeWider);
  return slot;
}

Slot Decoder::predicate(const Operand &operand) {
  const Slot slot = source(operand, predicateType);
  if (!operand.negated)
    return slot;
  const Slot result = temporary();
  compute(opposite, result, slot);
  return result;
}

Slot Decoder::destination(const Operand &operand, Type type, bool mayBeWider, Type *registerType) {
  Slot slot = none;
  Type found;
  if (operand.kind != Operand::Kind::Name || operand.negated || !find(operand.name, slot, found))
    refuse(operand.kind == Operand::Kind::Name ? sentence("{} is no register of this entry", operand.name)
                                               : "a register is expected");
  checkType(operand.name, found, type, mayBeWider);
  if (registerType != nullptr)
    *registerType = found;
  return slot;
}

Instruction &Decoder::add(Instruction::Kind kind) {
  Instruction result{kind};
  result.guard = guard_;
  result.negated = statement.guardNegated;
  result.line = statement.line;
  return code_->instructions.emplace_back(result);
}

void Decoder::compute(Function function, Slot to, Slot a, Slot b, Slot c) {
  Instruction &result = add(Instruction::Kind::Compute);
  result.function = function;
  result.to = to;
  result.from = {a, b, c};
}

void Decoder::branch(std::string_view label) {
  jumps_.push_back({code_->instructions.size(), label, statement.line});
  (void)add(Instruction::Kind::Branch);
}

void Decoder::approximates() { entry_.approximations.insert(std::string(statement.whole)); }

} // namespace ds::ptx
