//===- Postmortem.h - ds-run postmortem -----------------------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"
#include "runtime/postmortem/Records.h"

#include <string>

namespace ds::runtime {

/// One paragraph: who held up the run, who waited for it where, and what to look at; then a table of all ranks.
std::string postmortemText(const plan::proto::Plan &plan, const Records &records);

} // namespace ds::runtime
