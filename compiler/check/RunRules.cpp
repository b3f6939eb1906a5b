//===- RunRules.cpp - gradients, updates, metrics -------------------------===//
#include "compiler/check/Run.h"

#include <algorithm>
#include <utility>

namespace ds::check {

void Run::requireGradient(const proto::Command &command, std::span<const uint32_t> values, size_t index) {
  const proto::Operand &parameter = command.kernel().operands(0), &gradient = command.kernel().operands(1);
  const uint64_t microbatch = timeline_.instances[index].microbatch;
  if (!bufferOf(parameter).has_variable() && !bufferOf(parameter).has_bucket())
    throw Mismatch{"it updates " + nameOf(parameter.buffer()) + ", which holds no parameter"};
  const Layout layout(plan_, bufferOf(parameter), rank_);
  for (const Member &member : layout.within(offsetIn(parameter), byteCount(parameter))) {
    const uint64_t skip = member.begin - offsetIn(parameter), bytes = member.end - member.begin;
    const Meaning::Update update = meaning_.requireUpdate(command, member.variable, values);
    for (size_t i = 0; i < update.state.size() && int(i) + 2 < command.kernel().operands_size(); ++i)
      requireState(command.kernel().operands(int(i) + 2), update.state[i], member, skip);
    for (const Piece &piece : piecesOf(parameter, skip, bytes, microbatch))
      if (piece.updated)
        refuse("coverage", index,
               "updates parameter " + plan_.variables(int(member.variable)).name() + " a second time in one step");
    for (const Piece &piece : piecesOf(gradient, skip, bytes, microbatch)) {
      const std::string why = whyNoGradient(piece, update.added, member.firstByte + piece.begin);
      if (!why.empty())
        refuse("coverage", index,
               "the gradient of " + plan_.variables(int(member.variable)).name() + " in " + nameOf(gradient.buffer()) +
                   " " + why);
    }
  }
}

void Run::requireSlices(const proto::CollectivePart &part, size_t index) {
  const auto bucket = order_.bucketOf.find(part.target().buffer());
  if (only_ || bucket == order_.bucketOf.end())
    return;
  proto::Buffer whole;
  whole.set_bucket(bucket->second);
  whole.set_bytes(byteCount(part.source()));
  const uint64_t microbatch = timeline_.instances[index].microbatch;
  for (const Member &member : Layout(plan_, whole, rank_).within(0, whole.bytes())) {
    const uint32_t expected = meaning_.gradientOf(member.variable);
    for (const Piece &piece : piecesOf(part.source(), member.begin, member.end - member.begin, microbatch)) {
      const std::string why = whyNoPart(piece, microbatch, expected, member.firstByte + piece.begin);
      if (!why.empty())
        refuse("coverage", index,
               "what it sums in " + nameOf(part.source().buffer()) + " as the gradient of " +
                   plan_.variables(int(member.variable)).name() + " " + why);
    }
  }
}

/// Each micro-batch up to this one that a sum holds, it holds once; this one it does.
std::string Run::whyNoPart(const Piece &piece, uint64_t microbatch, uint32_t expected, uint64_t expectedByte) {
  if (expected == Values::unknown)
    return {};
  if (std::ranges::count(piece.terms, microbatch, &Term::microbatch) == 0)
    return "lacks micro-batch " + std::to_string(microbatch);
  uint64_t last = UINT64_MAX;
  for (const Term &term : piece.terms) // in the order of micro-batches
    if (std::exchange(last, term.microbatch) != term.microbatch)
      if (std::string why = whyNotTheSum(piece, term.microbatch, expected, expectedByte, /*whole=*/false); !why.empty())
        return why;
  return {};
}

std::string Run::whyNotTheSum(const Piece &piece, uint64_t microbatch, uint32_t expected, uint64_t expectedByte,
                              bool whole) {
  std::vector<uint32_t> added;
  for (const Term &term : piece.terms)
    if (term.microbatch == microbatch)
      added.push_back(term.value);
  const auto text = [&](uint32_t number, uint64_t at) {
    return meaning_.values().name(number) + " from its byte " + std::to_string(at) + " on";
  };
  const bool known = expected != Values::unknown && std::ranges::count(added, uint32_t(Values::unknown)) == 0;
  if (added.size() > 1 && (!known || !meaning_.values().addUp(added, expected, whole)))
    return "holds micro-batch " + std::to_string(microbatch) + " " + std::to_string(added.size()) + " times";
  const bool sameElements = piece.value == Values::unknown || piece.valueByte == expectedByte;
  if (!known || (meaning_.values().addUp(added, expected, whole) && sameElements))
    return {};
  return "is the sum of " + text(added[0], piece.valueByte) + ", not of " + text(expected, expectedByte);
}

void Run::requireState(const proto::Operand &operand, uint32_t variable, const Member &parameter, uint64_t skip) const {
  const Layout layout(plan_, bufferOf(operand), rank_);
  uint64_t found = 0;
  for (const Member &member : layout.within(offsetIn(operand) + skip, parameter.end - parameter.begin))
    if (member.variable == variable &&
        member.firstByte + offsetIn(operand) + skip == parameter.firstByte + member.begin)
      found += member.end - member.begin;
  if (found != parameter.end - parameter.begin)
    throw Mismatch{"its operand in " + nameOf(operand.buffer()) + " does not hold " +
                   plan_.variables(int(variable)).name() + " where it updates " +
                   plan_.variables(int(parameter.variable)).name()};
}

std::string Run::whyNoGradient(const Piece &piece, uint32_t expected, uint64_t expectedByte) {
  const proto::Training &training = plan_.training();
  const bool several = training.train_batch_size() > training.micro_batch_size() * training.accumulation_steps();
  auto term = piece.terms.begin(); // in the order of micro-batches
  for (uint64_t k = 0; k < training.accumulation_steps(); ++k) {
    const std::string number = "micro-batch " + std::to_string(k);
    if (term == piece.terms.end() || term->microbatch != k)
      return "lacks " + number;
    if (std::string why = whyNotTheSum(piece, k, expected, expectedByte, /*whole=*/true); !why.empty())
      return why;
    for (; term != piece.terms.end() && term->microbatch == k; ++term)
      if (several && !term->allRanks)
        return "holds " + number + " of this rank alone; it was not summed over the ranks";
  }
  return {};
}

void Run::requireUpdated() {
  for (int b = 0; b < role_.buffers_size(); ++b) {
    const proto::Buffer &buffer = role_.buffers(b);
    if (buffer.scope() != proto::Buffer::PLAN ||
        !isFollowed({buffer.arena(), buffer.offset(), buffer.offset() + buffer.bytes()}))
      continue;
    for (const Member &member : Layout(plan_, buffer, rank_).within(0, buffer.bytes()))
      if (const std::string &name = plan_.variables(int(member.variable)).name(); order_.trained.contains(name))
        shadows_[buffer.arena()].over(
            buffer.offset() + member.begin, buffer.offset() + member.end,
            [&](uint64_t, const Segment &segment) { requireNew(segment, uint32_t(b), name); });
  }
}

void Run::requireNew(const Segment &segment, uint32_t buffer, const std::string &parameter) const {
  if (segment.content.updated && segment.content.buffer == buffer)
    return;
  throw Refusal{"coverage", "program step, rank " + std::to_string(rank_) + ": at its end " + nameOf(buffer) +
                                " holds elements of " + parameter + " that no optimizer has updated"};
}

void Run::requireIncrements() {
  for (const proto::ReferenceOp &op : plan_.reference().ops())
    if (op.op() == "train.increment")
      requireIncremented(op.variables(0));
}

void Run::requireIncremented(uint32_t variable) {
  for (int b = 0; b < role_.buffers_size(); ++b)
    if (const proto::Buffer &buffer = role_.buffers(b); buffer.has_variable() && buffer.variable() == variable)
      shadows_[buffer.arena()].over(buffer.offset(), buffer.offset() + buffer.bytes(), [&](uint64_t, Segment &segment) {
        if (segment.content.value != meaning_.values().incremented(meaning_.values().variable(variable)))
          throw Refusal{"coverage", "program step: " + nameOf(uint32_t(b)) + ", which counts updates, holds " +
                                        meaning_.values().name(segment.content.value) + " at its end"};
      });
}

uint32_t Run::expectedOf(const proto::Metric &metric) const {
  uint32_t expected = Values::unknown;
  for (const proto::ReferenceOp &op : plan_.reference().ops())
    if (op.op() == "train.store" && op.function() == "update" && program_.name() == "step" &&
        plan_.variables(int(op.variables(0))).name() == metric.name())
      expected = meaning_.values().of(op.operands(0));
  return expected;
}

void Run::readMetric(const proto::Metric &metric) {
  if (const uint32_t value = held(metric.source(), 0); !only_ && !mayBe(value, expectedOf(metric)))
    throw Refusal{"meaning", "program " + program_.name() + ": metric " + metric.name() + " is read from " +
                                 nameOf(metric.source().buffer()) + ", which holds " + meaning_.values().name(value)};

  const Range range = rangeOf(metric.source(), 0);
  if (isFollowed(range))
    shadows_[range.arena].over(range.begin, range.end, [&](uint64_t, const Segment &segment) {
      if (segment.content.kind == Content::Undefined || segment.content.buffer != metric.source().buffer())
        throw Refusal{"value", "program " + program_.name() + ": metric " + metric.name() + " is read from " +
                                   nameOf(metric.source().buffer()) + ", which does not hold it at the end"};
    });
}

} // namespace ds::check
