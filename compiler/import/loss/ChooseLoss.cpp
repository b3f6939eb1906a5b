//===- ChooseLoss.cpp - what of a model is trained on --------------------------===//
//
// The loss stands in the graph, or is put behind its logits: --attach-loss, deepstatic.loss, or what transformers takes
// for a class of the model's name (loss_utils.py).
//===----------------------------------------------------------------------===//
#include "compiler/import/AttachedLoss.h"
#include "compiler/import/GraphImporter.h"
#include "compiler/import/Hazards.h"
#include "compiler/import/files/Failure.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;

namespace ds::import {
namespace {

bool isFloat(const onnx::ValueInfoProto &output) {
  const std::optional<DType> dtype = valueTypeFromOnnx(output.type().tensor_type().elem_type());
  return dtype && ds::isFloat(*dtype);
}

bool isFloatScalar(const onnx::ValueInfoProto &output) {
  const auto &type = output.type().tensor_type();
  return isFloat(output) && type.has_shape() && type.shape().dim_size() == 0;
}

std::string listOf(const auto &outputs) {
  std::string list;
  for (const onnx::ValueInfoProto &output : outputs)
    list += (list.empty() ? "'" : ", '") + output.name() + "'";
  return list;
}

bool hasOutput(const onnx::GraphProto &graph, const std::string &name) {
  return std::ranges::any_of(graph.output(), [&](const auto &output) { return output.name() == name; });
}

/// The class of the module that was exported: the first of "['transformers.models.bert.modeling_bert.BertForMaskedLM',
/// ...]", which every node of the dynamo exporter has.
std::string moduleClass(const FlatGraph &graph) {
  for (const FlatNode &node : graph.nodes) {
    const std::string *classes = findEntry(node.proto->metadata_props(), "pkg.torch.onnx.class_hierarchy");
    const size_t begin = classes ? classes->find('\'') : std::string::npos;
    const size_t end = begin == std::string::npos ? begin : classes->find('\'', begin + 1);
    if (end == std::string::npos || !classes->substr(begin + 1).starts_with("transformers."))
      continue;
    const std::string path = classes->substr(begin + 1, end - begin - 1);
    return path.substr(path.rfind('.') + 1);
  }
  return "";
}

/// The loss that transformers computes for a class, if it is called with labels.
std::optional<LossKind> lossOfClass(const std::string &name, const Shape &logits) {
  if (name.ends_with("ForCausalLM") || name == "GPT2LMHeadModel")
    return LossKind::CausalLm;
  if (name.ends_with("ForMaskedLM"))
    return LossKind::MaskedLm;
  if (name.ends_with("ForTokenClassification"))
    return LossKind::TokenClassification;
  for (const char *ending :
       {"ForSequenceClassification", "ForImageClassification", "ForVideoClassification", "ForAudioClassification"})
    if (name.ends_with(ending) && !logits.empty())
      return logits.back() == 1 ? LossKind::Regression : LossKind::Classification;
  return std::nullopt;
}

} // namespace

std::vector<std::string> GraphImporter::chooseResults() const {
  std::vector<std::string> names;
  if (options_.results == ImportOptions::Results::Outputs)
    for (const onnx::ValueInfoProto &output : model_.proto.graph().output())
      names.push_back(output.name());
  else if (!options_.losses.empty())
    for (const auto &[name, weight] : options_.losses)
      names.push_back(name);
  else
    names.push_back(options_.attach ? chooseLogits() : chooseLoss());
  return names;
}

/// What becomes a loss if it is no scalar: named, called "logits", or the only float output that may be meant.
std::string GraphImporter::chooseLogits() const {
  const onnx::GraphProto &graph = model_.proto.graph();
  const std::string asked = options_.attach ? options_.attach->logits : "";
  if (!asked.empty() && !hasOutput(graph, asked))
    throw Failure("deepstatic.loss takes its logits from '" + asked +
                  "', which is no output of the model; its outputs are " + listOf(graph.output()));
  if (!asked.empty() || hasOutput(graph, "logits"))
    return asked.empty() ? "logits" : asked;
  google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> floats;
  for (const onnx::ValueInfoProto &output : graph.output())
    if (isFloat(output) && !isCacheName(output.name()))
      *floats.Add() = output;
  if (floats.size() == 1)
    return floats[0].name();
  const std::string kind = options_.attach ? std::string(name(options_.attach->kind)) : "KIND";
  throw Failure("the model has " + std::to_string(floats.size()) + " outputs that may be the logits (" +
                describeValues(floats.empty() ? graph.output() : floats) + "); choose one: --attach-loss " + kind +
                ":" + (floats.empty() ? "OUTPUT" : floats[0].name()));
}

std::string GraphImporter::chooseLoss() const {
  const auto &outputs = model_.proto.graph().output();
  std::vector<std::string> scalars;
  for (const onnx::ValueInfoProto &output : outputs)
    if (isFloatScalar(output))
      scalars.push_back(output.name());
  if (algorithm_.present && graph_.gradientTargets.size() == 1)
    return *graph_.gradientTargets.begin();
  if (outputs.size() == 1)
    return outputs[0].name();
  if (scalars.size() == 1)
    return scalars[0];
  for (const onnx::ValueInfoProto &output : outputs) // also where the file does not say its rank
    if (output.name() == "loss" && (isFloatScalar(output) || !output.type().tensor_type().has_shape()))
      return "loss";
  if (scalars.empty() && !algorithm_.present)
    return chooseLogits();
  throw Failure("the model has " + std::to_string(scalars.size()) +
                " float outputs of rank 0, and one must be the loss; choose among " + listOf(outputs) +
                " with --loss NAME, or several that are added with --loss A --loss B=0.5");
}

/// Each output of --loss, there once.
void GraphImporter::checkLossNames() const {
  std::set<std::string> seen;
  for (const auto &[name, weight] : options_.losses) {
    if (!hasOutput(model_.proto.graph(), name))
      throw Failure("--loss '" + name + "' is no output of the model; its outputs are " +
                    listOf(model_.proto.graph().output()));
    if (!seen.insert(name).second)
      throw Failure("--loss '" + name + "' is given twice");
  }
  if (!options_.losses.empty() && options_.attach)
    throw Failure("--loss '" + options_.losses[0].first + "' takes a loss of the model, and a loss is attached, too (" +
                  std::string(name(options_.attach->kind)) + "); leave one of them out");
}

/// The scalar that is trained on, of the results that chooseResults named.
mlir::Value GraphImporter::lossOf(const std::vector<std::string> &results) {
  const Location location = NameLoc::get(builder_.getStringAttr("loss"));
  const Value &value = lookup(results[0]);
  const bool isScalar = value.kind != Value::Kind::Sequence && value.rank() == 0;
  if (options_.attach || (!isScalar && options_.losses.empty() && !algorithm_.present))
    return attachLoss(results[0], value, location);
  for (const std::string &result : results)
    checkLoss(result);
  if (options_.losses.empty())
    return operand(value, location);
  return operand(weightedSum(*this, options_.losses, location), location);
}

/// The kind that --attach-loss, the configuration or the model's class says.
AttachedLoss GraphImporter::lossToAttach(const std::string &output, const Value &logits) const {
  if (options_.attach)
    return *options_.attach;
  const std::string className = moduleClass(graph_);
  const std::optional<LossKind> kind = lossOfClass(className, logits.shape);
  if (kind && ds::isWideFloat(logits.dtype) && unfitness(*kind, logits.shape).empty()) {
    emitRemark(NameLoc::get(StringAttr::get(&context_, options_.path)))
        << "the model is transformers' " << className << " without its loss, which is attached: --attach-loss "
        << name(*kind).data();
    return {.kind = *kind};
  }
  std::string fitting;
  if (ds::isWideFloat(logits.dtype))
    for (const auto &[word, each] : lossKinds)
      if (unfitness(each, logits.shape).empty())
        fitting += (fitting.empty() ? "" : ", ") + std::string(word);
  throw Failure("output '" + output + "' is " + std::string(ds::name(logits.dtype)) + " " + toString(logits.shape) +
                ", but the loss must be one float of rank 0; " +
                (fitting.empty() ? "reduce it in the model" : "attach one that fits (--attach-loss " + fitting + ")") +
                ", or choose another output with --loss NAME" + saysMore("attach-loss"));
}

/// The exponential of a softmax that is written out: exp(x) by its sum along the classes, the last dimension. Null for
/// other quotients.
static Operation *writtenSoftmax(train::DivOp quotient, size_t classes) {
  mlir::Value total = quotient.getRhs();
  if (auto repeated = total.getDefiningOp<train::BroadcastOp>())
    total = repeated.getInput();
  const ArrayRef<int64_t> column = cast<RankedTensorType>(total.getType()).getShape(),
                          whole = quotient.getType().getShape();
  if (classes + 1 != whole.size() || column.size() != whole.size() || column.back() != 1 ||
      column.drop_back() != whole.drop_back())
    return nullptr;
  if (auto view = total.getDefiningOp<train::ReshapeOp>())
    total = view.getInput();
  auto sum = total.getDefiningOp<train::ReduceSumOp>();
  auto exponential = quotient.getLhs().getDefiningOp<train::ExpOp>();
  return exponential && sum && sum.getInput() == exponential->getResult(0) &&
                 sum.getAxes() == ArrayRef{int64_t(classes)}
             ? exponential
             : nullptr;
}

/// How an output follows from probabilities.
struct Origin {
  Operation *maker = nullptr;     // what makes them of logits; null: nothing is known to
  Operation *mixer = nullptr;     // what makes one number of several of them, the last one; null: nothing does
  SmallVector<Operation *> moves; // what only moves them, the last one first
};

/// `classes` is the dimension of the classes, which a move may change. A sigmoid has none.
static Origin originOf(mlir::Value value, std::optional<size_t> classes) {
  Origin origin;
  for (Operation *op = value ? value.getDefiningOp() : nullptr; op; op = op->getOperand(0).getDefiningOp()) {
    auto softmax = dyn_cast<train::SoftmaxOp>(op);
    auto logs = dyn_cast<train::LogSoftmaxOp>(op);
    auto quotient = dyn_cast<train::DivOp>(op);
    if (isa<train::SigmoidOp>(op) || (softmax && softmax.getAxis() == classes) || (logs && logs.getAxis() == classes))
      origin.maker = op;
    else if (quotient && classes)
      origin.maker = writtenSoftmax(quotient, *classes);
    if (origin.maker || softmax || logs || quotient)
      return origin;
    if (auto transpose = dyn_cast<train::TransposeOp>(op)) {
      if (classes)
        classes = size_t(transpose.getPerm()[*classes]);
    } else if (auto view = dyn_cast<train::ReshapeOp>(op)) {
      const auto from = view.getInput().getType().getShape(), to = view.getType().getShape();
      const bool keepsRows = classes && !from.empty() && *classes + 1 == to.size() && from.back() == to.back();
      classes = keepsRows ? std::optional(from.size() - 1) : std::nullopt;
    } else if (isa<train::ReduceMeanOp, train::ReduceMaxOp>(op)) {
      origin.mixer = op;
    } else {
      return origin;
    }
    origin.moves.push_back(op);
  }
  return origin;
}

/// The logits of an output of probabilities, which a note names; others as they are.
Value GraphImporter::beforeProbabilities(LossKind kind, const std::string &output, const Value &given) {
  if (kind == LossKind::Regression || given.rank() == 0)
    return given;
  const size_t classes = choosesClass(kind) ? classDimension(kind, given.shape) : size_t(given.rank()) - 1;
  const auto [maker, mixer, moves] = originOf(given.value, classes);
  if (!maker)
    return given;
  const bool isSigmoid = isa<train::SigmoidOp>(maker);
  const std::string what = isSigmoid                                    ? "sigmoid"
                           : isa<train::SoftmaxOp, train::ExpOp>(maker) ? "softmax"
                                                                        : "logarithm of a softmax";
  if (isSigmoid == choosesClass(kind))
    throw Failure("output '" + output + "' is a " + what + ", of which " + std::string(name(kind)) +
                  " cannot be taken; attach one that fits (--attach-loss " +
                  (isSigmoid ? "multi-label" : "classification, segmentation") + ")");
  if (mixer)
    throw Failure("output '" + output + "' is a " + (isa<train::ReduceMeanOp>(mixer) ? "mean" : "maximum") +
                  " of several numbers of a " + what + ", so no logits are left for " + std::string(name(kind)) +
                  "; attach a loss that takes probabilities (--attach-loss LOSS.onnx)");
  emitRemark(NameLoc::get(StringAttr::get(&context_, options_.path)))
      << "output '" << output << "' is a " << what << ", so the loss is taken of what the " << what
      << " is computed of";
  mlir::Value value = maker->getOperand(0);
  for (Operation *move : llvm::reverse(moves)) {
    Operation *again = builder_.clone(*move);
    again->setOperand(0, value);
    value = again->getResult(0);
  }
  return Value::of(value);
}

mlir::Value GraphImporter::attachLoss(const std::string &output, const Value &logits, Location location) {
  if (logits.kind == Value::Kind::Sequence)
    throw Failure("output '" + output + "' is a sequence, which cannot be the logits of a loss");
  if (algorithm_.present)
    throw Failure("a loss is attached (" + std::string(name(options_.attach->kind)) +
                  "), but the model brings its own training algorithm (training_info) and computes its loss itself");
  const AttachedLoss loss = lossToAttach(output, logits);
  const std::string start = "a loss of kind " + std::string(name(loss.kind)) + " does not fit output '" + output +
                            "', " + std::string(ds::name(logits.dtype)) + " " + toString(logits.shape) + ": ";
  if (!ds::isWideFloat(logits.dtype))
    throw Failure(start + "logits are float32 or float64; cast them in the model");
  if (const std::string why = unfitness(loss.kind, logits.shape); !why.empty())
    throw Failure(start + why);
  if (const size_t weights = loss.classWeights.size(); weights != 0)
    if (const int64_t classes = logits.shape[classDimension(loss.kind, logits.shape)]; int64_t(weights) != classes)
      throw Failure(start + "deepstatic.loss has " + std::to_string(weights) + " class_weights, and the logits have " +
                    std::to_string(classes) + " classes; write one weight for each class");
  if (const size_t weights = loss.posWeight.size(); weights > 1 && int64_t(weights) != logits.shape.back())
    throw Failure(start + "deepstatic.loss has " + std::to_string(weights) + " weights in pos_weight, and the logits " +
                  "end in " + std::to_string(logits.shape.back()) +
                  " classes; write one weight for each class, or one");
  (*module_)->setAttr("train.attached_loss", builder_.getStringAttr(name(loss.kind)));
  (*module_)->setAttr("train.attached_logits", builder_.getStringAttr(output));
  const Value labels = Value::of(addLabels(loss.kind, logits));
  return operand(attachedLoss(*this, loss, beforeProbabilities(loss.kind, output, logits), labels, location), location);
}

/// One more input of @forward. A stream of tokens feeds a causal model with itself.
mlir::Value GraphImporter::addLabels(LossKind kind, const Value &logits) {
  const mlir::Type type =
      tensorType(&context_, choosesClass(kind) ? DType::I64 : logits.dtype, labelShape(kind, logits.shape));
  const unsigned count = function_.getNumArguments();
  SmallVector<unsigned> alike;
  for (unsigned i = 0; i < count; ++i) {
    if (function_.getArgAttrOfType<StringAttr>(i, "train.input") == attachedLabels)
      throw Failure(std::string("the model reads an input '") + attachedLabels +
                    "', which is the name of what an attached loss reads; rename it in the model");
    if (function_.getArgument(i).getType() == type)
      alike.push_back(i);
  }
  const BlockArgument labels =
      function_.getBody().front().addArgument(type, NameLoc::get(builder_.getStringAttr(attachedLabels)));
  function_.setType(builder_.getFunctionType(function_.getBody().front().getArgumentTypes(), {}));
  function_.setArgAttr(count, "train.input", builder_.getStringAttr(attachedLabels));
  if (kind == LossKind::CausalLm && metadata_.tokens.empty() && alike.size() == 1)
    for (const unsigned i : {alike[0], count})
      function_.setArgAttr(i, "train.tokens", builder_.getStringAttr("same"));
  return labels;
}

/// That the loss file takes outputs of the model as they are.
void GraphImporter::checkJoined() {
  for (const onnx::ValueInfoProto &read : loss_.reads) {
    if (!isUsed(read.name()))
      continue;
    const Value &value = lookup(read.name());
    const auto &type = read.type().tensor_type();
    bool fits = value.kind != Value::Kind::Sequence && valueTypeFromOnnx(type.elem_type()) == value.dtype &&
                (!type.has_shape() || type.shape().dim_size() == value.rank());
    for (int i = 0; fits && i < type.shape().dim_size(); ++i)
      if (const auto &dim = type.shape().dim(i); dim.has_dim_value())
        fits = dim.dim_value() == value.shape[size_t(i)];
    if (!fits)
      throw Failure("the loss " + loss_.file + " reads " + onnxTypeName(type.elem_type()) + " " + describeValue(read) +
                    ", which the model makes " + std::string(ds::name(value.dtype)) + " " + toString(value.shape) +
                    "; export the loss with an example of that type and shape");
  }
}

void GraphImporter::checkLoss(const std::string &loss) {
  const Value &value = lookup(loss);
  if (loss == loss_.value && !loss_.file.empty() && (value.kind == Value::Kind::Sequence || value.rank() != 0))
    throw Failure("the loss " + loss_.file + " ends in " + toString(value.shape) +
                  ", and a loss is one number; return loss.mean() and export again");
  if (!ds::isFloat(value.dtype) || value.kind == Value::Kind::Sequence || value.rank() != 0)
    throw Failure("output '" + loss + "' is " + std::string(ds::name(value.dtype)) + " " + toString(value.shape) +
                  ", but the loss must be one float of rank 0; reduce it in the model, or choose another output with "
                  "--loss NAME");
  if (ds::isNarrowFloat(value.dtype))
    throw Failure("output '" + loss + "' is " + std::string(ds::name(value.dtype)) +
                  ", in which a mean loses most of its addends; cast what it is computed from to float32 in the model");
  if (value.kind != Value::Kind::Runtime)
    throw Failure("output '" + loss + "' depends on no input, so there is nothing to train");
}

} // namespace ds::import
