//===- Dims.cpp - symbolic dimensions --------------------------------------===//
#include "compiler/import/Dims.h"

#include "compiler/import/files/Failure.h"

#include <cctype>
#include <optional>
#include <string_view>

namespace ds::import {
namespace {

bool startsName(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool continuesName(char c) { return startsName(c) || std::isdigit(static_cast<unsigned char>(c)) || c == '.'; }

/// Recursive descent over: sum = product {(+|-) product}; product = factor {(*|/|//) factor}; factor = number | name |
/// (sum) | -factor. Division rounds down, as torch.export prints it.
class DimParser {
public:
  DimParser(std::string_view text, const std::map<std::string, int64_t> &dims, const std::string &where)
      : text_(text), dims_(dims), where_(where) {}

  int64_t parse() {
    const int64_t value = sum();
    skipSpace();
    if (at_ != text_.size())
      malformed();
    if (value < 0)
      throw Failure(where_ + ": dimension '" + std::string(text_) + "' is " + std::to_string(value));
    return value;
  }

private:
  [[noreturn]] void malformed() const {
    throw Failure(where_ + ": dimension '" + std::string(text_.substr(0, 80)) +
                  "' is not made of names, numbers, +, -, *, / and parentheses");
  }
  [[noreturn]] void overflow() const {
    throw Failure(where_ + ": dimension '" + std::string(text_) + "' passes 64 bits");
  }

  void skipSpace() {
    while (at_ < text_.size() && text_[at_] == ' ')
      ++at_;
  }
  bool take(char c) {
    skipSpace();
    if (at_ == text_.size() || text_[at_] != c)
      return false;
    ++at_;
    return true;
  }

  int64_t sum() {
    int64_t value = product();
    for (;;) {
      const bool plus = take('+');
      if (!plus && !take('-'))
        return value;
      const int64_t next = product();
      if (plus ? __builtin_add_overflow(value, next, &value) : __builtin_sub_overflow(value, next, &value))
        overflow();
    }
  }

  int64_t product() {
    int64_t value = factor();
    for (;;) {
      if (take('*')) {
        if (__builtin_mul_overflow(value, factor(), &value))
          overflow();
      } else if (take('/')) {
        take('/');
        const int64_t by = factor();
        if (by <= 0)
          throw Failure(where_ + ": dimension '" + std::string(text_) + "' divides by " + std::to_string(by));
        value = value / by - (value % by < 0);
      } else {
        return value;
      }
    }
  }

  int64_t factor() {
    skipSpace();
    if (++depth_ > 64 || at_ == text_.size())
      malformed();
    int64_t value = 0;
    if (take('(')) {
      value = sum();
      if (!take(')'))
        malformed();
    } else if (take('-')) {
      if (__builtin_sub_overflow(int64_t(0), factor(), &value))
        overflow();
    } else if (std::isdigit(static_cast<unsigned char>(text_[at_]))) {
      value = number();
    } else {
      value = name();
    }
    --depth_;
    return value;
  }

  int64_t number() {
    int64_t value = 0;
    for (; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])); ++at_)
      if (__builtin_mul_overflow(value, int64_t(10), &value) ||
          __builtin_add_overflow(value, int64_t(text_[at_] - '0'), &value))
        overflow();
    return value;
  }

  int64_t name() {
    if (!startsName(text_[at_]))
      malformed();
    const size_t begin = at_;
    while (at_ < text_.size() && continuesName(text_[at_]))
      ++at_;
    const std::string found(text_.substr(begin, at_ - begin));
    if (at_ < text_.size() && text_[at_] == '(') // a function, such as Max(1, batch)
      malformed();
    auto bound = dims_.find(found);
    if (bound == dims_.end())
      throw Failure(
          where_ + ": dimension '" + found + "' has no size; add --dim " + found + "=N" +
          (found == "batch" ? ", or compile with a configuration that sets train_micro_batch_size_per_gpu" : ""));
    return bound->second;
  }

  std::string_view text_;
  const std::map<std::string, int64_t> &dims_;
  const std::string &where_;
  size_t at_ = 0;
  int depth_ = 0;
};

} // namespace

int64_t evaluateDim(const std::string &expression, const std::map<std::string, int64_t> &dims,
                    const std::string &where) {
  return DimParser(expression, dims, where).parse();
}

void collectDimNames(const std::string &expression, std::set<std::string> &names) {
  for (size_t at = 0; at < expression.size();) {
    if (!startsName(expression[at])) {
      ++at;
      continue;
    }
    const size_t begin = at;
    while (at < expression.size() && continuesName(expression[at]))
      ++at;
    names.insert(expression.substr(begin, at - begin));
  }
}

} // namespace ds::import
