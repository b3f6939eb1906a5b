//===- StateChanges.cpp - what a run changes of what outlives it ----------===//
#include "compiler/check/StateChanges.h"

#include "compiler/check/meaning/ReferenceOps.h"
#include "compiler/check/schedule/Effects.h"

#include <algorithm>
#include <utility>

namespace ds::check {

namespace {

uint64_t microbatchesOf(const proto::Plan &plan, const std::string &program) {
  uint64_t microbatches = 0;
  for (const proto::Program &one : plan.roles(0).programs())
    for (const proto::Call &call : one.calls())
      if (one.name() == program)
        microbatches = std::max<uint64_t>(microbatches, call.microbatch() + 1);
  return microbatches;
}

} // namespace

bool countsMicrobatches(const proto::Plan &plan, const proto::ReferenceOp &op) {
  return op.variables_size() == 1 &&
         (op.op() == "train.update_average" ||
          (op.op() == "train.accumulate" && plan.variables(int(op.variables(0))).kind() != proto::Variable::GRADIENT));
}

bool takesMicrobatch(const proto::Plan &plan, const proto::Command &command) {
  return std::ranges::any_of(command.reference(), [&](uint32_t reference) {
    return countsMicrobatches(plan, plan.reference().ops(int(reference)));
  });
}

std::vector<std::string> functionsOf(const std::string &program) {
  return program == "step" ? std::vector<std::string>{"microbatch", "update"} : std::vector{program};
}

std::set<uint32_t> changedByMicrobatches(const proto::Plan &plan) {
  std::set<uint32_t> variables;
  for (const proto::ReferenceOp &op : plan.reference().ops())
    if (op.variables_size() > 0 && (op.op() == "train.update_average" || isCarried(plan, op)))
      variables.insert(op.variables(0));
  return variables;
}

StateChanges::StateChanges(const proto::Plan &plan, Values &values, const std::string &program)
    : plan_(plan), values_(values), delays_(plan), known_(plan.reference().ops_size() > 0), isStep_(program == "step"),
      microbatches_(microbatchesOf(plan, program)), own_(changedByMicrobatches(plan)) {
  std::map<std::pair<std::string, uint32_t>, std::vector<const proto::ReferenceOp *>> sharing; // function and variable
  for (const proto::ReferenceOp &op : plan.reference().ops())
    if (countsMicrobatches(plan, op))
      sharing[{op.function(), op.variables(0)}].push_back(&op);
  for (const auto &[place, ops] : sharing)
    for (size_t i = 0; i < ops.size(); ++i)
      turns_[ops[i]] = {i, ops.size()};
  for (const std::string &function : functionsOf(program)) // what comes last counts
    for (const proto::ReferenceOp &op : plan.reference().ops())
      if (op.function() == function)
        add(op);
  for (const proto::Variable &variable : plan.variables()) // what plans by hand say instead
    if (program == "step" && variable.kind() == proto::Variable::GRADIENT && variable.has_of())
      changes_[variable.of()] = {Updated, values.variable(variable.of(), Values::Version::Updated)};
}

void StateChanges::add(const proto::ReferenceOp &op) {
  if (isOptimizer(op)) {
    for (uint32_t variable : op.variables())
      if (plan_.variables(int(variable)).kind() != proto::Variable::GRADIENT && !delays_.gradientIn(variable))
        changes_[variable] = {Updated, values_.variable(variable, Values::Version::Updated)};
    return;
  }
  if (op.variables_size() == 0)
    return;
  const uint32_t variable = op.variables(0);
  const uint32_t own = values_.variable(variable);
  const uint32_t stored =
      op.operands_size() > 0 ? values_.placedAs(variable, values_.of(op.operands(0))) : uint32_t(Values::unknown);
  if (op.op() == "train.increment")
    changes_[variable] = {Updated, values_.incremented(own)};
  else if (op.op() == "train.update_average" && countsMicrobatches(plan_, op))
    changes_[variable] = {Averaged, behind(op, microbatches_ - 1)}; // the last of its turns counts
  else if (op.op() == "train.accumulate")
    changes_[variable] = {Accumulated, own};
  else if (isCarried(plan_, op))
    changes_[variable] = {Carried, stored};
  else if (op.op() == "train.store")
    changes_[variable] = {delays_.gradientIn(variable) ? Pending : Stored, stored};
}

/// The value when the variable was changed `count` times, `each` of them in a micro-batch.
uint32_t StateChanges::withFirst(const proto::ReferenceOp &op, uint64_t count, uint64_t each) const {
  const bool isSum = op.op() == "train.accumulate";
  if (count == 0 && isSum)
    return values_.zero();
  if (count == (isSum ? microbatches_ * each : 0))
    return values_.variable(op.variables(0));
  const uint32_t value = values_.withFirst(op.variables(0), count, each);
  if (!isSum)
    averages_[value] = {op.variables(0), count, each};
  return value;
}

uint32_t StateChanges::before(const proto::ReferenceOp &op, uint64_t microbatch) const {
  const Turn &turn = turns_.at(&op);
  return withFirst(op, microbatch * turn.of + turn.number, turn.of);
}

uint32_t StateChanges::behind(const proto::ReferenceOp &op, uint64_t microbatch) const {
  const Turn &turn = turns_.at(&op);
  return withFirst(op, microbatch * turn.of + turn.number + 1, turn.of);
}

uint32_t StateChanges::initial(uint32_t variable) const {
  return of(variable).how == Accumulated ? values_.ofRunBefore(variable) : values_.variable(variable);
}

uint32_t StateChanges::asRead(uint32_t value, uint64_t microbatch) const {
  const auto found = averages_.find(value);
  if (found == averages_.end())
    return value;
  const auto &[variable, count, each] = found->second;
  return count >= microbatch * each && count <= (microbatch + 1) * each ? values_.variable(variable) : value;
}

StateChanges::Change StateChanges::of(uint32_t variable) const {
  const auto found = changes_.find(variable);
  return found == changes_.end() ? Change{Kept, values_.variable(variable)} : found->second;
}

} // namespace ds::check
