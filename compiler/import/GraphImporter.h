//===- GraphImporter.h - the walk over a model's nodes -------------------------===//
#pragma once

#include "compiler/import/Flatten.h"
#include "compiler/import/Fold.h"
#include "compiler/import/Import.h"
#include "compiler/import/LossFile.h"
#include "compiler/import/Roles.h"
#include "compiler/import/Value.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

#include <unordered_map>

namespace ds::import {

/// Walks the nodes that the results need, in order, and builds `@forward`. What is known while walking is folded and
/// appears as a train.constant only where a run-time op uses it.
class GraphImporter {
public:
  GraphImporter(mlir::MLIRContext &context, const ImportOptions &options, const ScannedModel &model,
                const FlatGraph &graph, const Metadata &metadata, const TrainingAlgorithm &algorithm,
                WeightFiles &files, const std::set<std::string> &outside, const std::map<std::string, Role> &roles,
                const JoinedLoss &loss);

  mlir::OwningOpRef<mlir::ModuleOp> run();

  /// Shapes by the names of values.
  using Shapes = std::unordered_map<std::string, Shape>;
  /// Whether each input has a first dimension of 1, and a micro-batch has more samples.
  bool fixesBatchAtOne() const;
  /// For `run`: keeps the shapes of all values.
  void keepShapes(Shapes &shapes) { kept_ = &shapes; }
  /// `run` with that dimension opened, of the inputs and of constants that say it. `asWritten` are the shapes for one
  /// sample. Throws Failure unless what is computed of the inputs has as many times the elements as there are samples.
  mlir::OwningOpRef<mlir::ModuleOp> runOpened(const Shapes &asWritten);

  //===-- for the builders of ops ----------------------------------------------===//

  mlir::OpBuilder &builder() { return builder_; }
  const ImportOptions &options() const { return options_; }
  const Metadata &metadata() const { return metadata_; }
  FoldBudget &budget() { return budget_; }

  /// The value as an operand, in its full shape.
  mlir::Value operand(const Value &value, mlir::Location location);
  /// As an operand of an op that broadcasts: a constant has size 1 where it does not change, and rank 0 where it has
  /// one element only.
  mlir::Value broadcastOperand(const Value &value, mlir::Location location);
  /// The value where it is known now, reading small buffers; else nothing.
  std::optional<Constant> known(const Value &value);
  /// As known, and also reads parameters: for values that must be known.
  std::optional<Constant> resolve(const Value &value);

  /// condition ? onTrue : onFalse of scalars. Exporters repeat the one attention mask in every layer: made once.
  Constant foldMask(const Constant &condition, const Constant &onTrue, const Constant &onFalse, const Shape &shape);

  const Value &lookup(const std::string &name);
  /// `value` under the name of a node's output. What a Gradient node differentiates by becomes a value of its own,
  /// which no folding looks through.
  Value atName(const std::string &name, Value value, mlir::Location location);
  void define(const std::string &name, Value value);
  /// Whether a node yet to come, or a result, reads the value.
  bool isUsed(const std::string &name) const {
    auto found = uses_.find(name);
    return found != uses_.end() && found->second > 0 && !name.empty();
  }
  /// The number of a dropout or another draw, in graph order: it and the run's seed give the random numbers.
  int64_t nextDrawId() { return draws_++; }
  /// The number of a node's draw k where the node has a seed of its own: nodes with equal seeds draw equal numbers.
  int64_t drawIdOf(float seed, int k) {
    const auto [found, isNew] = seeds_.try_emplace({seed, k}, draws_);
    draws_ += isNew;
    return found->second;
  }

  bool opensBatch() const { return asWritten_ != nullptr; }
  /// `shape`, which a constant gives for what a node makes of input 0; with an opened batch its place in there is
  /// found.
  Shape openedShape(const onnx::NodeProto &node, Shape shape) const;

  /// What a control-flow node's body makes of `inputs`; its nodes are imported once more for every call.
  std::vector<Value> importBody(const onnx::GraphProto &body, int64_t opset, std::vector<Value> inputs);

private:
  std::vector<std::string> chooseResults() const;
  std::string chooseLoss() const;
  std::string chooseLogits() const;
  void checkLossNames() const;
  void checkJoined();
  std::vector<const FlatNode *> neededNodes(const std::vector<std::string> &results,
                                            std::set<std::string> &names) const;
  void createFunction(const std::set<std::string> &needed);
  void bindDims(const std::set<std::string> &needed, const std::vector<std::string> &results);
  void cutPast(const std::set<std::string> &needed, const std::vector<std::string> &results);
  std::string pastLength(const onnx::ValueInfoProto &input) const;
  void checkConstants() const;
  bool isConstant(const onnx::ValueInfoProto &input) const { return options_.constants.count(input.name()) != 0; }
  void bindBatch(const std::set<std::string> &needed);
  std::set<std::string> batchNames(const std::set<std::string> &needed) const;
  bool isData(const onnx::ValueInfoProto &input) const;
  Shape inputShape(const onnx::ValueInfoProto &input) const;
  void checkDims(const std::set<std::string> &needed) const;
  void checkBatch() const;
  [[noreturn]] void refuseFixedBatch(const onnx::ValueInfoProto &input, int64_t fixed, const std::string &symbolic,
                                     const std::string &why) const;
  void checkOpened(const FlatNode &node);
  const Shape &shapeOfOne(const std::string &name) const;
  std::optional<size_t> batchAxis(const std::string &name) const;
  bool isLeftOut(const onnx::ValueInfoProto &input) const;
  void importNode(const FlatNode &node);
  void countUses(const std::vector<const FlatNode *> &nodes);
  void forgetOperands(const FlatNode &node);
  void defineInBody(const onnx::GraphProto &body, const std::string &prefix, std::vector<Value> inputs);
  mlir::Location locationOf(const FlatNode &node) const;
  void finish(const std::vector<std::string> &results);
  void storeUpdates();
  void storeState();
  mlir::Value stopGradient(mlir::Value value, mlir::Location location);
  void checkLoss(const std::string &loss);
  mlir::Value lossOf(const std::vector<std::string> &results);
  AttachedLoss lossToAttach(const std::string &output, const Value &logits) const;
  mlir::Value attachLoss(const std::string &output, const Value &logits, mlir::Location location);
  Value beforeProbabilities(LossKind kind, const std::string &output, const Value &given);
  mlir::Value addLabels(LossKind kind, const Value &logits);
  void createVariables();
  void eraseUnused();
  mlir::Value readVariable(Variable &variable, mlir::Location location);
  mlir::Value materialize(const Constant &constant, const Shape &shape, mlir::Location location);
  mlir::ElementsAttr elementsAttr(const Constant &constant, const Shape &shape, std::vector<char> bytes);

  mlir::MLIRContext &context_;
  const ImportOptions &options_;
  const ScannedModel &model_;
  const FlatGraph &graph_;
  const Metadata &metadata_;
  const TrainingAlgorithm &algorithm_;
  const JoinedLoss &loss_;
  mlir::OpBuilder builder_;
  FoldBudget budget_;
  std::map<std::string, int64_t> dims_; // what symbolic dimensions are, --dim and all
  std::set<std::string> past_;          // inputs without elements: keys and values of earlier tokens
  Variables variables_;
  std::unordered_map<std::string, Value> values_;
  std::unordered_map<std::string, int64_t> uses_;                        // of a value that are still to come
  std::map<std::pair<std::string, std::string>, mlir::Value> constants_; // (type, content) -> the one train.constant
  std::map<std::string, std::pair<Constant, mlir::Value>> large_;        // identity -> itself, its train.constant
  std::map<std::string, std::pair<Constant, Constant>> masks_;           // what foldMask was given -> its result
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  mlir::func::FuncOp function_;
  std::map<std::pair<float, int>, int64_t> seeds_; // of nodes that have one -> the number of the draw
  bool carriesState_ = false;
  std::set<std::string> stateValues_; // what forward makes of buffers
  Shapes *kept_ = nullptr;
  const Shapes *asWritten_ = nullptr;
  std::set<std::string> ofData_; // names of what is computed of inputs, where the batch is opened
  int64_t draws_ = 0, resources_ = 0, bodies_ = 0, unrolled_ = 0;
  uint64_t unrolledBytes_ = 0;
};

} // namespace ds::import
