//===- SumKinds.cpp - sums that have a part twice, and metrics misread ----===//
//
// What is summed twice, gradient or not, is refused by coverage or, where another command sums it, by meaning; a metric
// that is left out, or read as another type, by meaning.
//
//===----------------------------------------------------------------------===//
#include "test/mutation/Kinds.h"

#include <algorithm>

namespace ds::mutation {

namespace {

using proto::CollectiveCommand;

/// Sums over ranks of any program.
std::vector<Place> sums(const proto::Plan &plan, const IsWanted &isWanted) {
  std::vector<Place> places;
  for (Place place; place.role < plan.roles_size(); ++place.role)
    for (place.routine = 0; place.routine < plan.roles(place.role).routines_size(); ++place.routine)
      for (place.command = 0; place.command < plan.roles(place.role).routines(place.routine).commands_size();
           ++place.command)
        if (const proto::Command &command = at(plan, place);
            (isCollective(command, CollectiveCommand::ALL_REDUCE) ||
             isCollective(command, CollectiveCommand::REDUCE_SCATTER)) &&
            isWanted(command))
          places.push_back(place);
  return places;
}

std::string partTwice(proto::Plan &plan, Random &random) {
  const auto place = random.pick(sums(plan, [](const proto::Command &) { return true; }));
  if (!place)
    return "";
  CollectiveCommand &collective = *at(plan, *place).mutable_collective();
  const int part = int(random.below(size_t(collective.parts_size())));
  const proto::CollectivePart copy = collective.parts(part);
  *collective.add_parts() = copy;
  return describe(plan, *place) + " has its part " + std::to_string(part) + " twice";
}

bool addsToSum(const proto::Plan &plan, const proto::Command &command) {
  return std::ranges::any_of(command.reference(), [&](uint32_t reference) {
    const proto::ReferenceOp &op = plan.reference().ops(int(reference));
    return op.op() == "train.accumulate" && plan.variables(int(op.variables(0))).kind() != proto::Variable::GRADIENT;
  });
}

/// A loss is summed over the ranks by a command that says nothing of it, and then by that which does.
std::string lossTwice(proto::Plan &plan, Random &random) {
  const auto place = random.pick(sums(plan, [&](const proto::Command &command) { return addsToSum(plan, command); }));
  if (!place)
    return "";
  const std::string text = describe(plan, *place) + " runs twice";
  proto::Command first = at(std::as_const(plan), *place);
  first.clear_reference();
  first.clear_signals();
  insert(plan, *place, first);
  return text;
}

/// Each micro-batch begins a loss anew, of which there are several.
std::string zeroedSum(proto::Plan &plan, Random &random) {
  const auto place = random.pick(
      find(plan, [&](const proto::Command &command) { return command.has_kernel() && addsToSum(plan, command); }));
  if (!place || plan.training().accumulation_steps() < 2)
    return "";
  const std::string text = describe(plan, *place) + " finds zeros in its sum";
  const proto::Command &adds = at(std::as_const(plan), *place);
  proto::Command zeros;
  zeros.set_queue(adds.queue());
  *zeros.mutable_fill()->mutable_target() = adds.kernel().operands(adds.kernel().operands_size() - 1);
  insert(plan, *place, zeros);
  return text;
}

std::string leftOutMetric(proto::Plan &plan, Random &random) {
  proto::Role &role = *plan.mutable_roles(0); // of rank 0, whose metrics ds-run shows
  std::vector<std::pair<int, int>> choices;
  for (int p = 0; p < role.programs_size(); ++p)
    for (int m = 0; m < role.programs(p).metrics_size(); ++m)
      choices.emplace_back(p, m);
  const auto choice = random.pick(choices);
  if (!choice)
    return "";
  proto::Program &program = *role.mutable_programs(choice->first);
  const std::string text = "program " + program.name() + " has no metric " + program.metrics(choice->second).name();
  program.mutable_metrics()->DeleteSubrange(choice->second, 1);
  return text;
}

std::string metricAsInteger(proto::Plan &plan, Random &random) {
  std::vector<std::pair<int, int>> choices;
  const proto::Role &role = plan.roles(0);
  for (int p = 0; p < role.programs_size(); ++p)
    for (int m = 0; m < role.programs(p).metrics_size(); ++m)
      choices.emplace_back(p, m);
  const auto choice = random.pick(choices);
  if (!choice)
    return "";
  proto::Program &program = *plan.mutable_roles(0)->mutable_programs(choice->first);
  proto::Metric &metric = *program.mutable_metrics(choice->second);
  const bool isDouble = metric.source().dtype() == proto::DTYPE_F64;
  metric.mutable_source()->set_dtype(isDouble ? proto::DTYPE_I64 : proto::DTYPE_I32);
  return "metric " + metric.name() + " of program " + program.name() + " is read as an integer";
}

} // namespace

std::vector<Kind> sumKinds() {
  return {{"part-summed-twice", true, partTwice},
          {"loss-summed-twice", true, lossTwice},
          {"zeroed-sum", true, zeroedSum},
          {"left-out-metric", true, leftOutMetric},
          {"metric-as-integer", true, metricAsInteger}};
}

} // namespace ds::mutation
