//===- PartitionMethod.h - what a user wants stages to share evenly -------===//
#pragma once

#include "compiler/scheduling/PipelinePartition.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ds::scheduling {

/// DeepSpeed's `partition`, by name: "best" (time), "uniform" (as many layers in each stage), "parameters" (as many
/// bytes of them), "type:REGEX" (as many layers whose name matches).
struct PartitionMethod {
  enum class Kind { Best, Uniform, Parameters, Type };
  Kind kind = Kind::Best;
  std::string pattern; // Type: the expression

  static std::optional<PartitionMethod> fromName(std::string_view name);
};

/// By unit, the weight whose sums the stages of `problem` are to share evenly; to be put in place of its seconds, with
/// no time for bytes. `parameterBytes` is by unit, for Parameters. `layers` is by unit, for Type: the matching layer
/// that the unit belongs to, or empty. All zeros if there is nothing to share.
std::vector<double> weightsToBalance(PartitionMethod::Kind kind, const PartitionProblem &problem,
                                     std::span<const int64_t> parameterBytes, std::span<const std::string> layers);

/// Positions where the layers of a model begin, 0 among them: what lies between two positions that send few bytes, a
/// repeated block being one layer.
std::vector<int64_t> layerBegins(const PartitionProblem &problem);

/// The same, whatever the stages. How far apart layers lie decides which positions are compared, and the layers say how
/// far: what logits are made of is narrower than a residual stream in f32, and must not hide the layers far in front.
std::vector<int64_t> layerBeginsOfModel(PartitionProblem problem);

} // namespace ds::scheduling
