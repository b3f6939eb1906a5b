//===- PlanTuning.h - the fastest algorithms for the products of a plan ---===//
#pragma once

#include "kernels/KernelRegistry.h"
#include "kernels/TunedCall.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plugins/CudaLibrary.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ds::runtime {

/// A product of a plan, and what the GPU said of it.
struct TunedProduct {
  kernels::Invocation call;
  std::vector<plan::proto::KernelCommand *> commands; ///< of all roles and sizes, that are this call
  kernels::TunedCall tuned;

  double secondsBefore() const { return tuned.trials.empty() ? 0 : tuned.trials[0].seconds; } ///< of one call
  double secondsAfter() const { return tuned.trials.empty() ? 0 : tuned.trials[tuned.chosen].seconds; }
};

/// Different products of the plan in the order of their first commands. They point into the plan.
std::vector<TunedProduct> productsOf(plan::proto::Plan &plan);

/// Tunes each product on the first GPU and writes into the plan what was found, in place of what an older tuning did.
/// `found` hears of each product as it is done. Throws ds::Error where the plan is for no GPU or there is none.
std::vector<TunedProduct> tunePlan(plan::proto::Plan &plan, const CudaLibrary &cuda,
                                   const std::function<void(const TunedProduct &)> &found);

} // namespace ds::runtime
