//===- Hazards.h - what an exporter lost without a word -------------------------===//
#pragma once

#include "compiler/import/Flatten.h"
#include "compiler/import/files/Metadata.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ds::import {

/// The end of a sentence that refuses a hazard of the exporter; `id` is of compiler/certify/Explain.cpp.
std::string saysMore(const std::string &id);

/// Whether torch.onnx.export's optimizer was at work (optimize=True, its default).
bool isOptimized(const onnx::ModelProto &model, const FlatGraph &graph);

/// Refuses a model that the exporter optimized and that lacks parameters of its module. `known` are the names of its
/// initializers and inputs.
void checkParametersIntact(const onnx::ModelProto &model, const FlatGraph &graph, const Metadata &metadata,
                           const std::set<std::string> &known);

/// The positional arguments and keywords of the call that a node came from, e.g. {"%q", "None", "0.1"} and
/// {{"scale", "0.35"}}, from its fx_node entry; empty where it has none.
struct FxCall {
  std::string target;
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> keywords;
};
FxCall fxCallOf(const onnx::NodeProto &node);

/// The label smoothing of the call that a loss node came from; 0 where it had none or does not say.
double lostLabelSmoothing(const onnx::NodeProto &node);

/// Whether a BatchNormalization node in inference mode came from a module in training mode, which updates its
/// statistics.
bool lostBatchNormTraining(const onnx::NodeProto &node, const Metadata &metadata);

/// Refuses buffers that forward changes and the loss reads, which a plan would keep at their first values: it carries
/// the statistics of batch normalizations, and what deepstatic.state names. `needed` are the names that the loss
/// depends on.
void checkStateIsCarried(const FlatGraph &graph, const Metadata &metadata, const std::set<std::string> &needed);

/// The padding_idx of the embedding that a Gather node came from, at which PyTorch adds no gradient and ONNX cannot say
/// so; nothing where it had none or does not say.
std::optional<int64_t> paddingIndexOf(const onnx::NodeProto &node);

/// Whether a node came from a call of torch.ops.aten or prims whose name begins like `name`: "detach" is detach_, too.
bool cameFrom(const onnx::NodeProto &node, std::string_view name);

/// What PyTorch knows of gradients and this file cannot say; empty for a file of models/export.py, which compared them,
/// and for one that is not PyTorch's.
std::string whatIsNotSaid(const onnx::ModelProto &model, const FlatGraph &graph, const Metadata &metadata);

/// Whether an input or output holds keys, values or states of earlier tokens, which generation keeps and training does
/// not need.
bool isCacheName(const std::string &name);

/// Initializers that several LayerNormalization nodes scale by: equal ones were perhaps merged.
std::vector<std::string> sharedNormScales(const FlatGraph &graph);

} // namespace ds::import
