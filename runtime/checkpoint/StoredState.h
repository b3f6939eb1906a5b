//===- StoredState.h - a checkpoint that a run resumes --------------------===//
#pragma once

#include "runtime/checkpoint/Manifest.h"
#include "runtime/data/SafetensorsFile.h"
#include "runtime/executor/VariableSources.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Placement.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace ds::runtime {

/// The values of a plan's state in the files of a checkpoint, which may be of any number of ranks, ZeRO stage and
/// number of pipeline stages. Of the files only those are looked at that these ranks take something from.
class StoredState {
public:
  /// Throws ds::Error for a checkpoint of another model or optimizer, and for files that are missing or damaged.
  StoredState(std::string folder, const Manifest &manifest, const plan::proto::Plan &plan,
              std::span<const uint32_t> ranks);

  const StoredVariables &variables() const { return variables_; }

private:
  /// Variables of the manifest by the plan's names.
  using ByName = std::map<std::string, const Manifest::Variable *>;

  ByName byPlanNames(const Manifest &manifest) const;
  void requireSameVariables(const ByName &stored) const;
  void add(const Manifest &manifest, const Manifest::Variable &there, uint32_t variable, uint64_t version,
           std::vector<plan::Run> wanted);
  const SafetensorsFile &open(const Manifest &manifest, const std::string &name);

  const std::string folder_;
  const plan::proto::Plan &plan_;
  std::map<std::string, SafetensorsFile> files_; // by name
  StoredVariables variables_;
};

} // namespace ds::runtime
