//===- Refusal.h - how the parts of the checker say no --------------------===//
#pragma once

#include "runtime/plan/run/CommandName.h"

#include <string>
#include <vector>

namespace ds::check {

/// Thrown inside the checker; checkPlan turns it into a Finding.
struct Refusal {
  std::string rule, sentence;
  std::string note = {};                       ///< the other place, where the sentence speaks of two
  std::string place = {};                      ///< that the sentence begins with; empty: it speaks of the whole plan
  std::vector<plan::CommandPlace> places = {}; ///< the same for pictures; then the other, where there is one
};

} // namespace ds::check
