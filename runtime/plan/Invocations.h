//===- Invocations.h - the calls of a plan's kernel commands ----------------===//
#pragma once

#include "kernels/KernelRegistry.h"

namespace ds::plan::proto {
class KernelCommand;
}

namespace ds::plan {

/// What is static about a kernel's call, as its factory and the kernels' table take it. The plan is a checked one.
kernels::Invocation invocationOf(const proto::KernelCommand &kernel);

} // namespace ds::plan
