//===- Fault.h - what this compiler got wrong -----------------------------===//
//
// A plan that breaks a rule of the checker, or IR that breaks one of ours on the way, is a fault of the compiler,
// whatever the user gave it. It has an exit code of its own, a way round where one is found, and a file for a report.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/driver/Compile.h"
#include "core/Error.h"
#include "runtime/plan/plan.pb.h"

#include <functional>
#include <memory>
#include <string>

namespace ds::driver {

class CompilerFault : public Error {
public:
  /// `rule`: of the checker, or the phase that made wrong IR. `plan`: what was made, if there was a plan.
  CompilerFault(std::string rule, const std::string &sentence, std::shared_ptr<const plan::proto::Plan> plan = nullptr,
                std::string tryLine = {})
      : Error(sentence, std::move(tryLine)), rule(std::move(rule)), plan(std::move(plan)) {}

  std::string rule;
  std::shared_ptr<const plan::proto::Plan> plan;
};

/// Compiles a request to a plan and proves it. Throws CompilerFault, or another ds::Error for what cannot be met.
using ProvenCompile = std::function<CompileResult(const CompileRequest &)>;

/// Flags with which a request compiles that ends in a fault without them: passes to leave out, as few as possible, or
/// one key of the configuration. Empty where none are found, or not soon.
std::string findWayRound(const CompileRequest &request, const ProvenCompile &compile);

/// Compiles. Of a fault it throws another that says whose it is, what to leave out, and where the report lies, which is
/// written beside the request's output and over no other file. `commandLine`: for the report.
CompileResult compileProven(const CompileRequest &request, const std::string &commandLine,
                            const ProvenCompile &compile);

} // namespace ds::driver
