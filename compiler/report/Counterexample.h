//===- Counterexample.h - a refused plan as a timeline --------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"
#include "runtime/plan/run/CommandName.h"

#include <string>
#include <vector>

namespace ds::report {

/// What the checker says of a plan that it refuses.
struct Counterexample {
  std::string rule, sentence;
  /// The command that breaks the rule; and the other, where the rule is about two.
  std::vector<plan::CommandPlace> places;
};

/// A section of the page: the sentence, and the queues of the roles that it is about with the commands around both
/// places, in the order in which they are issued. Between the two runs, in red, the arrow that is missing: that one
/// waits for the other.
std::string counterexampleHtml(const plan::proto::Plan &plan, const Counterexample &counterexample);

} // namespace ds::report
