//===- PlanReader.h - from a file to a plan that can be trusted -----------===//
//
// Everything that later code uses without looking is checked here, once: indices, enums, shapes and their products,
// bounds within buffers, arenas and files, alignment, names, and that a run of each program comes to its end. What it
// does not do: prove that reads follow their writes and that buffers alive at once do not overlap; that is the
// checker's.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/Error.h"
#include "runtime/plan/plan.pb.h"

#include <string>

namespace ds::plan {

/// A plan passes a limit that all plans have, which a right plan of a very large model may do.
class TooLarge : public Error {
public:
  using Error::Error;
};

/// Reads and validates a plan file; throws ds::Error that begins with the path.
proto::Plan readPlan(const std::string &path);

/// Throws ds::Error, one sentence, for the first rule that the plan breaks: TooLarge where it is a limit.
void validatePlan(const proto::Plan &plan);

} // namespace ds::plan
