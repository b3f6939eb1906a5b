//===- Syntax.h - words, signs and operands of a PTX text ------------------===//
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace ds::ptx {

struct Token {
  enum class Kind : uint8_t { Word, Number, String, Sign, End };
  Kind kind;
  uint32_t line;
  std::string_view text;
};

/// The tokens of a text, in order. Every refusal names line, text and rule.
class Tokens {
public:
  /// The text must outlive this.
  explicit Tokens(std::string_view text);

  const Token &peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  const Token &next();
  bool is(std::string_view text, size_t ahead = 0) const;
  bool accept(std::string_view text);
  void expect(std::string_view text);
  std::string_view word(std::string_view what);
  /// Decimal, hexadecimal, octal or binary, at most `most`.
  uint64_t integer(std::string_view what, uint64_t most);

  [[noreturn]] void refuse(uint32_t line, std::string_view rule) const;
  /// At the next token.
  [[noreturn]] void refuse(std::string_view rule) const { refuse(peek().line, rule); }
  /// The line without comments and blanks around it, fit to print.
  std::string lineText(uint32_t line) const;

private:
  std::string_view text_;
  std::vector<std::string_view> lines_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

struct Operand {
  enum class Kind : uint8_t { Name, Integer, Float32, Float64, Address, Vector };
  Kind kind = Kind::Name;
  bool negated = false;            ///< of a predicate, "!"
  std::string_view name;           ///< Name; Address: what the offset is added to, or ""
  uint64_t bits = 0;               ///< of a number; Address: the offset
  std::vector<Operand> elements{}; ///< Vector: names and numbers
};

struct Statement {
  uint32_t line;
  std::string_view guard; ///< a predicate, or ""
  bool guardNegated = false;
  std::string_view opcode;                 ///< up to the first point
  std::vector<std::string_view> modifiers; ///< between points
  std::string_view whole;                  ///< opcode and modifiers
  std::vector<Operand> operands;
};

/// From the guard to the semicolon. ISA 4.3 and 4.5.
Statement readStatement(Tokens &tokens);

} // namespace ds::ptx
