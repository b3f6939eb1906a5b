//===- Refusal.cpp - whether a plan is refused by itself -------------------===//
#include "compiler/certify/Refusal.h"

#include "compiler/sources/OverflowRules.h"
#include "core/Error.h"

namespace ds::certify {

std::optional<check::Finding> refusalOf(const plan::proto::Plan &plan, check::Unknown *unknown) {
  try {
    sources::requireOverflowGuards(plan);
  } catch (const Error &error) {
    return check::Finding{"meaning", error.what(), {}, {}};
  }
  return check::checkPlan(plan, check::World::Closed, unknown);
}

} // namespace ds::certify
