//===- Checkpoint.h - ds-run checkpoint and ds-run export -----------------===//
#pragma once

#include "tools/ds-run/Arguments.h"

namespace ds::run {

/// ds-run checkpoint ls|verify|convert. Files of DeepSpeed are converted by models/from_deepspeed.py, since PyTorch is
/// what reads PyTorch's files. Returns the exit code. Throws ds::Error, also for a damaged checkpoint.
int checkpoint(const CheckpointArguments &arguments);

/// ds-run export: weights of a checkpoint as one file, as a folder for transformers, or by models/to_onnx.py as an ONNX
/// file. Returns the exit code. Throws ds::Error.
int exportWeights(const ExportArguments &arguments);

} // namespace ds::run
