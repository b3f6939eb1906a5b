//===- GraphImporter.cpp - the walk over a model's nodes -----------------------===//
#include "compiler/import/GraphImporter.h"

#include "compiler/import/Fold.h"
#include "compiler/import/Hazards.h"
#include "compiler/import/Node.h"
#include "compiler/import/OpTable.h"
#include "compiler/import/files/Failure.h"
#include "dialects/Train/StopGradient.h"
#include "dialects/Train/Train.h"

#include <cmath>
#include <filesystem>

using namespace mlir;

namespace ds::import {

GraphImporter::GraphImporter(MLIRContext &context, const ImportOptions &options, const ScannedModel &model,
                             const FlatGraph &graph, const Metadata &metadata, const TrainingAlgorithm &algorithm,
                             WeightFiles &files, const std::set<std::string> &outside,
                             const std::map<std::string, Role> &roles, const JoinedLoss &loss)
    : context_(context), options_(options), model_(model), graph_(graph), metadata_(metadata), algorithm_(algorithm),
      loss_(loss), builder_(&context), budget_(options.maxConstantElements), dims_(options.dims),
      variables_(model, metadata, algorithm, options, files, outside, graph.differentiated, roles) {}

OwningOpRef<ModuleOp> GraphImporter::run() {
  checkLossNames();
  const std::vector<std::string> results = chooseResults();
  std::set<std::string> needed;
  std::vector<std::string> roots = results;
  for (const auto &[variable, value] : algorithm_.updates)
    roots.push_back(value);
  carriesState_ = options_.results == ImportOptions::Results::Loss && !algorithm_.present;
  for (const auto &[buffer, carried] : metadata_.state)
    if (carriesState_) {
      roots.push_back(carried.value);
      stateValues_.insert(carried.value);
    }
  const std::vector<const FlatNode *> nodes = neededNodes(roots, needed);
  if (options_.results == ImportOptions::Results::Loss) {
    checkStateIsCarried(graph_, metadata_, needed);
    if (options_.loraRank == 0) // else they are frozen, as they were written
      variables_.checkNotMerged();
  }
  countUses(nodes);
  for (const std::string &root : roots)
    ++uses_[root];
  bindDims(needed, results);
  createFunction(needed);
  for (Variable &variable : variables_.all())
    if (needed.count(variable.name)) {
      checkedElements(variable.shape, variable.dtype(), "initializer '" + variable.name + "'");
      define(variable.name, Value::of(variable));
    }
  bool isJoined = false;
  for (const FlatNode *node : nodes) {
    if (!isJoined && loss_.has(node->proto->name())) {
      isJoined = true;
      checkJoined();
    }
    importNode(*node);
    forgetOperands(*node);
  }
  finish(results);
  if (const std::string note = whatIsNotSaid(model_.proto, graph_, metadata_);
      !note.empty() && options_.results == ImportOptions::Results::Loss && !algorithm_.present)
    emitRemark(NameLoc::get(StringAttr::get(&context_, options_.path))) << note;
  for (const std::string &note : variables_.weightNotes(options_.loraRank == 0))
    emitRemark(NameLoc::get(StringAttr::get(&context_, options_.path))) << note;
  return std::move(module_);
}

//===-- what is needed --------------------------------------------------------===//

/// The nodes that `results` depend on, in order, and all names that they use.
std::vector<const FlatNode *> GraphImporter::neededNodes(const std::vector<std::string> &results,
                                                         std::set<std::string> &names) const {
  names.insert(results.begin(), results.end());
  std::vector<const FlatNode *> nodes;
  for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node) {
    bool isNeeded = false;
    for (const std::string &output : node->proto->output())
      isNeeded |= !output.empty() && names.count(output) != 0;
    if (!isNeeded)
      continue;
    names.insert(node->proto->input().begin(), node->proto->input().end());
    nodes.push_back(&*node);
  }
  std::reverse(nodes.begin(), nodes.end());
  return nodes;
}

void GraphImporter::countUses(const std::vector<const FlatNode *> &nodes) {
  for (const FlatNode *node : nodes)
    for (const std::string &input : node->proto->input())
      ++uses_[input];
}

/// Folded values may be large and many: each goes with its last use.
void GraphImporter::forgetOperands(const FlatNode &node) {
  for (const std::string &input : node.proto->input())
    if (--uses_[input] == 0)
      values_.erase(input);
}

//===-- inputs ----------------------------------------------------------------===//

void GraphImporter::createFunction(const std::set<std::string> &needed) {
  const std::string stem = std::filesystem::path(options_.path).stem().string();
  const std::string name = metadata_.modelName.empty() ? stem : metadata_.modelName;
  const Location moduleLocation = NameLoc::get(builder_.getStringAttr(options_.path));
  module_ = ModuleOp::create(moduleLocation, name);
  module_->getOperation()->setAttr("train.model_path", builder_.getStringAttr(options_.path));

  std::vector<const onnx::ValueInfoProto *> inputs;
  SmallVector<Type> types;
  for (const onnx::ValueInfoProto &input : model_.proto.graph().input()) {
    if (isLeftOut(input) || !needed.count(input.name()))
      continue;
    const Shape shape = inputShape(input);
    const int number = input.type().tensor_type().elem_type();
    const std::optional<DType> dtype = valueTypeFromOnnx(number);
    if (!dtype)
      throw Failure("input '" + input.name() + "' is " + onnxTypeName(number) +
                    "; float32, float64, float16, bfloat16, int32, int64 and bool inputs are supported");
    checkedElements(shape, *dtype, "input '" + input.name() + "'");
    if (past_.count(input.name())) {
      define(input.name(), Value::of(Constant::dense(*dtype, shape, {})));
      continue;
    }
    if (isConstant(input)) {
      const double number = options_.constants.at(input.name());
      if (!ds::isFloat(*dtype) && number != std::trunc(number))
        throw Failure("--constant " + input.name() + ": the input is " + std::string(ds::name(*dtype)) +
                      ", which holds whole numbers; give one");
      define(input.name(), Value::of(foldCast(Constant::scalar(DType::F64, number), *dtype, budget_).broadcast(shape)));
      continue;
    }
    inputs.push_back(&input);
    types.push_back(tensorType(&context_, *dtype, shape));
  }
  function_ = func::FuncOp::create(moduleLocation, "forward", builder_.getFunctionType(types, {}));
  module_->push_back(function_);
  Block *body = function_.addEntryBlock();
  builder_.setInsertionPointToEnd(body);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string &input = inputs[i]->name();
    BlockArgument argument = body->getArgument(unsigned(i));
    argument.setLoc(NameLoc::get(builder_.getStringAttr(input)));
    function_.setArgAttr(unsigned(i), "train.input", builder_.getStringAttr(input));
    if (auto how = metadata_.tokens.find(input); how != metadata_.tokens.end())
      function_.setArgAttr(unsigned(i), "train.tokens", builder_.getStringAttr(how->second));
    define(input, Value::of(argument));
    if (asWritten_)
      ofData_.insert(input);
  }
}

//===-- nodes -----------------------------------------------------------------===//

/// "scope/node". TorchScript's node names are paths already: "/transformer/h.0/attn/MatMul".
Location GraphImporter::locationOf(const FlatNode &node) const {
  std::string name = node.proto->name();
  if (name.empty() && node.proto->output_size() > 0)
    name = node.proto->output(0);
  if (name.starts_with("/"))
    name.erase(0, 1);
  const std::string scope = scopeOf(*node.proto);
  if (name.empty())
    name = node.proto->op_type();
  return NameLoc::get(StringAttr::get(&context_, scope.empty() ? name : scope + "/" + name));
}

void GraphImporter::importNode(const FlatNode &node) {
  try {
    const OpBuilderFn build = findOp(node);
    Node wrapped(*this, node, locationOf(node));
    build(wrapped);
    wrapped.finish();
    if (asWritten_)
      checkOpened(node);
  } catch (const Failure &failure) {
    throw Failure(describe(node) + ": " + failure.what());
  }
}

const Value &GraphImporter::lookup(const std::string &name) {
  auto found = values_.find(name);
  if (found == values_.end())
    throw Failure("value '" + name + "' is not available");
  return found->second;
}

void GraphImporter::define(const std::string &name, Value value) {
  if (kept_ && value.kind != Value::Kind::Sequence)
    (*kept_)[name] = value.shape;
  if (isUsed(name))
    values_[name] = std::move(value);
}

Value GraphImporter::atName(const std::string &name, Value value, Location location) {
  if (stateValues_.count(name) && value.kind != Value::Kind::Sequence)
    return Value::of(stopGradient(operand(value, location), location));
  if (!graph_.differentiated.count(name) || !ds::isFloat(value.dtype) || value.kind == Value::Kind::Sequence)
    return value;
  const mlir::Value whole = operand(value, location);
  return Value::of(
      train::CastOp::create(builder_, location, whole.getType(), whole, elementType(&context_, value.dtype)));
}

/// `value`, which no gradient passes.
mlir::Value GraphImporter::stopGradient(mlir::Value value, Location location) {
  auto stop = train::CastOp::create(builder_, location, value, TypeAttr::get(getElementTypeOrSelf(value.getType())));
  stop->setAttr(train::stopGradientAttribute, builder_.getUnitAttr());
  return stop;
}

//===-- the end ---------------------------------------------------------------===//

void GraphImporter::finish(const std::vector<std::string> &results) {
  SmallVector<mlir::Value> values;
  if (options_.results == ImportOptions::Results::Loss)
    values.push_back(lossOf(results));
  else
    for (const std::string &result : results)
      values.push_back(operand(lookup(result), function_.getLoc()));
  if (algorithm_.present)
    storeUpdates();
  if (carriesState_)
    storeState();
  func::ReturnOp::create(builder_, function_.getLoc(), values);
  function_.setFunctionType(builder_.getFunctionType(function_.getArgumentTypes(), TypeRange(ValueRange(values))));
  eraseUnused();
  createVariables();
}

/// At the end of the step every updated variable takes its value, all of them at once.
void GraphImporter::storeUpdates() {
  std::map<std::string, Variable *> variables;
  for (Variable &variable : variables_.all())
    variables[variable.name] = &variable;
  for (const auto &[name, value] : algorithm_.updates) {
    const Value &update = lookup(value);
    const Variable &variable = *variables.at(name);
    if (update.kind == Value::Kind::Sequence || update.dtype != variable.dtype() || update.shape != variable.shape)
      throw Failure("training_info: update_binding gives '" + name + "', " + std::string(ds::name(variable.dtype())) +
                    " " + toString(variable.shape) + ", the value '" + value + "', which is " +
                    std::string(ds::name(update.dtype)) + " " + toString(update.shape));
    train::StoreOp::create(builder_, function_.getLoc(), FlatSymbolRefAttr::get(&context_, name),
                           operand(update, function_.getLoc()));
  }
  function_->setAttr("train.algorithm", builder_.getUnitAttr());
}

/// Every forward stores what it makes of a buffer as soon as it has both read it and made that, so that a pipeline's
/// stage does both.
void GraphImporter::storeState() {
  std::map<std::string, Variable *> variables;
  for (Variable &variable : variables_.all())
    variables[variable.name] = &variable;
  for (const auto &[name, carried] : metadata_.state) {
    const auto found = variables.find(name);
    const Value &made = lookup(carried.value);
    if (found == variables.end() || made.kind == Value::Kind::Sequence || made.shape != found->second->shape ||
        made.dtype != found->second->dtype())
      throw Failure("the model's metadata 'deepstatic.state' gives '" + name + "' the value '" + carried.value +
                    "', which is no tensor of its type and shape; models/export.py writes it so");
    mlir::Value value = operand(made, function_.getLoc()), read = found->second->read;
    Operation *last = value.getDefiningOp();
    if (read && (!last || last->isBeforeInBlock(read.getDefiningOp())))
      last = read.getDefiningOp();
    OpBuilder::InsertionGuard guard(builder_);
    if (last)
      builder_.setInsertionPointAfter(last);
    auto store = train::StoreOp::create(builder_, NameLoc::get(builder_.getStringAttr(carried.value)),
                                        FlatSymbolRefAttr::get(&context_, name), value);
    if (carried.kept)
      store->setAttr(train::keptInEvaluation, builder_.getUnitAttr());
  }
}

void GraphImporter::eraseUnused() {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function_.getBody().front())))
    if (isOpTriviallyDead(&op))
      op.erase();
}

void GraphImporter::createVariables() {
  std::set<std::string> used;
  function_.walk([&](train::ReadOp op) { used.insert(op.getVariable().str()); });
  function_.walk([&](train::StoreOp op) { used.insert(op.getVariable().str()); });
  function_.walk([&](train::UpdateAverageOp op) { used.insert(op.getVariable().str()); });
  if (options_.parameters)
    *options_.parameters = variables_.table(used);
  builder_.setInsertionPointToStart(module_->getBody());
  bool anyTrained = false;
  for (Variable &variable : variables_.all()) {
    if (!used.count(variable.name))
      continue;
    anyTrained |= variable.trainable;
    SmallVector<StringRef> aliases;
    if (auto tied = metadata_.aliases.find(variable.name); tied != metadata_.aliases.end())
      aliases.assign(tied->second.begin(), tied->second.end());
    const auto kind = variable.parameter   ? train::VariableKind::Parameter
                      : variable.optimizer ? train::VariableKind::Optimizer
                                           : train::VariableKind::Buffer;
    train::VariableOp::create(
        builder_, NameLoc::get(builder_.getStringAttr(variable.name)), train::VariableKindAttr::get(&context_, kind),
        builder_.getStringAttr(variable.name), FlatSymbolRefAttr(),
        TypeAttr::get(tensorType(&context_, variable.dtype(), variable.shape)), DenseI64ArrayAttr(),
        variables_.source(&context_, variable), variable.trainable ? builder_.getUnitAttr() : UnitAttr(),
        variable.persistent ? builder_.getUnitAttr() : UnitAttr(),
        aliases.empty() ? ArrayAttr() : builder_.getStrArrayAttr(aliases));
  }
  if (!anyTrained && !algorithm_.present && options_.results == ImportOptions::Results::Loss && options_.loraRank == 0)
    throw Failure(
        "the loss depends on no trainable parameter; if the file does not say which initializers are trained, "
        "name them with --trainable REGEX" +
        variables_.whatCouldTrain());
}

} // namespace ds::import
