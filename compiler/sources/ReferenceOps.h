//===- ReferenceOps.h - looking things up in a plan's reference program ---===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <string>
#include <string_view>
#include <vector>

namespace ds::sources {

const plan::proto::Attribute *attributeOf(const plan::proto::ReferenceOp &op, std::string_view name);

/// Of a number or a whole number; 0 where the op leaves it out, as it does with flags that are off.
double numberOf(const plan::proto::ReferenceOp &op, std::string_view name);

std::string textOf(const plan::proto::ReferenceOp &op, std::string_view name);

/// The ops of a name, such as "train.adamw", of all functions.
std::vector<const plan::proto::ReferenceOp *> opsOf(const plan::proto::Plan &plan, std::string_view name);

/// The op that makes a value, or null for what comes from outside.
const plan::proto::ReferenceOp *makerOf(const plan::proto::Plan &plan, uint32_t value);

} // namespace ds::sources
