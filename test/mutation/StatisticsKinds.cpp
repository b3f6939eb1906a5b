//===- StatisticsKinds.cpp - running statistics, and half an evaluation ----===//
//
// A statistic that is averaged with the wrong thing, the wrong number of times, or not at all is refused by meaning or
// coverage; an evaluation of half its labels by meaning.
//
//===----------------------------------------------------------------------===//
#include "test/mutation/Kinds.h"

#include <algorithm>

namespace ds::mutation {

namespace {

bool averages(const proto::Plan &plan, const proto::Command &command) {
  return std::ranges::any_of(command.reference(), [&](uint32_t reference) {
    return plan.reference().ops(int(reference)).op() == "train.update_average";
  });
}

std::vector<Place> averagesOf(const proto::Plan &plan) {
  return find(plan, [&](const proto::Command &command) { return averages(plan, command); });
}

/// Operands are the statistic, the micro-batch's own, the statistic.
std::string exchangedStatistics(proto::Plan &plan, Random &random) {
  const std::vector<Place> places = averagesOf(plan);
  const auto first = random.pick(places), second = random.pick(places);
  if (!first || at(plan, *first).kernel().operands(1).buffer() == at(plan, *second).kernel().operands(1).buffer())
    return "";
  proto::KernelCommand &left = *at(plan, *first).mutable_kernel(), &right = *at(plan, *second).mutable_kernel();
  left.mutable_operands(1)->Swap(right.mutable_operands(1));
  return describe(plan, *first) + " and " + describe(plan, *second) + " average each other's statistic";
}

std::string otherMomentum(proto::Plan &plan, Random &random) {
  const auto place = random.pick(averagesOf(plan));
  if (!place)
    return "";
  proto::Attribute &constants = *attribute(at(plan, *place), "constants");
  const int which = int(random.below(size_t(constants.numbers().values_size())));
  constants.mutable_numbers()->set_values(which, constants.numbers().values(which) * 0.5);
  return describe(plan, *place) + " with half of its constant " + std::to_string(which);
}

std::string averagedTwice(proto::Plan &plan, Random &random) {
  const auto place = random.pick(averagesOf(plan));
  if (!place)
    return "";
  const std::string text = describe(plan, *place) + " runs twice";
  proto::Command again = at(std::as_const(plan), *place);
  again.clear_signals();
  insert(plan, *place, again);
  return text;
}

std::string neverAveraged(proto::Plan &plan, Random &random) {
  const auto place = random.pick(averagesOf(plan));
  if (!place)
    return "";
  const std::string text = describe(plan, *place) + " left out";
  makeIdle(plan, *place);
  return text;
}

/// The statistic is said to be read where it is written, as if nothing had changed.
std::string hiddenAverage(proto::Plan &plan, Random &random) {
  const auto place = random.pick(averagesOf(plan));
  if (!place)
    return "";
  proto::KernelCommand &kernel = *at(plan, *place).mutable_kernel();
  kernel.mutable_operands(kernel.operands_size() - 1)->set_access(proto::Operand::READ);
  return describe(plan, *place) + " is said to write nothing";
}

/// Of a routine that only evaluations call; losses of the other half stay what the last step left there.
std::string halfTheLabels(proto::Plan &plan, Random &random) {
  std::vector<Place> places;
  for (int role = 0; role < plan.roles_size(); ++role)
    for (int r = 0; r < plan.roles(role).routines_size(); ++r) {
      const proto::Routine &routine = plan.roles(role).routines(r);
      for (int c = 0; c < routine.commands_size(); ++c)
        if (routine.phase() == proto::Routine::EVALUATE && isKernel(routine.commands(c), "cross_entropy"))
          places.push_back({role, r, c});
    }
  const auto place = random.pick(places);
  if (!place)
    return "";
  for (proto::Operand &operand : *at(plan, *place).mutable_kernel()->mutable_operands())
    if (operand.shape_size() > 0 && operand.shape(0) % 2 == 0)
      operand.set_shape(0, operand.shape(0) / 2);
  return describe(plan, *place) + " of half the labels";
}

} // namespace

std::vector<Kind> statisticsKinds() {
  return {{"exchanged-statistics", true, exchangedStatistics},
          {"other-momentum", true, otherMomentum},
          {"averaged-twice", true, averagedTwice},
          {"never-averaged", true, neverAveraged},
          {"hidden-average", true, hiddenAverage},
          {"half-the-labels", true, halfTheLabels}};
}

} // namespace ds::mutation
