//===- Layout.cpp - which variables lie where in a buffer -----------------===//
#include "compiler/check/schedule/Layout.h"

#include "compiler/check/schedule/Effects.h"
#include "compiler/check/schedule/Refusal.h"
#include "runtime/plan/world/Placement.h"

#include <map>
#include <set>
#include <string>
#include <utility>

namespace ds::check {

std::vector<Member> membersOf(const proto::Plan &plan, const proto::Buffer &buffer) {
  std::vector<Member> members;
  for (const plan::Held &one : plan::heldTogether(plan, buffer)) {
    const uint64_t size = elementBytes(plan.variables(int(one.variable)).dtype());
    members.push_back({one.variable, one.byte, one.byte + one.count * size, one.first * size});
  }
  return members;
}

namespace {

/// Parameters that have a gradient, or that an optimizer of the reference program updates.
std::set<uint32_t> trainedParameters(const proto::Plan &plan) {
  std::set<uint32_t> trained;
  for (const proto::Variable &variable : plan.variables())
    if (variable.kind() == proto::Variable::GRADIENT && variable.has_of())
      trained.insert(variable.of());
  for (const proto::ReferenceOp &op : plan.reference().ops())
    for (uint32_t variable : op.variables())
      if (isOptimizer(op) && plan.variables(int(variable)).kind() == proto::Variable::PARAMETER)
        trained.insert(variable);
  return trained;
}

} // namespace

void checkVariableLayout(const proto::Plan &plan) {
  std::set<uint32_t> held;
  for (const proto::Role &role : plan.roles()) {
    std::map<uint32_t, std::string> places; // by variable
    for (const proto::Buffer &buffer : role.buffers())
      for (const plan::Held &one : plan::heldTogether(plan, buffer))
        if (const auto [first, isNew] = places.try_emplace(one.variable, buffer.name()); !isNew && one.count > 0)
          throw Refusal{"coverage", "role " + role.name() + ": variable " + plan.variables(int(one.variable)).name() +
                                        " lies in two places, buffers " + first->second + " and " + buffer.name()};
    for (const auto &[variable, place] : places)
      held.insert(variable);
  }
  for (const uint32_t index : trainedParameters(plan))
    if (const proto::Variable &parameter = plan.variables(int(index));
        !held.contains(index) && plan::pieceElements(parameter) > 0)
      throw Refusal{"coverage", "parameter " + parameter.name() + " is trained, but no role holds it"};
}

} // namespace ds::check
