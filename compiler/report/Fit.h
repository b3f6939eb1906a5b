//===- Fit.h - whether what a plan needs is there --------------------------===//
#pragma once

#include "compiler/report/Report.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ds::report {

enum class Verdict { Fits, DoesNotFit, Rejected };
/// "fits", "does_not_fit", "rejected".
std::string_view name(Verdict verdict);

/// What became of a model and a configuration on a number of ranks.
struct FitCase {
  uint64_t ranks = 1;
  std::optional<plan::proto::Plan> plan; // nothing where they are refused, and why:
  std::string refusal;
  std::string tryLine;                             // what to add, where that would do
  std::vector<std::string> details;                // further reasons
  std::vector<plan::proto::ConfigAnswer> config{}; // every key that the user wrote
};

/// What the ranks of a role need of one space, beside what is there.
struct FitSpace {
  const plan::proto::Role *role;
  std::string_view space;
  uint64_t needed = 0; // arenas and, on the device, the machine's reserve
  uint64_t room = 0;   // 0: unknown
  bool fits() const { return room == 0 || needed <= room; }
};
/// Of the spaces in which a role has anything.
std::vector<FitSpace> fitSpaces(const plan::proto::Plan &plan);

/// Which role lacks how much of what, and what would help; empty where all fits.
std::string shortageOf(const plan::proto::Plan &plan);

Verdict verdictOf(const FitCase &one);
/// The worst of them.
Verdict verdictOf(std::span<const FitCase> cases);
/// Why it does not fit or is refused, and what would help; empty where it fits.
std::string reasonOf(const FitCase &one);

/// Without what would help, which several counts of ranks may have in common.
std::string lackOf(const FitCase &one);
/// What would help where it does not fit; else empty.
std::string remedyOf(const FitCase &one);

/// What `ds-opt check` prints, as text or json. FitReport.cpp says what stands in the json.
std::string fitReport(const std::string &model, std::span<const FitCase> cases, Format format);

} // namespace ds::report
