//===- ChooseRatio.cpp - how much optimizer state leaves device memory ----===//
#include "compiler/driver/ChooseRatio.h"

#include "dialects/Plan/Plan.h"

#include <sstream>
#include <string>
#include <string_view>
#include <utility>

using namespace ds;
using namespace ds::driver;

namespace {

constexpr std::string_view path = "zero_optimization.offload_optimizer.ratio";
constexpr double worthRatio = 0.01; // of a step
constexpr int parts = 10;           // of the state

std::string ratioJson(int leaves) {
  return leaves == parts ? "1.0" : leaves == 0 ? "0.0" : "0." + std::to_string(leaves);
}

CompileRequest withRatio(CompileRequest request, int leaves, const std::string &why) {
  request.overrides.offloadRatio =
      config::AutoValue{.path = std::string(path), .valueJson = ratioJson(leaves), .why = why};
  return request;
}

struct Choice {
  int leaves;
  CompileResult result; // a plan file's
  std::string why;
};

Choice choose(const CompileRequest &request, const Planner &plan) {
  TriedPlan all = tryPlan(withRatio(request, parts, ""), plan);
  if (!all.time)
    return {parts, std::move(all.result),
            "the machine file does not say how fast links are, so that nothing says how long a step takes"};
  if (!all.fitsDevice)
    return {parts, std::move(all.result), "even where all of it leaves, device memory is too small"};
  const double whole = all.time->step;
  double shortest = whole, waits = all.time->waits;
  Choice best{parts, std::move(all.result), "no step that fits into memory is a hundredth shorter"};
  for (int leaves = parts - 1; leaves >= 0 && waits > worthRatio * shortest; --leaves) {
    TriedPlan fewer = tryPlan(withRatio(request, leaves, ""), plan);
    if (!fewer.fits)
      break;
    waits = fewer.time->waits;
    if (fewer.time->step < (1 - worthRatio) * shortest) {
      shortest = fewer.time->step;
      best = {leaves, std::move(fewer.result),
              "a step is " + percent(1 - shortest / whole) + " shorter than where all of it leaves"};
    }
  }
  return best;
}

} // namespace

CompileResult ds::driver::compileWithRatio(const CompileRequest &request, const Planner &plan) {
  Choice choice = choose(request, plan);
  if (request.emit != Emit::PlanFile)
    return plan(withRatio(request, choice.leaves, choice.why));
  for (config::AutoValue &value : choice.result.autos)
    if (value.path == path)
      value.why = choice.why;
  return std::move(choice.result);
}

void ds::driver::noteRatio(mlir::ModuleOp planned, const config::Config &config) {
  if (config.offloadRatio == 1 || config.offloadRatioAuto)
    return;
  bool stays = false;
  planned.walk([&](plan::BufferOp buffer) { stays |= buffer.getStays(); });
  std::ostringstream ratio;
  ratio << config.offloadRatio;
  if (!stays)
    planned.emitRemark() << path << " is " << ratio.str() << ", but all of the state leaves: the smallest "
                         << (config.ranks > 1 ? "bucket has more than the rest of it; --set "
                                                "zero_optimization.reduce_bucket_size=N makes smaller ones"
                                              : "parameter has more than the rest of it");
}
