//===- HuggingFaceFolder.h - a folder that transformers loads -------------===//
#pragma once

#include "runtime/checkpoint/SavedWeights.h"

#include <string>
#include <vector>

namespace ds::runtime {

/// Writes the folder `out` as `like` is, with the values of `weights`: the same files of weights with the same names,
/// types and index, and a copy of configuration and tokenizer. The folder appears whole or not at all. Returns
/// sentences that people should know. Throws ds::Error, also for a weight that `like` has no place for.
/// Low-rank adapters are merged into the weights that they add to.
std::vector<std::string> writeHuggingFaceFolder(const SavedWeights &weights, const std::string &like,
                                                const std::string &out);

/// Writes the folder `out` with the adapters of `weights` alone, as peft loads it beside the model of the folder
/// `like`. Throws ds::Error also where there are none, or where more than adapters was trained.
std::vector<std::string> writeAdapterFolder(const SavedWeights &weights, const std::string &like,
                                            const std::string &out);

} // namespace ds::runtime
