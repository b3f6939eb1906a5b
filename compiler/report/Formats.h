//===- Formats.h - one function a format ----------------------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <string>

namespace ds::report {

/// Both want a plan that validatePlan() accepts.
std::string jsonReport(const plan::proto::Plan &plan, bool allRanks); // JsonReport.cpp
std::string textReport(const plan::proto::Plan &plan);                // TextReport.cpp

} // namespace ds::report
