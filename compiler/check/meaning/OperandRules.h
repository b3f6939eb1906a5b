//===- OperandRules.h - a kernel's operands are those of its op -----------===//
#pragma once

#include "runtime/plan/plan.pb.h"

namespace ds::check {

namespace proto = plan::proto;

/// Operands of a kernel are those of its op, then its results, then perhaps a workspace; each is read or written as it
/// should be, has the type of the reference value, and its shape or one of the views that OperandRules.cpp names.
/// Throws Mismatch.
void requireOperands(const proto::Plan &plan, const proto::KernelCommand &kernel, const proto::ReferenceOp &op);

} // namespace ds::check
