//===- Syntax.cpp - words, signs and operands of a PTX text ----------------===//
#include "kernels/ptx/Syntax.h"

#include "core/Error.h"
#include "kernels/ptx/Ptx.h"
#include "kernels/ptx/Sentence.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <string>

namespace ds::ptx {

namespace {

constexpr size_t mostOperands = 8, mostElements = 8, mostPrinted = 100;

bool isWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
         c == '%' || c == '.';
}
bool isBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool isDigit(char c) { return c >= '0' && c <= '9'; }

/// Cuts a text into tokens.
class Scanner {
public:
  explicit Scanner(std::string_view text) : text_(text) {}

  Token next() {
    skip();
    const uint32_t line = line_;
    if (at_ == text_.size())
      return {Token::Kind::End, line, {}};
    const size_t begin = at_;
    if (text_[at_] == '"') {
      const size_t end = text_.find_first_of("\"\n", at_ + 1);
      at_ = end == std::string_view::npos ? text_.size() : end + (text_[end] == '"');
      return {Token::Kind::String, line, text_.substr(begin, at_ - begin)};
    }
    if (!isWord(text_[at_])) {
      ++at_;
      return {Token::Kind::Sign, line, text_.substr(begin, 1)};
    }
    while (at_ < text_.size() && (isWord(text_[at_]) || text_.substr(at_, 2) == "::"))
      at_ += isWord(text_[at_]) ? 1 : 2; // "L1::no_allocate"
    return {isDigit(text_[begin]) ? Token::Kind::Number : Token::Kind::Word, line, text_.substr(begin, at_ - begin)};
  }

private:
  /// Blanks and comments.
  void skip() {
    while (at_ < text_.size()) {
      if (isBlank(text_[at_]))
        line_ += text_[at_++] == '\n';
      else if (text_.substr(at_, 2) == "//")
        at_ = std::min(text_.size(), text_.find('\n', at_));
      else if (text_.substr(at_, 2) == "/*") {
        const size_t end = std::min(text_.size(), text_.find("*/", at_ + 2));
        line_ += uint32_t(std::count(text_.begin() + ptrdiff_t(at_), text_.begin() + ptrdiff_t(end), '\n'));
        at_ = std::min(text_.size(), end + 2);
      } else
        return;
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  uint32_t line_ = 1;
};

} // namespace

Tokens::Tokens(std::string_view text) : text_(text) {
  if (text.size() > mostTextBytes)
    throw Error(sentence("PTX of {} bytes: at most {} are read", text.size(), mostTextBytes));
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.size(), text.find('\n', begin));
    lines_.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  Scanner scanner(text);
  do
    tokens_.push_back(scanner.next());
  while (tokens_.back().kind != Token::Kind::End);
}

std::string Tokens::lineText(uint32_t line) const {
  std::string_view text = line >= 1 && line <= lines_.size() ? lines_[line - 1] : std::string_view();
  text = text.substr(0, 10 * mostPrinted); // a line may be as long as the text, and be asked for by each entry
  text = text.substr(0, text.find("//"));
  while (!text.empty() && isBlank(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && isBlank(text.back()))
    text.remove_suffix(1);
  std::string printed(text.substr(0, mostPrinted));
  for (char &c : printed)
    c = c == '\t' ? ' ' : c < 32 || c > 126 ? '?' : c;
  return text.size() > mostPrinted ? printed + "..." : printed;
}

void Tokens::refuse(uint32_t line, std::string_view rule) const {
  throw Error(sentence("PTX line {}, '{}': {}", line, lineText(line), rule));
}

const Token &Tokens::next() {
  const Token &token = peek();
  at_ += at_ + 1 < tokens_.size();
  return token;
}

bool Tokens::is(std::string_view text, size_t ahead) const {
  const Token &token = peek(ahead);
  return token.kind != Token::Kind::String && token.text == text;
}

bool Tokens::accept(std::string_view text) {
  if (!is(text))
    return false;
  (void)next();
  return true;
}

void Tokens::expect(std::string_view text) {
  if (!accept(text))
    refuse(sentence("'{}' is expected", text));
}

std::string_view Tokens::word(std::string_view what) {
  if (peek().kind != Token::Kind::Word)
    refuse(sentence("{} is expected", what));
  return next().text;
}

namespace {

/// Of the forms of ISA 4.5.1. Whether it is one.
bool readInteger(std::string_view text, uint64_t &value) {
  if (text.ends_with('U'))
    text.remove_suffix(1);
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X"))
    base = 16;
  else if (text.starts_with("0b") || text.starts_with("0B"))
    base = 2;
  text.remove_prefix(base == 10 ? 0 : 2);
  if (base == 10 && text.size() > 1 && text.front() == '0')
    base = 8;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool readHexadecimal(std::string_view digits, size_t count, uint64_t &value) {
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return digits.size() == count && error == std::errc() && end == digits.data() + digits.size();
}

/// ISA 4.5.1 and 4.5.2.
Operand readNumber(Tokens &tokens) {
  const bool minus = tokens.accept("-");
  if (tokens.peek().kind != Token::Kind::Number)
    tokens.refuse("a number is expected");
  const std::string_view text = tokens.peek().text;
  Operand result;
  double decimal = 0;
  const auto prefix = text.substr(0, 2);
  if (prefix == "0f" || prefix == "0F") {
    result.kind = Operand::Kind::Float32;
    if (!readHexadecimal(text.substr(2), 8, result.bits))
      tokens.refuse("a float32 is 0f and eight hexadecimal digits");
    result.bits ^= minus ? 0x80000000u : 0;
  } else if (prefix == "0d" || prefix == "0D") {
    result.kind = Operand::Kind::Float64;
    if (!readHexadecimal(text.substr(2), 16, result.bits))
      tokens.refuse("a float64 is 0d and sixteen hexadecimal digits");
    result.bits ^= minus ? uint64_t(1) << 63 : 0;
  } else if (text.find('.') != std::string_view::npos) {
    result.kind = Operand::Kind::Float64;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), decimal);
    if (error != std::errc() || end != text.data() + text.size())
      tokens.refuse(sentence("'{}' is no number", text));
    result.bits = std::bit_cast<uint64_t>(minus ? -decimal : decimal);
  } else {
    result.kind = Operand::Kind::Integer;
    if (!readInteger(text, result.bits))
      tokens.refuse(sentence("'{}' is no number of at most 64 bits", text));
    result.bits = minus ? 0 - result.bits : result.bits;
  }
  (void)tokens.next();
  return result;
}

/// Behind "[".
Operand readAddress(Tokens &tokens) {
  Operand result;
  result.kind = Operand::Kind::Address;
  const bool named = tokens.peek().kind == Token::Kind::Word;
  if (named)
    result.name = tokens.next().text;
  if (!named || tokens.accept("+") || tokens.is("-")) {
    const Operand offset = readNumber(tokens);
    if (offset.kind != Operand::Kind::Integer)
      tokens.refuse("an offset is an integer");
    result.bits = offset.bits;
  }
  tokens.expect("]");
  return result;
}

/// A name or a number.
Operand readScalar(Tokens &tokens) {
  if (tokens.peek().kind != Token::Kind::Word)
    return readNumber(tokens);
  Operand result;
  result.name = tokens.next().text;
  return result;
}

Operand readOperand(Tokens &tokens) {
  if (tokens.accept("["))
    return readAddress(tokens);
  if (tokens.accept("{")) {
    Operand result;
    result.kind = Operand::Kind::Vector;
    do {
      result.elements.push_back(readScalar(tokens));
      if (result.elements.size() > mostElements)
        tokens.refuse(sentence("a vector has at most {} elements", mostElements));
    } while (tokens.accept(","));
    tokens.expect("}");
    return result;
  }
  const bool negated = tokens.accept("!");
  Operand result = readScalar(tokens);
  result.negated = negated;
  return result;
}

} // namespace

uint64_t Tokens::integer(std::string_view what, uint64_t most) {
  uint64_t value = 0;
  if (peek().kind != Token::Kind::Number || !readInteger(peek().text, value) || value > most)
    refuse(sentence("{} is expected, at most {}", what, most));
  (void)next();
  return value;
}

Statement readStatement(Tokens &tokens) {
  Statement result{tokens.peek().line, {}, false, {}, {}, {}, {}};
  if (tokens.accept("@")) {
    result.guardNegated = tokens.accept("!");
    result.guard = tokens.word("a predicate");
  }
  result.line = tokens.peek().line;
  result.whole = tokens.word("an instruction");
  result.opcode = result.whole.substr(0, result.whole.find('.'));
  for (size_t begin = result.opcode.size(); begin < result.whole.size();) {
    const size_t end = std::min(result.whole.size(), result.whole.find('.', begin + 1));
    result.modifiers.push_back(result.whole.substr(begin + 1, end - begin - 1));
    begin = end;
  }
  while (!tokens.accept(";")) {
    if (!result.operands.empty())
      tokens.expect(",");
    result.operands.push_back(readOperand(tokens));
    if (result.operands.size() > mostOperands)
      tokens.refuse(sentence("an instruction has at most {} operands", mostOperands));
  }
  return result;
}

} // namespace ds::ptx
