//===- CheckReference.cpp - the single-device program -----------------------===//
#include "runtime/plan/PlanChecks.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <string>

namespace ds::plan {
namespace {

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
  for (const proto::Attribute &attribute : op.attributes())
    checkAttribute(attribute, place);
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
