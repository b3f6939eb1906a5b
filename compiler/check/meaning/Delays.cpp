//===- Delays.cpp - gradients that the next step's updates read -----------===//
#include "compiler/check/meaning/Delays.h"

#include "compiler/check/meaning/Mismatch.h"
#include "compiler/check/meaning/ReferenceOps.h"
#include "compiler/check/schedule/Effects.h"

#include <algorithm>

namespace ds::check {

Delays::Delays(const proto::Plan &plan) {
  std::map<uint32_t, uint32_t> gradients; // by value that is read of one
  for (const proto::ReferenceOp &op : plan.reference().ops()) {
    if (op.function() != "update")
      continue;
    if (op.op() == "train.read" && op.variables_size() == 1 && op.results_size() == 1 &&
        plan.variables(int(op.variables(0))).kind() == proto::Variable::GRADIENT)
      gradients[op.results(0)] = op.variables(0);
    if (isOptimizer(op))
      for (const uint32_t variable : op.variables())
        if (gradients_.contains(variable))
          throw Mismatch{titleOf(op) + " reads " + plan.variables(int(variable)).name() +
                         " behind the store of this step's gradient, and is said to be of the step before"};
    if (op.op() != "train.store" || op.variables_size() != 1 || op.operands_size() != 1)
      continue;
    const proto::Variable &stored = plan.variables(int(op.variables(0)));
    if (const auto read = gradients.find(op.operands(0));
        read != gradients.end() && stored.kind() == proto::Variable::OPTIMIZER && stored.has_of() &&
        plan.variables(int(read->second)).has_of() && plan.variables(int(read->second)).of() == stored.of())
      gradients_[op.variables(0)] = read->second;
  }
}

bool Delays::lieIn(const proto::Plan &plan, const proto::Buffer &buffer) const {
  if (buffer.has_variable())
    return gradients_.contains(buffer.variable());
  return buffer.has_bucket() &&
         std::ranges::any_of(plan.buckets(int(buffer.bucket())).members(),
                             [&](const proto::BucketMember &member) { return gradients_.contains(member.variable()); });
}

} // namespace ds::check
