//===- NormRules.cpp - the norm of gradients that ranks share out ---------===//
#include "compiler/check/NormRules.h"

#include "compiler/check/meaning/Mismatch.h"
#include "compiler/check/meaning/ReferenceOps.h"
#include "compiler/check/schedule/Effects.h"

#include <algorithm>
#include <string>
#include <utility>

namespace ds::check {

namespace {

constexpr uint64_t sumBytes = sizeof(double);

bool isZero(Values &values, uint32_t value) { return value == values.zero() || value == values.padding(); }

/// Adds the sums [begin, end), of `value` from its sum `first` on; goes on with the last segment where that is the
/// same.
void append(std::vector<OperandSegment> &sums, uint64_t begin, uint64_t end, uint32_t value, uint64_t first) {
  if (!sums.empty() && sums.back().value == value && value > Values::other &&
      sums.back().valueByte + (sums.back().end - sums.back().begin) == first * sumBytes) {
    sums.back().end = end * sumBytes;
    return;
  }
  sums.emplace_back(begin * sumBytes, end * sumBytes, Known{.value = value, .valueByte = first * sumBytes});
}

/// Sums of a gradient that ends within a block of 1024 go on to its end: of padding, so they are 0.
uint64_t sumsLeft(const Values &values, const std::vector<OperandSegment> &sums) {
  if (sums.empty() || !values.squaredBy(sums.back().value))
    return 0;
  const OperandSegment &last = sums.back();
  const uint64_t all = *values.type(last.value).elements, there = (last.valueByte + last.end - last.begin) / sumBytes;
  return all - std::min(all, there);
}

/// Of the gradient that a segment is of. Where all elements are one number there are as many as the segment has.
uint64_t elementsOf(const Values &values, const OperandSegment &segment, uint64_t elementBytes) {
  return values.type(segment.value).elements.value_or((segment.end - segment.begin) / elementBytes);
}

/// Whether a segment of a gradient is of whole blocks, in the gradient as in the operand, to its end if not to a
/// block's.
bool beginsAndEndsBlocks(const Values &values, const OperandSegment &segment, uint64_t bytes, uint64_t elementBytes) {
  if (segment.value <= Values::other || segment.begin % bytes != 0)
    return false;
  if (!values.type(segment.value).elements)
    return true;
  const uint64_t all = elementsOf(values, segment, elementBytes) * elementBytes;
  return segment.valueByte % bytes == 0 &&
         (segment.end % bytes == 0 || segment.valueByte + segment.end - segment.begin == all);
}

/// Segments of one value that follow each other are one, by whatever commands they were written.
std::vector<OperandSegment> joined(const std::vector<OperandSegment> &segments) {
  std::vector<OperandSegment> whole;
  for (const OperandSegment &segment : segments)
    if (!whole.empty() && whole.back().value == segment.value && segment.value > Values::other &&
        whole.back().end == segment.begin &&
        whole.back().valueByte + (segment.begin - whole.back().begin) == segment.valueByte)
      whole.back().end = segment.end;
    else
      whole.push_back(segment);
  return whole;
}

/// What a norm is the root of counts no bytes twice.
void requireEachPartOnce(const RankMemory &memory, const proto::KernelCommand &kernel, uint64_t microbatch) {
  std::vector<Range> parts;
  for (const proto::Operand &operand : kernel.operands())
    if (operand.access() == proto::Operand::READ)
      parts.push_back(memory.rangeOf(operand, microbatch));
  std::ranges::sort(parts, {}, [](const Range &part) { return std::pair(part.arena, part.begin); });
  for (size_t i = 1; i < parts.size(); ++i)
    if (parts[i].arena == parts[i - 1].arena && parts[i].begin < parts[i - 1].end)
      throw Mismatch{"it counts a part of the gradients twice"};
}

/// Squares of parts are added up in another order than those of the whole.
void requireAnyOrder(const RankMemory &memory, size_t index) {
  if (memory.plan().numerics() == "bit-equal")
    memory.refuse("numerics", index,
                  "adds up squares of parts that ranks have, in another order than one rank's norm, and the plan says "
                  "bit-equal");
}

} // namespace

Contents sumsOfSquares(const RankMemory &memory, const Contents &gradient, size_t index) {
  const proto::KernelCommand &kernel = memory.instance(index).command->kernel();
  const proto::Operand &input = kernel.operands(0), &result = kernel.operands(1);
  const proto::Attribute *said = attributeOf(kernel, "block");
  const uint64_t block = said ? uint64_t(said->integer()) : wholeBlock;
  const uint64_t size = elementBytes(input.dtype());
  const uint64_t bytes = block * size;
  if (!gradient.along.empty() && byteCount(input) % bytes != 0) // a block is of two ranks
    return {{{0, byteCount(result), {.value = Values::other}}}};
  Values &values = memory.values();
  std::vector<OperandSegment> sums;
  for (const OperandSegment &segment : joined(gradient.segments)) {
    const uint64_t end = (segment.end + bytes - 1) / bytes, begin = std::min((segment.begin + bytes - 1) / bytes, end);
    if (isZero(values, segment.value)) {
      const uint64_t left = std::min(sumsLeft(values, sums), end - begin);
      if (left > 0)
        sums.back().end += left * sumBytes;
      if (begin + left < end)
        append(sums, begin + left, end, values.zero(), begin + left);
      continue;
    }
    const bool isWhole = beginsAndEndsBlocks(values, segment, bytes, size);
    const uint64_t elements = elementsOf(values, segment, size);
    append(sums, segment.begin / bytes, end,
           isWhole ? values.squares(segment.value, int64_t(block), elements)
                   : std::min<uint32_t>(segment.value, Values::other),
           isWhole && values.type(segment.value).elements ? segment.valueByte / bytes : 0);
  }
  return {std::move(sums), gradient.along};
}

void requireNorm(RankMemory &memory, std::span<const uint32_t> held, size_t index) {
  const proto::Command &command = *memory.instance(index).command;
  const proto::KernelCommand &kernel = command.kernel();
  requireEachPartOnce(memory, kernel, memory.instance(index).microbatch);
  if (command.reference_size() != 1)
    return;
  Values &values = memory.values();
  const proto::ReferenceOp &op = memory.plan().reference().ops(int(command.reference(0)));
  const proto::Attribute *blocks = attributeOf(kernel, "blocks");
  for (int i = 0; i < op.operands_size() && i < kernel.operands_size(); ++i) {
    uint32_t expected = values.of(op.operands(i));
    const auto squared = values.squaredBy(expected);
    if (squared && values.squaresOfAll(held[size_t(i)]) == squared->value) {
      requireAnyOrder(memory, index);
      continue;
    }
    if (squared && blocks && i < blocks->integers().values_size())
      expected = values.squares(squared->value, blocks->integers().values(i), squared->elements);
    if (held[size_t(i)] <= Values::other)
      throw Mismatch{"operand " + std::to_string(i) + " is not " + values.name(expected) +
                     " of the whole gradient: a part of it is missing, or is of something else"};
    if (held[size_t(i)] != expected)
      throw Mismatch{"operand " + std::to_string(i) + " holds " + values.name(held[size_t(i)]) + ", but " +
                     titleOf(op) + " takes " + values.name(expected)};
  }
}

} // namespace ds::check
