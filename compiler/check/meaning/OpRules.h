//===- OpRules.h - a kernel's attributes and operands are those of its op --===//
#pragma once

#include "runtime/plan/plan.pb.h"

namespace ds::check {

namespace proto = plan::proto;

/// Closed: an attribute is the op's, or off, or says which operands there are, or OpRules.cpp has a reason; and the
/// kernel has every attribute of the op but those that the shapes of the results say. Throws Mismatch.
void requireAttributes(const proto::Plan &plan, const proto::KernelCommand &kernel, const proto::ReferenceOp &op);

/// Operands of a kernel are those of its op, then its results, then perhaps a workspace. Each has the type of the
/// reference value and its shape; norms over rows see their operands as rows. Throws Mismatch.
void requireOperands(const proto::Plan &plan, const proto::KernelCommand &kernel, const proto::ReferenceOp &op);

} // namespace ds::check
