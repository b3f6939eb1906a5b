//===- Invocations.h - the calls of a plan's kernel commands ----------------===//
#pragma once

#include "kernels/KernelRegistry.h"

#include <cstdint>

namespace ds::plan::proto {
class KernelCommand;
class Plan;
} // namespace ds::plan::proto

namespace ds::plan {

/// What is static about a kernel's call, as the kernels' table takes it. The plan is a checked one.
kernels::Invocation invocationOf(const proto::KernelCommand &kernel);

/// The same with the code and the algorithm that the plan has for it, and attributes with the steps of a rank, as the
/// kernel's factory takes them. `plan` outlives the result.
kernels::Invocation invocationOf(const proto::Plan &plan, const proto::KernelCommand &kernel, uint32_t rank);

} // namespace ds::plan
