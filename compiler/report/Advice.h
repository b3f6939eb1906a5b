//===- Advice.h - what takes a step's memory and time, and what would help -===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <string>
#include <string_view>
#include <vector>

namespace ds::report {

/// "activations hold the most, 18.4 MiB: a smaller ... needs less", of one space of a role.
std::string memoryAdvice(const plan::proto::Plan &plan, const plan::proto::Role &role, std::string_view space);

/// The rule of memoryAdvice without the bytes, which differ with the number of ranks.
std::string memoryRemedy(const plan::proto::Plan &plan, const plan::proto::Role &role, std::string_view space);

/// The setting that it names, "zero_optimization.stage=3"; empty where it names none.
std::string memorySetting(const plan::proto::Plan &plan, const plan::proto::Role &role, std::string_view space);

/// Whether deepstatic.recompute is "auto".
bool isRecomputeAuto(const plan::proto::Plan &plan);

/// "about 22.7 ms by the cost model": a step of the rank that takes longest, without its collectives; "": unknown.
std::string stepText(const plan::proto::Plan &plan);

/// "19 % more", of the matrix products of a step; "none".
std::string recomputeShare(const plan::proto::Plan &plan);

/// What would make a step need less, a sentence each: of its memory first, then of its time.
std::vector<std::string> adviceOf(const plan::proto::Plan &plan);

} // namespace ds::report
