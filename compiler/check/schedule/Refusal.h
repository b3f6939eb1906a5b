//===- Refusal.h - how the parts of the checker say no --------------------===//
#pragma once

#include <string>

namespace ds::check {

/// Thrown inside the checker; checkPlan turns it into a Finding.
struct Refusal {
  std::string rule, sentence;
  std::string note = {}; ///< the other place, where the sentence speaks of two
};

} // namespace ds::check
