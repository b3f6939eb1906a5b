//===- Report.h - what a plan decides, for people and scripts -------------===//
#pragma once

#include "compiler/report/Counterexample.h"
#include "runtime/plan/plan.pb.h"

#include <optional>
#include <string>
#include <string_view>

namespace ds::report {

enum class Format { Text, Json, Html, Perfetto };

/// "text", "json", "html" or "perfetto". Throws ds::Error.
Format formatFromName(std::string_view name);

struct Options {
  Format format = Format::Text;
  bool allRanks = false; // json: every rank, also above 16; html: a picture of every role, also above 8
  std::optional<Counterexample> refused = std::nullopt; // html: what the checker says of it
};

/// The report of a plan; the same plan gives the same bytes. Throws ds::Error for a plan that breaks its format's rules
/// and, as a timeline, for one whose copies take nobody knows how long.
std::string report(const plan::proto::Plan &plan, const Options &options = {});

} // namespace ds::report
