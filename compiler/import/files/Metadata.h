//===- Metadata.h - what exporters write beside the graph --------------------===//
#pragma once

#include "compiler/import/files/onnx.pb.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ds::import {

/// How a parameter is drawn at the start of training: models/export.py, "init".
struct InitialValue {
  enum class Rule { Zeros, Ones, Constant, Normal, Uniform };
  Rule rule = Rule::Zeros;
  double mean = 0, deviation = 0; // constant: mean; uniform: on mean +- sqrt(3) * deviation
};

/// What a file says about one of its values (InputSpec of torch.export's graph signature).
struct ValueNote {
  std::string kind; // PARAMETER, BUFFER, CONSTANT_TENSOR, USER_INPUT; empty: not said
  bool persistent = false;
};

/// What forward makes of a buffer, for the next forward to read.
struct CarriedState {
  std::string value; // the output of the graph
  bool kept = true;  // in an evaluation, which reads the old value where training reads the new one
};

struct Metadata {
  std::string modelName;                                   // deepstatic.model, empty if absent
  std::optional<std::set<std::string>> trainable;          // deepstatic.trainable
  std::map<std::string, std::vector<std::string>> aliases; // name -> the other names of a tied parameter
  std::map<std::string, InitialValue> initial;             // deepstatic.init
  std::map<std::string, std::string> tokens;               // input -> "same" or "next"
  std::map<std::string, CarriedState> state;               // deepstatic.state, by buffer
  std::set<std::string> modes;                             // deepstatic.modes: true in training, false in evaluation
  std::map<std::string, ValueNote> values;
  bool fromPyTorch = false;                        // written by one of its exporters
  std::set<std::string> mutatedBuffers;            // those that the module's forward writes
  std::map<std::string, std::string> placeholders; // what calls name a parameter -> its name in the module
  std::vector<std::string> parameterTargets; // every parameter of the module, also those that optimization removed
};

/// Throws Failure where a deepstatic.* entry is not what models/export.py writes.
Metadata readMetadata(const onnx::ModelProto &model);

using Entries = google::protobuf::RepeatedPtrField<onnx::StringStringEntryProto>;
/// The value of `key`, or null.
const std::string *findEntry(const Entries &entries, const std::string &key);

/// "h.0/attn" of name_scopes "['', 'h.0', 'h.0.attn', 'linear_3']": module scopes without the op instance at the end,
/// each without its parent's prefix. Empty where there are none.
std::string scopeOf(const onnx::NodeProto &node);

} // namespace ds::import
