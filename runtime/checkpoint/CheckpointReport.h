//===- CheckpointReport.h - what lies in a folder of checkpoints ----------===//
#pragma once

#include <string>
#include <vector>

namespace ds::runtime {

/// A table for people: step, when it was written, bytes, layout, whether all files are there in their size. `folder` is
/// that of --save, or one checkpoint. Throws ds::Error where there is nothing that looks like a checkpoint.
std::string checkpointTable(const std::string &folder);

struct Verification {
  std::string text;                 ///< a line for each file
  std::vector<std::string> damages; ///< a sentence each
};

/// Compares every file with the SHA-256 in its manifest. Throws ds::Error where there is nothing to compare.
Verification verifyCheckpoints(const std::string &folder);

} // namespace ds::runtime
