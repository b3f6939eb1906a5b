//===- Tune.cpp - ds-run --tune -------------------------------------------===//
#include "tools/ds-run/Tune.h"

#include "core/DType.h"
#include "core/Error.h"
#include "core/Shape.h"
#include "runtime/device/cuda/GpuVerdicts.h"
#include "runtime/plan/format/PlanFile.h"
#include "runtime/plan/format/PlanReader.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plugins/LoadCuda.h"
#include "runtime/tuning/PlanTuning.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace ds::run {
namespace {

std::string milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", 1000 * seconds);
  return text;
}

/// "matmul of [1024, 768] and [768, 3072], bfloat16, 12 commands"
std::string nameOf(const runtime::TunedProduct &product) {
  const std::vector<kernels::TensorType> &operands = product.call.operands;
  const size_t count = product.commands.size();
  return product.call.kernel + " of " + toString(operands[0].shape) + " and " + toString(operands[1].shape) + ", " +
         std::string(name(operands[0].dtype)) + ", " + std::to_string(count) + (count == 1 ? " command" : " commands");
}

std::string verdictOf(const runtime::TunedProduct &product) {
  const std::vector<kernels::TunedCall::Trial> &trials = product.tuned.trials;
  if (trials.empty())
    return "cuBLASLt has no algorithm for it";
  const auto same = std::ranges::count_if(trials, &kernels::TunedCall::Trial::isSameBits);
  std::string text = milliseconds(product.secondsAfter()) + " ms, ";
  text += product.tuned.chosen == 0
              ? "by cuBLASLt's own choice"
              : "by another algorithm than cuBLASLt's own choice, which takes " + milliseconds(product.secondsBefore());
  if (same == 0)
    return text + "; its results are too few to tell whether others give the same bits";
  text += "; tried " + std::to_string(trials.size()) + ", of which " + std::to_string(same) + " give its bits";
  const auto fastest = std::ranges::min_element(trials, {}, &kernels::TunedCall::Trial::seconds);
  if (!fastest->isSameBits)
    text += ", and one of other bits takes " + milliseconds(fastest->seconds);
  return text;
}

void printSum(const std::string &planPath, const std::vector<runtime::TunedProduct> &products,
              const plan::proto::Plan &plan) {
  double before = 0, after = 0;
  for (const runtime::TunedProduct &product : products) {
    before += double(product.commands.size()) * product.secondsBefore();
    after += double(product.commands.size()) * product.secondsAfter();
  }
  const auto changed = std::ranges::count_if(
      products, [](const runtime::TunedProduct &product) { return !product.tuned.algorithm.empty(); });
  std::printf("%s: %zu of %zu products run another algorithm", planPath.c_str(), size_t(changed), products.size());
  if (changed > 0)
    std::printf(" where the GPU is %s and cuBLASLt is %s: %s ms for each command once, before %s",
                plan.tuning().gpu().c_str(), runtime::versionText(plan.tuning().cublaslt()).c_str(),
                milliseconds(after).c_str(), milliseconds(before).c_str());
  std::printf("\n");
}

} // namespace

void tune(const std::string &planPath) {
  plan::proto::Plan plan = plan::readPlan(planPath);
  if (plan.machine().device() != "cuda")
    throw Error(planPath + " is for device " + plan.machine().device() +
                ", and --tune chooses among the algorithms of cuBLASLt, which only plans for device cuda call");
  const std::string before = plan::framePlan(plan);
  const std::vector<runtime::TunedProduct> products =
      runtime::tunePlan(plan, runtime::loadCuda(), [](const runtime::TunedProduct &product) {
        std::printf("%s: %s\n", nameOf(product).c_str(), verdictOf(product).c_str());
        std::fflush(stdout);
      });
  printSum(planPath, products, plan);
  if (plan::framePlan(plan) == before)
    return;
  plan::writePlanFile(planPath, plan);
  std::fprintf(stderr,
               "note: a certificate that was made of it is of the plan as it was; ds-opt verify %s "
               "--certificate OUT makes another\n",
               planPath.c_str());
}

} // namespace ds::run
