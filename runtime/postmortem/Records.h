//===- Records.h - the flight records of a run ----------------------------===//
#pragma once

#include "runtime/flight/FlightFile.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ds::runtime {

struct RankRecord {
  std::optional<FlightFile> file; ///< its indices are the plan's
  std::string trouble;            ///< why there is a file but none to use; empty: there is no file at all
};

/// Of one run: the one that wrote last, where a folder has files of several.
struct Records {
  std::vector<RankRecord> ranks;  ///< by rank
  std::vector<std::string> notes; ///< about files that are not used, a sentence each

  /// The first failure, or empty.
  std::string error() const;
};

/// Reads flight-*.json of a folder. A file that is damaged, or of an earlier run, is noted and its rank goes without.
/// Throws ds::Error where nothing is left, or all is of another plan.
Records readRecords(const std::string &folder, const plan::proto::Plan &plan);

} // namespace ds::runtime
