//===- TryPlan.h - a plan made to be compared with others -----------------===//
#pragma once

#include "compiler/driver/Compile.h"
#include "compiler/driver/StepTime.h"

#include <functional>
#include <optional>
#include <string>

namespace ds::driver {

/// Plans a request; throws ds::Error where there is no plan.
using Planner = std::function<CompileResult(const CompileRequest &)>;

struct TriedPlan {
  CompileResult result;
  std::optional<StepTime> time; ///< nothing where a link is unknown
  bool fits = false;            ///< into device and host memory, as far as the machine says
  bool fitsDevice = false;      ///< into device memory
};

/// Whatever the request is to print.
TriedPlan tryPlan(CompileRequest request, const Planner &plan);

/// "13 %", for messages.
std::string percent(double share);

} // namespace ds::driver
