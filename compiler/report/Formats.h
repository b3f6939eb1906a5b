//===- Formats.h - one function a format ----------------------------------===//
#pragma once

#include "compiler/report/Counterexample.h"
#include "compiler/report/movement/MovedBytes.h"
#include "runtime/plan/plan.pb.h"

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace ds::report {

/// All want a plan that validatePlan() accepts.
std::string jsonReport(const plan::proto::Plan &plan, bool allRanks); // JsonReport.cpp
std::string textReport(const plan::proto::Plan &plan);                // TextReport.cpp
std::string perfettoReport(const plan::proto::Plan &plan);            // PerfettoReport.cpp
std::string htmlReport(const plan::proto::Plan &plan, bool allRanks,
                       const std::optional<Counterexample> &refused); // HtmlReport.cpp

/// {"path", "value", "status", "note"} of a configuration key.
nlohmann::ordered_json answerJson(const plan::proto::ConfigAnswer &answer); // JsonReport.cpp

/// "movement" of JsonReport.cpp.
nlohmann::ordered_json movementJson(const plan::proto::Plan &plan, const plan::proto::Role &role,
                                    const MovedBytes &moved); // JsonReport.cpp

} // namespace ds::report
