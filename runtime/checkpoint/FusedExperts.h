//===- FusedExperts.h - experts as transformers saves and computes them ---===//
//
// A folder holds each expert's matrices apart. The module, and so the graph, has those of a layer as one tensor:
//   gate_up_proj [experts, 2 x width, hidden]   expert e: its gate, then its up projection
//   down_proj    [experts, hidden, width]
// (transformers 5, conversion_mapping.py.) So what a folder calls one tensor is a run of elements of another.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ds::runtime {

struct ExpertPart {
  std::string tensor; ///< of the module: "model.layers.0.mlp.experts.gate_up_proj"
  uint64_t part = 0;  ///< which run of as many elements as the folder's tensor has: 2 e, 2 e + 1, or e
};

/// Of "model.layers.0.block_sparse_moe.experts.3.w1.weight" (Mixtral) or "....mlp.experts.3.gate_proj.weight" (Qwen,
/// OLMoE, DeepSeek); nothing for a name that is neither.
std::optional<ExpertPart> expertPart(const std::string &folderName);

/// The module's name of a router that the folder calls "....block_sparse_moe.gate.weight"; other names as they are.
std::string moduleName(std::string folderName);

} // namespace ds::runtime
