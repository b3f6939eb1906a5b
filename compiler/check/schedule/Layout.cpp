//===- Layout.cpp - which variables lie where in a buffer -----------------===//
#include "compiler/check/schedule/Layout.h"

#include "compiler/check/schedule/Effects.h"
#include "compiler/check/schedule/Refusal.h"
#include "runtime/plan/world/Placement.h"

#include <algorithm>
#include <map>

namespace ds::check {

std::vector<Member> membersOf(const proto::Plan &plan, const proto::Buffer &buffer) {
  std::vector<Member> members;
  for (const plan::Held &one : plan::heldTogether(plan, buffer)) {
    const uint64_t size = elementBytes(plan.variables(int(one.variable)).dtype());
    members.push_back({one.variable, one.byte, one.byte + one.count * size, one.first * size});
  }
  return members;
}

std::vector<Member> within(const std::vector<Member> &members, uint64_t begin, uint64_t end) {
  std::vector<Member> inside;
  auto it = std::ranges::upper_bound(members, begin, {}, &Member::end);
  for (; it != members.end() && it->begin < end; ++it)
    inside.push_back({it->variable, std::max(it->begin, begin), std::min(it->end, end),
                      it->firstByte + std::max(it->begin, begin) - it->begin});
  return inside;
}

std::set<std::string> trainedParameters(const proto::Plan &plan) {
  std::set<std::string> trained;
  for (const proto::Variable &variable : plan.variables())
    if (variable.kind() == proto::Variable::GRADIENT && variable.has_of())
      trained.insert(plan.variables(int(variable.of())).name());
  for (const proto::ReferenceOp &op : plan.reference().ops())
    for (uint32_t variable : op.variables())
      if (isOptimizer(op) && plan.variables(int(variable)).kind() == proto::Variable::PARAMETER)
        trained.insert(plan.variables(int(variable)).name());
  return trained;
}

void checkVariableLayout(const proto::Plan &plan, const proto::Role &role) {
  std::map<uint32_t, std::vector<std::pair<uint64_t, uint64_t>>> parts; // by variable: elements [first, last)
  for (const proto::Buffer &buffer : role.buffers())
    for (const plan::Held &held : plan::heldTogether(plan, buffer)) // slices of all ranks together are the whole
      parts[held.variable].emplace_back(held.first, held.first + held.count);
  for (auto &[index, ranges] : parts) {
    const proto::Variable &variable = plan.variables(int(index));
    std::ranges::sort(ranges);
    uint64_t end = 0;
    for (auto [first, last] : ranges) {
      if (first != end)
        throw Refusal{"coverage", "role " + role.name() + ": elements " + std::to_string(std::min(first, end)) +
                                      " to " + std::to_string(std::max(first, end) - 1) + " of variable " +
                                      variable.name() + (first > end ? " lie nowhere" : " lie in two places")};
      end = last;
    }
    if (end != plan::pieceElements(variable))
      throw Refusal{"coverage", "role " + role.name() + ": elements " + std::to_string(end) + " to " +
                                    std::to_string(plan::pieceElements(variable) - 1) + " of variable " +
                                    variable.name() + " lie nowhere"};
  }
}

} // namespace ds::check
