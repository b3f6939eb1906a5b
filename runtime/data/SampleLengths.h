//===- SampleLengths.h - how long each sample is ---------------------------===//
#pragma once

#include "runtime/data/InputSpec.h"
#include "runtime/data/SafetensorsFile.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ds::runtime {

/// The sizes of a dimension that a plan has programs for.
struct Sizes {
  std::string dimension = {};      ///< "seq"
  std::vector<uint64_t> each = {}; ///< ascending; none: samples have one shape
};

/// One number for each sample of the files, in order: what their tensor `lengths` [samples] says; else behind the last
/// element of their tensor `attention_mask` [samples, width] that is not 0; else how long the tensor of the first input
/// is that has the dimension. Throws ds::Error for a sample that is longer than the tensors or than the largest size.
std::vector<uint32_t> sampleLengths(const std::vector<SafetensorsFile> &files, const std::vector<InputSpec> &inputs,
                                    const Sizes &sizes);

} // namespace ds::runtime
