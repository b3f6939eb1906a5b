//===- Import.cpp - an ONNX training graph becomes the train dialect ---------===//
#include "compiler/import/Import.h"

#include "compiler/import/GraphImporter.h"
#include "compiler/import/Hazards.h"
#include "compiler/import/Initializers.h"
#include "compiler/import/LossFile.h"
#include "compiler/import/MatchWeights.h"
#include "compiler/import/OpTable.h"
#include "compiler/import/files/Failure.h"
#include "compiler/import/files/Files.h"
#include "core/HeapReserve.h"
#include "dialects/Train/Train.h"

#include "llvm/Support/JSON.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cctype>
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

std::string separatedText(const std::set<std::string> &names) {
  return std::to_string(names.size()) +
         " parameters had the values of others when the file was written, which has them once; each is a parameter of "
         "its own: " +
         firstNames({names.begin(), names.end()});
}

/// Names what exporters leave without a name, as "?", "" or -1, and names that are no symbols, as
/// "p2o.DynamicDimension.0": dimension 0 of an input is the batch, others get the input's name and their number.
void nameDims(onnx::GraphProto &graph) {
  std::set<std::string> initializers;
  for (const onnx::TensorProto &tensor : graph.initializer())
    initializers.insert(tensor.name());
  const auto isWord = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (onnx::ValueInfoProto &input : *graph.mutable_input()) {
    if (initializers.count(input.name()) || !input.type().has_tensor_type() || !input.type().tensor_type().has_shape())
      continue;
    auto &dims = *input.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim();
    for (int d = 0; d < dims.size(); ++d) {
      std::string name = dims[d].dim_param();
      const bool isUnnamed = dims[d].has_dim_value() ? dims[d].dim_value() < 0 : name.empty() || name == "?";
      const bool hasDots =
          name.find('.') != std::string::npos && llvm::all_of(name, [&](char c) { return isWord(c) || c == '.'; });
      if (!isUnnamed && !hasDots)
        continue;
      name = isUnnamed ? input.name() + "_" + std::to_string(d) : name;
      std::ranges::replace_if(name, [&](char c) { return !isWord(c); }, '_');
      dims[d].clear_dim_value();
      dims[d].set_dim_param(isUnnamed && d == 0 ? "batch" : name);
    }
  }
}

/// "onnx::MatMul_123" is what PyTorch's older exporter calls a weight that it computed from others while it folded
/// constants: transposed, or a convolution's with its batch normalization.
std::string foldedText(const std::map<std::string, Role> &roles, const Metadata &metadata, const WeightFiles &files,
                       const std::string &weights) {
  std::vector<std::string> folded, absent;
  for (const auto &[name, role] : roles)
    if (role.learned && name.starts_with("onnx::") && !metadata.values.count(name))
      folded.push_back("'" + name + "'");
  if (folded.empty())
    return "";
  std::string text = std::to_string(folded.size()) + " weights have lost their names, since the exporter folded " +
                     "constants into them, and train as they stand: " + firstNames(folded);
  for (const auto &[name, type] : files.safetensors())
    if (!metadata.values.count(name) && !roles.count(name))
      absent.push_back("'" + name + "'");
  if (weights.empty())
    text += "; --weights FOLDER gives those their names that were only transposed";
  else if (!absent.empty())
    text += "; of " + weights + " the graph has not: " + firstNames(absent);
  return text + saysMore("folded-constants");
}

/// The whole file: a loss is small.
onnx::ModelProto readLoss(const std::string &path, std::span<const char> bytes, uint64_t most) {
  if (isText(path))
    return parseText(bytes, path).proto;
  onnx::ModelProto proto;
  if (bytes.size() > most || !proto.ParseFromArray(bytes.data(), int(bytes.size())) || !proto.has_graph())
    throw Failure("the loss " + path + " is no ONNX model; write it with torch.onnx.export(loss, example, FILE)");
  return proto;
}

/// Of --attach-loss FILE; the options then name its output as the loss.
JoinedLoss joinLoss(ScannedModel &model, ImportOptions &options) {
  if (!options.attach || options.attach->file.empty())
    return {};
  const std::string path = options.attach->file;
  if (!options.losses.empty())
    throw Failure("--loss '" + options.losses[0].first + "' takes a loss of the model, and a loss is attached, too (" +
                  path + "); leave one of them out");
  const std::shared_ptr<InputFile> file = InputFile::open(path);
  const JoinedLoss joined = joinLossFile(model.proto, readLoss(path, file->map(), options.maxBytes), path, file->map());
  options.losses = {{joined.value, 1}};
  options.attach.reset();
  return joined;
}

OwningOpRef<ModuleOp> importBytes(MLIRContext &context, const ImportOptions &given, std::span<const char> bytes) {
  ImportOptions options = given;
  const std::filesystem::path path = options.path;
  ScannedModel model = isText(path) ? parseText(bytes, "the file") : scanModel(bytes, options.maxBytes, "the file");
  const TrainingAlgorithm algorithm = joinTrainingInfo(model, options);
  const JoinedLoss loss = joinLoss(model, options);
  nameDims(*model.proto.mutable_graph());
  Metadata metadata = readMetadata(model.proto); // of the exporter; what --weights tells is added
  const bool onlyRuns = options.results == ImportOptions::Results::Outputs && !options.parameters;
  const bool told = !metadata.values.empty() || metadata.trainable || algorithm.present || onlyRuns;
  const bool constantsLearn = !told && hasWeightsInConstants(model, metadata);
  if (!told)
    liftFromBodies(model, constantsLearn);
  FlatGraph graph = flatten(model.proto);
  checkStampedOpset(graph);
  WeightFiles files(path, bytes);
  if (!options.weights.empty())
    files.openSafetensors(options.weights);
  if (constantsLearn)
    liftConstants(model, graph, loss);
  if (!told)
    separateMerged(model, graph, metadata);
  const std::string matched =
      options.weights.empty() ? "" : matchWeights(model, graph, metadata, files, options.weights);
  std::set<std::string> tensors;
  for (const auto &[name, type] : files.safetensors())
    tensors.insert(name);
  const std::set<std::string> outside = validate(model.proto, graph, tensors);
  if (matched.empty())
    checkParametersIntact(model.proto, graph, metadata, namesOf(model.proto.graph()));
  else
    emitRemark(NameLoc::get(StringAttr::get(&context, options.path))) << matched;
  if (!told && matched.empty())
    for (const std::string &table : joinTransposedCopies(model, graph, files))
      emitRemark(NameLoc::get(StringAttr::get(&context, options.path)))
          << "the head has a transposed copy of '" << table << "', so the two are one parameter";
  if (!model.merged.empty())
    emitRemark(NameLoc::get(StringAttr::get(&context, options.path))) << separatedText(model.merged);
  std::map<std::string, Role> roles;
  if (told)
    for (const std::string &name : sharedNormScales(graph))
      emitWarning(NameLoc::get(StringAttr::get(&context, options.path)))
          << "initializer '" << name
          << "' scales several LayerNormalization nodes; if the module has one scale each, the "
          << "exporter merged equal ones: export with optimize=False" << saysMore("optimized-export");
  else
    roles = rolesOf(model, graph, files, metadata.fromPyTorch, constantsLearn);
  if (const std::string note = foldedText(roles, metadata, files, options.weights); !note.empty())
    emitRemark(NameLoc::get(StringAttr::get(&context, options.path))) << note;
  GraphImporter importer(context, options, model, graph, metadata, algorithm, files, outside, roles, loss);
  OwningOpRef<ModuleOp> module;
  if (importer.fixesBatchAtOne()) {
    ImportOptions one = options;
    one.dims["batch"] = 1;
    GraphImporter::Shapes shapes;
    GraphImporter asWritten(context, one, model, graph, metadata, algorithm, files, outside, roles, loss);
    asWritten.keepShapes(shapes);
    {
      const ScopedDiagnosticHandler saidOnce(&context, [](Diagnostic &) { return success(); });
      asWritten.run();
    }
    module = importer.runOpened(shapes);
  } else
    module = importer.run();
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
