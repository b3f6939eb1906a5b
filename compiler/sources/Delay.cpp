//===- Delay.cpp - whether updates are of the step before -----------------===//
//
// A delayed update reads variables only: the parameter's pending gradient, and for each scalar one of its own. All
// begin with 0, and the update function stores this step's gradient and scalars there, once. So a step's update is that
// of the step before, and the first one's, whose factor is 0, changes nothing.
//
//===----------------------------------------------------------------------===//
#include "compiler/sources/Delay.h"

#include "compiler/sources/ReferenceOps.h"
#include "core/Error.h"

#include <cstdint>
#include <map>
#include <string>

namespace ds::sources {
namespace {

namespace proto = plan::proto;

class Delay {
public:
  explicit Delay(const proto::Plan &plan) : plan_(plan) {
    for (const proto::ReferenceOp *store : opsOf(plan, "train.store"))
      if (store->function() == "update" && !stored_.try_emplace(store->variables(0), store->operands(0)).second)
        throw Error("the reference program of the plan stores " + nameOf(store->variables(0)) + " twice in a step");
  }

  proto::Plan undone() const {
    proto::Plan plan = plan_;
    for (proto::ReferenceOp &op : *plan.mutable_reference()->mutable_ops())
      for (const char *kind : {"train.adamw", "train.sgd", "train.adagrad", "train.lion", "train.lamb"})
        if (op.op() == kind)
          undo(op);
    return plan;
  }

private:
  void undo(proto::ReferenceOp &update) const {
    uint32_t parameter = UINT32_MAX;
    for (const uint32_t variable : update.variables())
      if (plan_.variables(int(variable)).kind() == proto::Variable::PARAMETER)
        parameter = variable;
    if (parameter == UINT32_MAX)
      throw Error("the reference program of the plan has an update of no parameter");
    int pending = 0;
    for (uint32_t &variable : *update.mutable_variables())
      if (const proto::ReferenceOp *read = gradientStored(variable, parameter)) {
        variable = read->variables(0);
        ++pending;
      }
    if (pending != 1)
      refuse(parameter, "the gradient");
    for (uint32_t &operand : *update.mutable_operands())
      operand = storedScalar(operand, parameter);
  }

  /// What reads the gradient of a parameter that a step stores into a variable; null where it stores something else.
  const proto::ReferenceOp *gradientStored(uint32_t variable, uint32_t parameter) const {
    const auto found = stored_.find(variable);
    const proto::ReferenceOp *read = found == stored_.end() ? nullptr : makerOf(plan_, found->second);
    if (!read || read->op() != "train.read")
      return nullptr;
    const proto::Variable &gradient = plan_.variables(int(read->variables(0)));
    const bool isOwn = gradient.kind() == proto::Variable::GRADIENT && gradient.has_of() && gradient.of() == parameter;
    return isOwn ? read : nullptr;
  }

  uint32_t storedScalar(uint32_t value, uint32_t parameter) const {
    const proto::ReferenceOp *read = makerOf(plan_, value);
    if (!read || read->op() != "train.read")
      refuse(parameter, plan_.reference().values(int(value)).name());
    const auto found = stored_.find(read->variables(0));
    const proto::Variable &pending = plan_.variables(int(read->variables(0)));
    if (found == stored_.end() || pending.kind() != proto::Variable::OPTIMIZER || pending.source().fill() != 0)
      refuse(parameter, pending.name());
    return found->second;
  }

  [[noreturn]] void refuse(uint32_t parameter, const std::string &what) const {
    throw Error("the update of " + nameOf(parameter) + " does not take " + what +
                " from the step before, as deepstatic.delayed_update asks");
  }

  const std::string &nameOf(uint32_t variable) const { return plan_.variables(int(variable)).name(); }

  const proto::Plan &plan_;
  std::map<uint32_t, uint32_t> stored_; // value by variable
};

} // namespace

std::optional<proto::Plan> withoutDelay(const proto::Plan &plan, const ConfigFile &config) {
  if (plan.stale() != config.delayed)
    throw Error(std::string("the updates of the plan are of ") + (plan.stale() ? "the step before" : "their own step") +
                ", but deepstatic.delayed_update is " + (config.delayed ? "true" : "false"));
  return config.delayed ? std::optional(Delay(plan).undone()) : std::nullopt;
}

} // namespace ds::sources
