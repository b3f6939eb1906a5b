//===- ModelFile.h - what an ONNX file says, read a second time -----------===//
#pragma once

#include "core/DType.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ds::sources {

/// A parameter or buffer, with its elements where they lie.
struct Tensor {
  std::optional<DType> dtype; ///< nothing: one that plans do not have
  std::vector<int64_t> shape;
  bool isHere = true; ///< else the model leaves it out: its elements come from a safetensors file, or are drawn
  std::string file;   ///< that holds the elements, a path; empty: `literal` does
  uint64_t offset = 0, length = 0;
  std::string literal; ///< little-endian
};

/// How a parameter that is left out is drawn: models/export.py's metadata deepstatic.init.
struct Drawn {
  std::string rule; ///< "zeros", "ones", "normal", "uniform"
  double mean = 0, deviation = 0;
};

struct GraphInput {
  std::optional<DType> dtype;
  std::vector<int64_t> shape;     ///< -1: symbolic
  std::vector<std::string> names; ///< of symbolic dimensions; "" of the others
  std::string tokens;             ///< "", "same", "next"
};

/// What the exporter says of a tensor.
struct TensorNote {
  std::string kind; ///< "PARAMETER", "BUFFER", or another one of torch.export's
  bool persistent = false;
};

/// What the model's forward makes of a buffer: models/export.py's metadata deepstatic.state.
struct MadeState {
  std::string value;  ///< of the graph
  std::string origin; ///< the node, input or tensor of which nodes that move or convert elements make it
};

struct ModelFile {
  std::string path;
  std::map<std::string, Tensor> tensors;    ///< by name
  std::map<std::string, GraphInput> inputs; ///< by name, without tensors
  std::set<std::string> outputs;
  std::set<std::string>
      parameters;             ///< of the module, by torch.export's signature; an optimizer may have rewritten them
  std::string className;      ///< of transformers, of the module that was exported; empty: unknown
  std::set<std::string> read; ///< names that nodes of the graph take
  std::optional<std::set<std::string>> trainable;
  std::map<std::string, std::set<std::string>> tied; ///< by name: its other names
  std::map<std::string, Drawn> drawn;
  std::map<std::string, TensorNote> notes;
  std::map<std::string, MadeState> state; ///< by buffer
  bool bringsAlgorithm = false;           ///< training_info
};

/// `path` is MODEL.onnx or its folder. Throws ds::Error.
ModelFile readModel(const std::string &path);

} // namespace ds::sources
