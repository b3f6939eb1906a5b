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
  std::optional<plan::proto::Plan> plan; // where they are refused: of what is left without what was refused, if any
  std::string refusal;                   // why; empty where they are not
  std::string tryLine;                   // what to add, where that would do
  std::vector<std::string> details;      // further reasons
  std::vector<plan::proto::ConfigAnswer> config{}; // every key that the user wrote
  std::vector<std::string> without{}, with{};      // a refused one's plan: keys left out, "KEY=VALUE" instead
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

/// "without wandb.enabled: fits, 23.8 GiB" of a refused case that has a plan; else empty.
std::string otherwiseOf(const FitCase &one);

/// How much a role lacks, of the first space that has too little; 0: all fits.
uint64_t lackingBytes(const plan::proto::Plan &plan);

/// The setting that makes less of what a plan that does not fit has most of, "zero_optimization.stage=3"; else empty.
std::string settingThatHelps(const plan::proto::Plan &plan);
/// The setting with which ranks share the most.
inline constexpr const char *mostSharing = "zero_optimization.stage=3";

/// What became of `first`, twice as many, and so on up to `most` ranks with some settings more, where nothing that was
/// asked for fits.
struct Trial {
  std::vector<std::string> sets{}; // "KEY=VALUE"
  uint64_t first = 0, most = 0;
  uint64_t ranks = 0; // the fewest of them that fit; 0: none do
};

/// Without what would help, which several counts of ranks may have in common.
std::string lackOf(const FitCase &one);
/// What would help where it does not fit; else empty.
std::string remedyOf(const FitCase &one);

/// What `ds-opt check` prints, as text or json. FitReport.cpp says what stands in the json.
std::string fitReport(const std::string &model, std::span<const FitCase> cases, std::span<const Trial> trials,
                      Format format);

} // namespace ds::report
