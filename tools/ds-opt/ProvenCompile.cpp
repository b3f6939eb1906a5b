//===- ProvenCompile.cpp - no plan leaves without a proof -----------------===//
#include "tools/ds-opt/ProvenCompile.h"

#include "compiler/certify/Refusal.h"
#include "compiler/driver/Fault.h"
#include "compiler/driver/Runnable.h"
#include "core/Error.h"
#include "runtime/plan/format/PlanReader.h"

#include <memory>
#include <optional>
#include <string>

using namespace ds;
using namespace ds::tool;

void ds::tool::requireProven(const plan::proto::Plan &plan) {
  const auto fault = [&](const std::string &rule, const std::string &sentence) {
    return driver::CompilerFault(rule, "the plan that this compiler made is refused by the " + sentence,
                                 std::make_shared<const plan::proto::Plan>(plan));
  };
  try {
    plan::validatePlan(plan);
  } catch (const plan::TooLarge &) {
    throw;
  } catch (const Error &error) {
    throw fault("plan reader", std::string("plan reader: ") + error.what());
  }
  if (const std::optional<check::Finding> finding = certify::refusalOf(plan))
    throw fault(finding->rule, "checker (" + finding->rule + "): " + finding->sentence);
}

driver::CompileResult ds::tool::compileAndCheck(const driver::CompileRequest &request) {
  driver::CompileResult result = driver::compile(request);
  driver::requireRunnable(request, result.plan);
  request.progress("checking the plan");
  requireProven(result.plan);
  return result;
}
