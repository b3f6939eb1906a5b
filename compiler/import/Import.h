//===- Import.h - an ONNX training graph becomes the train dialect ---------===//
#pragma once

#include "core/AttachedLoss.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ds::import {

struct ImportOptions {
  /// MODEL.onnx, its folder, or the model in protobuf's text format (.textproto, .onnxtxt).
  std::string path;
  /// Symbolic dimension -> size; the micro-batch binds "batch".
  std::map<std::string, int64_t> dims;
  /// Inputs that are no data, but one number throughout: the first state of a stream, a rate of samples.
  std::map<std::string, double> constants;
  /// Regular expressions over the names of initializers: which are trained, and which are not.
  std::vector<std::string> trainable, frozen;
  /// Low-rank adapters, which ds-add-adapters puts in: a rank other than 0, and a regular expression over names of
  /// weights. What is trained is then not what the importer says.
  int64_t loraRank = 0;
  std::string loraTargets;
  /// What @forward returns: the loss, to train; or every output of the graph as it is, for what only runs the graph.
  enum class Results { Loss, Outputs };
  Results results = Results::Loss;
  /// The outputs that are the loss, and what each is multiplied by before they are added; none: the only float output
  /// of rank 0, or the one that is called "loss".
  std::vector<std::pair<std::string, double>> losses;
  /// A loss to put behind the logits; none: where the model has no loss, the one of its transformers class.
  std::optional<AttachedLoss> attach;
  /// A safetensors file that resolves what the model file leaves out; empty: none.
  std::string weights;
  /// What to do about Dropout whose training_mode the exporter lost: refuse; take it as written, which drops nothing;
  /// drop all the same; or drop nowhere in the model.
  enum class Dropout { Refuse, AsWritten, Force, Off };
  Dropout dropout = Dropout::Refuse;
  /// What to do about BatchNormalization in inference mode.
  enum class BatchNorm { Refuse, AsWritten, Train };
  BatchNorm batchNorm = BatchNorm::Refuse;
  /// Bytes of graph structure, weights aside, that are accepted; protobuf multiplies them by about five.
  uint64_t maxBytes = uint64_t(512) << 20;
  /// Filled, where it is not null, with a table of the model's floats: what each is for, and whether it is trained.
  std::string *parameters = nullptr;
  /// Distinct elements that one folded constant may have.
  int64_t maxConstantElements = int64_t(1) << 26;
};

/// The model as a module: one train.variable per parameter and buffer in use, `func.func @forward(inputs) -> loss`
/// (or all outputs), and the attribute `train.model_path`; where a loss was attached, its kind and the name of the
/// logits are the attributes `train.attached_loss` and `train.attached_logits`. Weights stay in their files. On failure
/// one error has gone through the context's DiagnosticEngine; never aborts, whatever the file holds.
mlir::OwningOpRef<mlir::ModuleOp> importModel(mlir::MLIRContext &context, const ImportOptions &options);

/// The same for a model that is in memory; `options.path` names the file that the bytes stand for.
mlir::OwningOpRef<mlir::ModuleOp> importModel(mlir::MLIRContext &context, const ImportOptions &options,
                                              std::span<const char> bytes);

} // namespace ds::import
