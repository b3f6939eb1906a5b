//===- CallRules.h - kernels' own checks of their calls -------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

namespace ds::check {

namespace proto = plan::proto;

/// Every kernel command is a call that its kernel takes, as ds-run finds when it loads the plan: operands, attributes,
/// types and shapes by the row of kernels/Kernels.inc and by what its kernel checks beyond that. Each operand is read
/// or written as the row says. Throws Mismatch, with the place.
void requireCalls(const proto::Plan &plan);

/// Every code that a command names is PTX that computes the command's program
/// (kernels/elementwise/elementwise_ptx.h). Throws Mismatch, with the place.
void requireCodes(const proto::Plan &plan);

} // namespace ds::check
