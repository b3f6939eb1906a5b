//===- RunRules.cpp - gradients, updates, metrics -------------------------===//
#include "compiler/check/Run.h"

#include <algorithm>
#include <set>

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
      std::string why = whyNoGradient(piece.terms);
      for (const Term &term : piece.terms)
        why +=
            why.empty() ? whyNotTheSum(term.value, piece.valueByte, update.added, member.firstByte + piece.begin) : "";
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
      std::string why = expected == Values::unknown ? "" : whyNoTerm(piece.terms, microbatch);
      for (const Term &term : piece.terms)
        why += why.empty() ? whyNotTheSum(term.value, piece.valueByte, expected, member.firstByte + piece.begin) : "";
      if (!why.empty())
        refuse("coverage", index,
               "what it sums in " + nameOf(part.source().buffer()) + " as the gradient of " +
                   plan_.variables(int(member.variable)).name() + " " + why);
    }
  }
}

/// Each micro-batch up to this one that a sum holds, it holds once; this one it does.
std::string Run::whyNoTerm(const std::vector<Term> &terms, uint64_t microbatch) {
  for (const Term &term : terms)
    if (std::ranges::count(terms, term.microbatch, &Term::microbatch) != 1)
      return "holds micro-batch " + std::to_string(term.microbatch) + " twice";
  return std::ranges::count(terms, microbatch, &Term::microbatch) == 1
             ? ""
             : "lacks micro-batch " + std::to_string(microbatch);
}

std::string Run::whyNotTheSum(uint32_t value, uint64_t byte, uint32_t expected, uint64_t expectedByte) {
  const auto text = [&](uint32_t number, uint64_t at) {
    return meaning_.values().name(number) + " from its byte " + std::to_string(at) + " on";
  };
  if (value == Values::unknown || expected == Values::unknown || (value == expected && byte == expectedByte))
    return {};
  return "is the sum of " + text(value, byte) + ", not of " + text(expected, expectedByte);
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

std::string Run::whyNoGradient(const std::vector<Term> &terms) const {
  const proto::Training &training = plan_.training();
  const bool several = training.train_batch_size() > training.micro_batch_size() * training.accumulation_steps();
  for (uint64_t k = 0; k < training.accumulation_steps(); ++k) {
    const auto count = std::ranges::count_if(terms, [&](const Term &term) { return term.microbatch == k; });
    const std::string number = "micro-batch " + std::to_string(k);
    if (count != 1)
      return count == 0 ? "lacks " + number : "holds " + number + " " + std::to_string(count) + " times";
    const auto term = std::ranges::find_if(terms, [&](const Term &t) { return t.microbatch == k; });
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

void Run::requireEffects() {
  const bool isStep = program_.name() == "step";
  uint64_t microbatches = 0;
  for (const proto::Call &call : program_.calls())
    microbatches = std::max<uint64_t>(microbatches, call.microbatch() + 1);
  for (int i = 0; i < plan_.reference().ops_size(); ++i) {
    const proto::ReferenceOp &op = plan_.reference().ops(i);
    if (op.op() == "train.accumulate" && op.function() == (isStep ? "microbatch" : "evaluate") &&
        plan_.variables(int(op.variables(0))).kind() != proto::Variable::GRADIENT && sums_[uint32_t(i)] != microbatches)
      throw Refusal{"coverage", "program " + program_.name() + ": " + plan_.variables(int(op.variables(0))).name() +
                                    " is summed " + std::to_string(sums_[uint32_t(i)]) + " times in " +
                                    std::to_string(microbatches) + " micro-batches"};
    if (op.op() == "train.increment" && isStep)
      requireIncremented(op.variables(0));
  }
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
