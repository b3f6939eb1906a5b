//===- LossFile.h - a loss that is a graph of its own ---------------------------===//
#pragma once

#include "compiler/import/files/onnx.pb.h"

#include <span>
#include <string>
#include <vector>

namespace ds::import {

/// What a model and the graph of its loss share.
struct JoinedLoss {
  std::string file;                        // as it was named; empty: there is none
  std::string prefix;                      // of the names of its nodes
  std::string value;                       // the scalar
  std::vector<onnx::ValueInfoProto> reads; // outputs of the model, as the file declares them

  bool has(const std::string &node) const { return !file.empty() && node.starts_with(prefix); }
};

/// Puts the graph behind the model as a call of a function, which has operator sets and names of its own. Its inputs
/// are outputs and inputs of the model, by name, and what is left is new data. Its initializers become constants.
/// `bytes` are those of the file, in which `loss` was parsed. Throws Failure where the two do not fit.
JoinedLoss joinLossFile(onnx::ModelProto &model, onnx::ModelProto loss, const std::string &path,
                        std::span<const char> bytes);

/// "'logits' [batch, 5]"
std::string describeValue(const onnx::ValueInfoProto &value);
/// "'logits' [batch, 5], 'hidden' [batch, 16]"
std::string describeValues(const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> &values);

} // namespace ds::import
