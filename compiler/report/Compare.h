//===- Compare.h - what two plans decide otherwise -------------------------===//
#pragma once

#include "compiler/report/Report.h"
#include "runtime/plan/plan.pb.h"

#include <string>
#include <vector>

namespace ds::report {

/// One decision that two plans take in different ways.
struct Change {
  // "numerics", "world", "configuration", "pipeline", "ownership", "memory", "wire bytes", "collectives", "commands"
  std::string section;
  std::string what; // "zero_optimization.stage", "role main, device: arena"
  std::string before, after;
};

/// What changes from one plan to another of the same model, in the order of the sections. Throws ds::Error for plans of
/// different models or format versions.
std::vector<Change> compare(const plan::proto::Plan &before, const plan::proto::Plan &after);

/// What `ds-opt diff` prints. The json: {"format": 1, "a", "b", "equal": whether nothing differs, "changes":
/// [{"section", "what", "a", "b"}]}.
std::string diffReport(const plan::proto::Plan &a, const std::string &nameA, const plan::proto::Plan &b,
                       const std::string &nameB, Format format);

} // namespace ds::report
