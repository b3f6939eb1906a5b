//===- ProvenCompile.h - no plan leaves without a proof -------------------===//
#pragma once

#include "compiler/driver/Compile.h"
#include "runtime/plan/plan.pb.h"

namespace ds::tool {

/// Proves a plan of ours. A rule that it breaks is a driver::CompilerFault; a limit of all plans is plan::TooLarge,
/// which is no fault.
void requireProven(const plan::proto::Plan &plan);

/// Compiles to a plan that can run and is proven.
driver::CompileResult compileAndCheck(const driver::CompileRequest &request);

} // namespace ds::tool
