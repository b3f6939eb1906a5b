//===- Checkpoint.h - ds-run checkpoint and ds-run export -----------------===//
#pragma once

#include "tools/ds-run/Arguments.h"

namespace ds::run {

/// ds-run checkpoint ls|verify|convert. Convert does not return where it succeeds: models/from_deepspeed.py takes the
/// process's place, since PyTorch is what reads PyTorch's files. Throws ds::Error, also for a damaged checkpoint.
void checkpoint(const CheckpointArguments &arguments);

/// ds-run export: weights of a checkpoint as one file, or as a folder for transformers. Throws ds::Error.
void exportWeights(const ExportArguments &arguments);

} // namespace ds::run
