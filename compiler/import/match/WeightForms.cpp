//===- WeightForms.cpp - how an initializer may follow from a parameter -------===//
#include "compiler/import/match/WeightForms.h"

#include "compiler/import/Constant.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>

namespace ds::import {
namespace {

bool repeats(const Shape &wide, const Shape &thin) {
  return wide.size() == thin.size() && wide != thin &&
         std::ranges::equal(wide, thin, [](int64_t to, int64_t from) { return from == to || from == 1; });
}

bool hasRows(const Shape &part, const Shape &table) {
  return table.size() == 2 && !part.empty() && part.back() == table[1] && table[0] > 0;
}

bool isTransposed(const Elements &a, const Elements &b) {
  if (!mayBeTransposed(b.shape, a.shape))
    return false;
  const size_t width = size_t(byteSize(a.dtype)), rows = size_t(a.shape[0]), columns = size_t(a.shape[1]);
  for (size_t i = 0; i < rows; ++i)
    for (size_t k = 0; k < columns; ++k)
      if (!std::equal(&a.bytes[(i * columns + k) * width], &a.bytes[(i * columns + k) * width] + width,
                      &b.bytes[(k * rows + i) * width]))
        return false;
  return true;
}

/// Whether `wide` is `thin` repeated along dimensions of size 1.
bool isRepeated(const Elements &wide, const Elements &thin) {
  return repeats(wide.shape, thin.shape) &&
         Constant::dense(thin.dtype, thin.shape, thin.bytes).bytes(wide.shape) == wide.bytes;
}

/// The rows of `table` [N, D] that `part` [.., D] consists of, as an embedding of constant indices does; nothing where
/// one is no row, or several rows are equal.
std::optional<std::vector<int64_t>> rowsOf(const Elements &part, const Elements &table) {
  if (!hasRows(part.shape, table.shape) || part.bytes.empty())
    return std::nullopt;
  const size_t row = table.bytes.size() / size_t(table.shape[0]);
  std::map<std::string_view, int64_t> numbers;
  for (int64_t i = 0; i < table.shape[0]; ++i) {
    const auto [it, isNew] = numbers.try_emplace({&table.bytes[size_t(i) * row], row}, i);
    it->second = isNew ? i : -1;
  }
  std::vector<int64_t> rows;
  for (size_t at = 0; at < part.bytes.size(); at += row) {
    const auto found = numbers.find({&part.bytes[at], row});
    if (found == numbers.end() || found->second < 0)
      return std::nullopt;
    rows.push_back(found->second);
  }
  return rows;
}

/// Whether a norm's scale is written as what it adds to 1.
bool isPlusOne(const Elements &sum, const Elements &part) {
  if (sum.dtype != DType::F32 || sum.shape != part.shape)
    return false;
  for (size_t at = 0; at < sum.bytes.size(); at += sizeof(float)) {
    float whole = 0, rest = 0;
    std::memcpy(&whole, &sum.bytes[at], sizeof whole);
    std::memcpy(&rest, &part.bytes[at], sizeof rest);
    if (whole != 1 + rest)
      return false;
  }
  return true;
}

} // namespace

bool mayBeTransposed(const Shape &initializer, const Shape &parameter) {
  return parameter.size() == 2 && initializer == Shape{parameter[1], parameter[0]};
}

bool mayBeComputed(const Shape &initializer, const Shape &parameter) {
  return initializer == parameter || repeats(initializer, parameter) || hasRows(initializer, parameter);
}

std::optional<Match> compare(const Elements &initializer, const Elements &parameter, const std::string &name) {
  if (initializer.dtype != parameter.dtype)
    return std::nullopt;
  if (initializer.bytes == parameter.bytes)
    return Match{.parameter = name, .form = initializer.shape == parameter.shape ? Form::Same : Form::Reshaped};
  if (initializer.bytes.size() == parameter.bytes.size() && isTransposed(parameter, initializer))
    return Match{.parameter = name, .form = Form::Transposed};
  if (isRepeated(initializer, parameter))
    return Match{.parameter = name, .form = Form::Repeated};
  if (const auto rows = rowsOf(initializer, parameter))
    return Match{.parameter = name, .form = Form::Rows, .rows = *rows};
  if (isPlusOne(initializer, parameter))
    return Match{.parameter = name, .form = Form::PlusOne};
  return std::nullopt;
}

} // namespace ds::import
