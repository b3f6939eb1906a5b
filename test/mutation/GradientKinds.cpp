//===- GradientKinds.cpp - reductions, updates, state ----------------------===//
#include "test/mutation/Kinds.h"

#include <algorithm>

namespace ds::mutation {

namespace {

using proto::CollectiveCommand;

bool isReduction(const proto::Command &command) {
  return isCollective(command, CollectiveCommand::REDUCE_SCATTER) ||
         isCollective(command, CollectiveCommand::ALL_REDUCE);
}

/// Sums of gradients, not of losses.
std::vector<Place> reductions(const proto::Plan &plan) {
  return findWhere(plan, isReduction, [&](const Place &place) { return touchesGradients(plan, place); });
}
std::vector<Place> optimizers(const proto::Plan &plan) { return find(plan, isOptimizer); }

std::string twice(proto::Plan &plan, Random &random, const std::vector<Place> &places) {
  const auto place = random.pick(places);
  if (!place)
    return "";
  const std::string text = describe(plan, *place) + " twice";
  proto::Command again = at(plan, *place);
  again.clear_waits();
  again.clear_signals();
  insert(plan, {place->role, place->routine, place->command + 1}, again);
  return text;
}

std::string dropReduction(proto::Plan &plan, Random &random) { return leaveOut(plan, random, reductions(plan)); }
std::string doubleReduction(proto::Plan &plan, Random &random) { return twice(plan, random, reductions(plan)); }

std::string flipAccumulate(proto::Plan &plan, Random &random) {
  std::vector<Place> places = reductions(plan);
  std::erase_if(places,
                [&](const Place &place) { return !at(std::as_const(plan), place).collective().parts(0).accumulate(); });
  const auto place = random.pick(places);
  if (!place || plan.training().accumulation_steps() < 2)
    return "";
  proto::CollectivePart &part = *at(plan, *place).mutable_collective()->mutable_parts(0);
  part.set_accumulate(false);
  part.mutable_target()->set_access(proto::Operand::WRITE);
  return describe(plan, *place) + " overwrites what it should add to";
}

std::string otherCollective(proto::Plan &plan, Random &random) {
  const auto place = random.pick(
      find(plan, [](const proto::Command &command) { return isCollective(command, CollectiveCommand::ALL_REDUCE); }));
  if (!place)
    return "";
  const std::string text = describe(plan, *place) + " becomes a broadcast";
  at(plan, *place).mutable_collective()->set_kind(CollectiveCommand::BROADCAST);
  for (proto::CollectivePart &part : *at(plan, *place).mutable_collective()->mutable_parts()) {
    part.set_accumulate(false);
    part.clear_scratch();
    part.mutable_target()->set_access(proto::Operand::WRITE);
  }
  return text;
}

/// The sum of the losses, over micro-batches or ranks, which only a person would miss.
std::string dropLossSum(proto::Plan &plan, Random &random) {
  return leaveOut(plan, random, find(plan, [&](const proto::Command &command) {
                    return std::ranges::any_of(command.reference(), [&](uint32_t reference) {
                      const proto::ReferenceOp &op = plan.reference().ops(int(reference));
                      return op.op() == "train.accumulate" &&
                             plan.variables(int(op.variables(0))).kind() != proto::Variable::GRADIENT;
                    });
                  }));
}

std::string dropFill(proto::Plan &plan, Random &random) {
  return leaveOut(
      plan, random,
      findWhere(
          plan,
          [](const proto::Command &command) { return command.has_fill() && bytesOf(command.fill().target()) > 0; },
          [&](const Place &place) { return touchesGradients(plan, place); }));
}

std::string dropOptimizer(proto::Plan &plan, Random &random) { return leaveOut(plan, random, optimizers(plan)); }
std::string doubleOptimizer(proto::Plan &plan, Random &random) { return twice(plan, random, optimizers(plan)); }

/// A command becomes the first of its routine and waits for nothing; its signals stay where they were raised.
void moveToFront(proto::Plan &plan, const Place &place) {
  proto::Command early = at(plan, place);
  early.clear_waits();
  early.clear_signals();
  makeIdle(plan, place);
  insert(plan, {place.role, place.routine, 0}, early);
}

/// Before the first command of its routine, and so before a reduction that stands there, or the norm. A delayed update
/// needs neither: both are of the step before.
std::string earlyOptimizer(proto::Plan &plan, Random &random) {
  if (plan.stale())
    return "";
  std::vector<Place> places = optimizers(plan);
  std::erase_if(places, [](const Place &place) { return place.command == 0; });
  const auto place = random.pick(places);
  if (!place)
    return "";
  const std::string text = describe(plan, *place) + " first in its routine";
  moveToFront(plan, *place);
  return text;
}

std::vector<Place> shardedOptimizers(const proto::Plan &plan) {
  return findWhere(plan, isOptimizer,
                   [&](const Place &place) { return at(plan, place).kernel().operands(0).rank_stride() > 0; });
}

std::string shardOffByOne(proto::Plan &plan, Random &random) {
  const auto place = random.pick(shardedOptimizers(plan));
  if (!place)
    return "";
  proto::Operand &parameter = *at(plan, *place).mutable_kernel()->mutable_operands(0);
  parameter.set_rank_stride(parameter.rank_stride() - 4);
  return describe(plan, *place) + " on a slice that begins an element early";
}

std::string everyonesFirstShard(proto::Plan &plan, Random &random) {
  const auto place = random.pick(shardedOptimizers(plan));
  if (!place)
    return "";
  at(plan, *place).mutable_kernel()->mutable_operands(0)->set_rank_stride(0);
  return describe(plan, *place) + " on rank 0's slice, on every rank";
}

/// An optimizer with the gradient of another bucket of the same size.
std::string otherGradient(proto::Plan &plan, Random &random) {
  std::vector<std::pair<Place, Place>> pairs;
  const std::vector<Place> places = optimizers(plan);
  for (const Place &a : places)
    for (const Place &b : places) {
      const proto::Operand &mine = at(std::as_const(plan), a).kernel().operands(1);
      const proto::Operand &other = at(std::as_const(plan), b).kernel().operands(1);
      if (a.role == b.role && mine.buffer() != other.buffer() && bytesOf(mine) == bytesOf(other))
        pairs.emplace_back(a, b);
    }
  const auto pair = random.pick(pairs);
  if (!pair)
    return "";
  *at(plan, pair->first).mutable_kernel()->mutable_operands(1) =
      at(std::as_const(plan), pair->second).kernel().operands(1);
  return describe(plan, pair->first) + " with the gradient of command " + std::to_string(pair->second.command);
}

/// Two gradients of one bucket in each other's place.
std::string swapGradients(proto::Plan &plan, Random &random) {
  std::vector<std::pair<proto::Operand *, proto::Operand *>> pairs;
  std::vector<std::pair<int, proto::Operand *>> results; // by role
  for (const Place &place : find(plan, [](const proto::Command &command) { return command.has_kernel(); }))
    for (proto::Operand *operand : operandsOf(at(plan, place)))
      if (const auto category = bufferOf(plan, place, *operand).category();
          operand->access() == proto::Operand::WRITE &&
          operand->dtype() != proto::DTYPE_F64 && // parts of a norm, which adds them all
          (category == proto::Buffer::GRADIENTS || category == proto::Buffer::COMMUNICATION))
        results.emplace_back(place.role, operand);
  int role = 0;
  for (const auto &[roleOfA, a] : results)
    for (const auto &[roleOfB, b] : results)
      if (roleOfA == roleOfB && a->buffer() == b->buffer() && a->byte_offset() < b->byte_offset() &&
          bytesOf(*a) == bytesOf(*b))
        pairs.emplace_back(a, b);
  const auto pair = random.pick(pairs);
  if (!pair)
    return "";
  for (const auto &[roleOfA, a] : results)
    role = a == pair->first ? roleOfA : role;
  const uint64_t first = pair->first->byte_offset();
  pair->first->set_byte_offset(pair->second->byte_offset());
  pair->second->set_byte_offset(first);
  return "gradients in " + plan.roles(role).buffers(int(pair->first->buffer())).name() + " at bytes " +
         std::to_string(first) + " and " + std::to_string(pair->first->byte_offset()) + " swapped";
}

std::vector<Place> weightGathers(const proto::Plan &plan) {
  return findWhere(
      plan, [](const proto::Command &command) { return isCollective(command, CollectiveCommand::ALL_GATHER); },
      [&](const Place &place) {
        const proto::Operand &source = at(plan, place).collective().parts(0).source();
        return bufferOf(plan, place, source).category() == proto::Buffer::WEIGHTS;
      });
}

std::string dropGather(proto::Plan &plan, Random &random) { return leaveOut(plan, random, weightGathers(plan)); }

/// A gather that begins before the update of what it gathers: every rank then keeps old weights of the others.
std::string staleGather(proto::Plan &plan, Random &random) {
  std::vector<Place> places = weightGathers(plan);
  std::erase_if(places, [&](const Place &place) { return !isUpdate(plan, place) || place.command == 0; });
  const auto place = random.pick(places);
  if (!place)
    return "";
  const std::string text = describe(plan, *place) + " before the update of what it gathers";
  moveToFront(plan, *place);
  return text;
}

/// A gather of one bucket takes another's slice.
std::string gatherAnother(proto::Plan &plan, Random &random) {
  std::vector<std::pair<Place, uint32_t>> choices;
  for (const Place &place : weightGathers(plan)) {
    const proto::Operand &source = at(std::as_const(plan), place).collective().parts(0).source();
    const proto::Buffer &own = bufferOf(plan, place, source);
    for (int b = 0; b < plan.roles(place.role).buffers_size(); ++b) {
      const proto::Buffer &other = plan.roles(place.role).buffers(b);
      if (uint32_t(b) != source.buffer() && other.has_bucket() && other.bytes() == own.bytes() &&
          other.category() == proto::Buffer::WEIGHTS)
        choices.emplace_back(place, uint32_t(b));
    }
  }
  const auto choice = random.pick(choices);
  if (!choice)
    return "";
  at(plan, choice->first).mutable_collective()->mutable_parts(0)->mutable_source()->set_buffer(choice->second);
  return describe(plan, choice->first) + " takes " + plan.roles(choice->first.role).buffers(int(choice->second)).name();
}

std::vector<Place> increments(const proto::Plan &plan) {
  return find(plan, [](const proto::Command &command) { return isKernel(command, "increment"); });
}
std::string dropIncrement(proto::Plan &plan, Random &random) { return leaveOut(plan, random, increments(plan)); }
std::string doubleIncrement(proto::Plan &plan, Random &random) { return twice(plan, random, increments(plan)); }

/// Momentum or variance that the optimizer is not said to change.
std::string lostState(proto::Plan &plan, Random &random) {
  const auto place = random.pick(find(plan, [](const proto::Command &command) {
    return isOptimizer(command) && command.kernel().operands_size() > 5;
  }));
  if (!place)
    return "";
  at(plan, *place).mutable_kernel()->mutable_operands(2)->set_access(proto::Operand::READ);
  return describe(plan, *place) + " is said to keep its momentum as it is";
}

std::string swapMoments(proto::Plan &plan, Random &random) {
  const auto place = random.pick(find(plan, keepsTwoMoments));
  if (!place)
    return "";
  at(plan, *place).mutable_kernel()->mutable_operands()->SwapElements(2, 3);
  return describe(plan, *place) + " with momentum and variance swapped";
}

} // namespace

std::vector<Kind> gradientKinds() {
  return {{"drop-reduction", true, dropReduction},
          {"double-reduction", true, doubleReduction},
          {"overwrite-instead-of-add", true, flipAccumulate},
          {"broadcast-instead-of-sum", true, otherCollective},
          {"drop-loss-sum", true, dropLossSum},
          {"drop-fill", true, dropFill},
          {"drop-optimizer", true, dropOptimizer},
          {"double-optimizer", true, doubleOptimizer},
          {"early-optimizer", true, earlyOptimizer},
          {"shard-off-by-one", true, shardOffByOne},
          {"everyones-first-shard", true, everyonesFirstShard},
          {"other-gradient", true, otherGradient},
          {"swap-gradients", true, swapGradients},
          {"drop-weight-gather", true, dropGather},
          {"stale-gather", true, staleGather},
          {"gather-of-another-bucket", true, gatherAnother},
          {"drop-increment", true, dropIncrement},
          {"double-increment", true, doubleIncrement},
          {"lost-state", true, lostState},
          {"swap-moments", true, swapMoments}};
}

} // namespace ds::mutation
