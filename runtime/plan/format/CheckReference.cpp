//===- CheckReference.cpp - the single-device program -----------------------===//
#include "runtime/plan/format/PlanChecks.h"
#include "runtime/plan/plan.pb.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace ds::plan {
namespace {

/// An op that reads or writes a variable names it; one that passes a value on has it.
void checkUses(const proto::ReferenceOp &op, const std::string &place) {
  const auto is = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, op.op()) != names.end();
  };
  if (op.variables().empty() &&
      is({"train.read", "train.store", "train.accumulate", "train.increment", "train.update_average"}))
    refuse(place, op.op() + " names no variable");
  if (op.operands().empty() &&
      is({"train.store", "train.accumulate", "train.update_average", "train.reshape", "train.broadcast"}))
    refuse(place, op.op() + " names no value");
}

void checkOp(const proto::Plan &plan, int index) {
  const proto::ReferenceOp &op = plan.reference().ops(index);
  const std::string place = describe("reference op", index, op.name());
  checkName(op.name(), describe("reference op", index, ""));
  checkName(op.op(), place);
  if (op.op().empty())
    refuse(place, "it does not say which op it is");
  if (op.function() != "microbatch" && op.function() != "update" && op.function() != "evaluate")
    refuse(place, "its function is none of microbatch, update, evaluate");
  for (uint32_t value : op.operands())
    checkIndex(value, plan.reference().values_size(), "reference value", place);
  for (uint32_t value : op.results())
    checkIndex(value, plan.reference().values_size(), "reference value", place);
  for (uint32_t variable : op.variables())
    checkIndex(variable, plan.variables_size(), "variable", place);
  checkUses(op, place);
  for (const proto::Attribute &attribute : op.attributes()) {
    checkAttribute(attribute, place);
    if (!attribute.integers().rank_steps().empty())
      refuse(place, "ranks add to attribute " + attribute.name() + ", but the reference program is of one");
  }
}

} // namespace

void checkReference(const proto::Plan &plan) {
  for (int i = 0; i < plan.reference().values_size(); ++i) {
    const proto::ReferenceValue &value = plan.reference().values(i);
    const std::string place = describe("reference value", i, value.name());
    checkName(value.name(), describe("reference value", i, ""));
    checkTensorBytes(value.dtype(), value.shape(), place);
  }
  for (int i = 0; i < plan.reference().ops_size(); ++i)
    checkOp(plan, i);
}

} // namespace ds::plan
