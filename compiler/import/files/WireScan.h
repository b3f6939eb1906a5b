//===- WireScan.h - a model's structure without its weights -----------------===//
#pragma once

#include "compiler/import/files/onnx.pb.h"

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace ds::import {

/// The elements of one initializer where they lie in the model file, little-endian and row-major.
struct InlineData {
  uint64_t offset = 0, length = 0; // bytes
  int field = 0;                   // of TensorProto: raw_data 9, packed float_data 4 or double_data 10
};

struct ScannedModel {
  onnx::ModelProto proto;                      // initializers of the graph without what `data` points to
  std::vector<std::optional<InlineData>> data; // one entry per initializer of the graph
  std::set<std::string> constants;             // initializers that are Constant nodes in the file
  std::set<std::string> ofBodies;              // initializers of the bodies of control flow there
  std::set<std::string> merged;                // initializers that are Identity nodes of another there
};

/// Reads the protobuf wire format of a ModelProto down to the graph's initializers (Model.7, Graph.5, Tensor.9), skips
/// over their elements and has protobuf parse the rest: files of any size, weights never copied. A Constant node of
/// many floats, as some exporters write weights, is an initializer of the same name. Throws Failure where the bytes are
/// no such message or the structure passes `maxBytes`.
ScannedModel scanModel(std::span<const char> bytes, uint64_t maxBytes, const std::string &name);

} // namespace ds::import
