//===- AttributeRules.h - a kernel's attributes are those of its op -------===//
#pragma once

#include "runtime/plan/plan.pb.h"

namespace ds::check {

namespace proto = plan::proto;

/// Closed: an attribute is the op's, or stands in AttributeRules.cpp's list of those that ops do not have, with a
/// reason; and the kernel has every attribute of the op but those that the shapes of the results say. Throws Mismatch.
void requireAttributes(const proto::Plan &plan, const proto::KernelCommand &kernel, const proto::ReferenceOp &op);

} // namespace ds::check
