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

/// How many parts are to leave, and why.
std::pair<int, std::string> choose(const CompileRequest &request, const Planner &plan) {
  const TriedPlan all = tryPlan(withRatio(request, parts, ""), plan);
  if (!all.time)
    return {parts, "the machine file does not say how fast links are, so that nothing says how long a step takes"};
  std::pair<int, double> best{parts, all.time->step};
  double waits = all.time->waits;
  for (int leaves = parts - 1; leaves >= 0 && waits > worthRatio * best.second; --leaves) {
    const TriedPlan fewer = tryPlan(withRatio(request, leaves, ""), plan);
    if (!fewer.fits)
      break;
    waits = fewer.time->waits;
    if (fewer.time->step < (1 - worthRatio) * best.second)
      best = {leaves, fewer.time->step};
  }
  const double gain = 1 - best.second / all.time->step;
  return {best.first, best.first == parts ? "no step that fits into memory is a hundredth shorter"
                                          : "a step is " + percent(gain) + " shorter than where all of it leaves"};
}

} // namespace

CompileResult ds::driver::compileWithRatio(const CompileRequest &request, const Planner &plan) {
  const auto [leaves, why] = choose(request, plan);
  return plan(withRatio(request, leaves, why));
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
