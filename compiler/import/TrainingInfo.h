//===- TrainingInfo.h - a training algorithm that the model file brings ------===//
#pragma once

#include "compiler/import/Import.h"
#include "compiler/import/files/Metadata.h"
#include "compiler/import/files/WireScan.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace ds::import {

/// What ModelProto.training_info says besides the nodes of its algorithm.
struct TrainingAlgorithm {
  bool present = false;
  /// Initializer -> the value that it takes at the end of a step, in the file's order.
  std::vector<std::pair<std::string, std::string>> updates;
  /// What the forward graph reads: of what is updated, these are parameters, the rest is the algorithm's state.
  std::set<std::string> readForward;
  /// Initializers that the initialization draws anew.
  std::map<std::string, InitialValue> drawn;

  bool updatesVariable(const std::string &name) const {
    for (const auto &[variable, value] : updates)
      if (variable == name)
        return true;
    return false;
  }
};

/// Appends the algorithm's nodes, initializers, inputs and outputs to the model's graph, which a training step runs
/// from end to end, and gives initializers the values that the initialization binds. Throws Failure where a rule of
/// ONNX's TrainingInfoProto is broken. Does nothing to a model without training_info.
TrainingAlgorithm joinTrainingInfo(ScannedModel &model, const ImportOptions &options);

} // namespace ds::import
