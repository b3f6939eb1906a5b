//===- Layout.cpp - which variables lie where in a buffer -----------------===//
#include "compiler/check/schedule/Layout.h"

#include "compiler/check/schedule/Effects.h"
#include "compiler/check/schedule/Refusal.h"
#include "runtime/plan/world/Placement.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace ds::check {

Layout::Layout(const proto::Plan &plan, const proto::Buffer &buffer, uint32_t rank)
    : Layout(plan, plan::heldIn(plan, buffer, rank)) {}

Layout::Layout(const proto::Plan &plan, const std::vector<plan::Held> &held) {
  for (const plan::Held &one : held) {
    const uint64_t size = elementBytes(plan.variables(int(one.variable)).dtype());
    members_.push_back({one.variable, one.byte, one.byte + one.count * size, one.first * size});
  }
}

std::vector<Member> Layout::within(uint64_t offset, uint64_t bytes) const {
  std::vector<Member> members;
  for (Member member : members_) {
    const uint64_t begin = std::max(member.begin, offset), end = std::min(member.end, offset + bytes);
    if (begin < end)
      members.push_back({member.variable, begin, end, member.firstByte + begin - member.begin});
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
        if (const auto [first, isNew] = places.try_emplace(one.variable, buffer.name()); !isNew)
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
