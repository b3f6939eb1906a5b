//===- Import.cpp - an ONNX training graph becomes the train dialect ---------===//
#include "compiler/import/Import.h"

#include "compiler/import/GraphImporter.h"
#include "compiler/import/Hazards.h"
#include "compiler/import/MatchWeights.h"
#include "compiler/import/OpTable.h"
#include "compiler/import/files/Failure.h"
#include "compiler/import/files/Files.h"
#include "core/HeapReserve.h"
#include "dialects/Train/Train.h"

#include "llvm/Support/JSON.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

using namespace mlir;

namespace ds::import {
namespace {

bool isText(const std::filesystem::path &path) {
  return path.extension() == ".textproto" || path.extension() == ".onnxtxt";
}

struct FirstError : google::protobuf::io::ErrorCollector {
  void AddError(int line, int column, const std::string &message) override {
    if (text.empty())
      text = "line " + std::to_string(line + 1) + ": " + message;
  }
  std::string text;
};

/// The text format, for models written by hand; their weights are literals.
ScannedModel parseText(std::span<const char> bytes, const std::string &name) {
  FirstError errors;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.AllowPartialMessage(true);
  parser.SetRecursionLimit(64);
  ScannedModel model;
  if (!parser.ParseFromString(std::string(bytes.data(), bytes.size()), &model.proto))
    throw Failure(name + " is no ONNX model in protobuf's text format: " + errors.text);
  if (!model.proto.has_graph())
    throw Failure(name + " holds no graph");
  model.data.resize(size_t(model.proto.graph().initializer_size()));
  return model;
}

std::set<std::string> namesOf(const onnx::GraphProto &graph) {
  std::set<std::string> names;
  for (const onnx::TensorProto &tensor : graph.initializer())
    names.insert(tensor.name());
  for (const onnx::ValueInfoProto &input : graph.input())
    names.insert(input.name());
  return names;
}

OwningOpRef<ModuleOp> importBytes(MLIRContext &context, const ImportOptions &options, std::span<const char> bytes) {
  const std::filesystem::path path = options.path;
  ScannedModel model = isText(path) ? parseText(bytes, "the file") : scanModel(bytes, options.maxBytes, "the file");
  const TrainingAlgorithm algorithm = joinTrainingInfo(model, options);
  FlatGraph graph = flatten(model.proto);
  checkStampedOpset(graph);
  WeightFiles files(path, bytes);
  if (!options.weights.empty())
    files.openSafetensors(options.weights);
  Metadata metadata = readMetadata(model.proto);
  const std::string matched =
      options.weights.empty() ? "" : matchWeights(model, graph, metadata, files, options.weights);
  std::set<std::string> tensors;
  for (const auto &[name, type] : files.safetensors())
    tensors.insert(name);
  const std::set<std::string> outside = validate(model.proto, graph, tensors);
  if (matched.empty()) {
    checkParametersIntact(model.proto, graph, metadata, namesOf(model.proto.graph()));
  } else {
    emitRemark(NameLoc::get(StringAttr::get(&context, options.path))) << matched;
    checkNotFolded(model.proto, graph, options.weights);
  }
  for (const std::string &name : sharedNormScales(graph))
    emitWarning(NameLoc::get(StringAttr::get(&context, options.path)))
        << "initializer '" << name
        << "' scales several LayerNormalization nodes; if the module has one scale each, the "
        << "exporter merged equal ones: export with optimize=False" << saysMore("optimized-export");
  OwningOpRef<ModuleOp> module =
      GraphImporter(context, options, model, graph, metadata, algorithm, files, outside).run();
  if (failed(verify(*module)))
    return {};
  return module;
}

/// One line of valid UTF-8, whatever the file's names hold.
std::string printable(std::string text) {
  for (char &c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      c = '?';
  return llvm::json::fixUTF8(text);
}

/// Turns a Failure into one error with notes.
template <typename Body> OwningOpRef<ModuleOp> guarded(MLIRContext &context, const ImportOptions &options, Body body) {
  reserveHeap(dialectBytes);
  context.loadDialect<train::TrainDialect, func::FuncDialect>();
  const Location location = NameLoc::get(StringAttr::get(&context, options.path));
  try {
    return body();
  } catch (const Failure &failure) {
    emitError(location) << printable(failure.what());
  } catch (const std::bad_alloc &) {
    emitError(location) << "the model needs more memory than there is";
  }
  return {};
}

} // namespace

OwningOpRef<ModuleOp> importModel(MLIRContext &context, const ImportOptions &options) {
  return guarded(context, options, [&] {
    ImportOptions resolved = options;
    resolved.path = modelFile(options.path).string();
    const std::shared_ptr<InputFile> file = InputFile::open(resolved.path);
    return importBytes(context, resolved, file->map());
  });
}

OwningOpRef<ModuleOp> importModel(MLIRContext &context, const ImportOptions &options, std::span<const char> bytes) {
  return guarded(context, options, [&] { return importBytes(context, options, bytes); });
}

} // namespace ds::import
