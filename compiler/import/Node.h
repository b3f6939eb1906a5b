//===- Node.h - one node, as the builder of its op sees it ----------------------===//
#pragma once

#include "compiler/import/GraphImporter.h"
#include "compiler/import/files/Failure.h"
#include "dialects/Train/Train.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

namespace ds::import {

/// 0.1 for 0.1f, which files store for PyTorch's 0.1: the shortest decimal that reads back as the float.
double shortestDecimal(float value);
/// "0.1", for messages.
std::string text(double value);

using NamedAttrs = llvm::SmallVector<mlir::NamedAttribute, 4>;

/// Inputs, attributes and outputs of a node. Accessors throw Failure, which importNode prefixes with the node's name.
class Node {
public:
  Node(GraphImporter &graph, const FlatNode &node, mlir::Location location);

  const std::string &op() const { return node_.proto->op_type(); }
  int64_t opset() const { return node_.opset; }
  const onnx::NodeProto &proto() const { return *node_.proto; }
  GraphImporter &graph() { return graph_; }
  FoldBudget &budget() { return graph_.budget(); }
  mlir::Location location() const { return location_; }
  mlir::OpBuilder &builder() { return graph_.builder(); }

  //===-- inputs ----------------------------------------------------------------===//
  size_t inputs() const { return size_t(node_.proto->input_size() - node_.captured); }
  bool has(size_t i) const {
    asked_ = std::max(asked_, i + 1);
    return i < inputs() && !node_.proto->input(int(i)).empty();
  }
  /// Input i, a tensor; throws where it is absent.
  const Value &in(size_t i);
  /// Input i, a tensor or a sequence.
  const Value &anyIn(size_t i);
  /// Input i where it is known now; throws, naming `what`, where it is not.
  Constant known(size_t i, const std::string &what);
  std::vector<int64_t> integers(size_t i, const std::string &what);
  int64_t integer(size_t i, const std::string &what);
  /// Throws unless input i is of a float type.
  const Value &floatIn(size_t i);

  //===-- attributes ------------------------------------------------------------===//
  const onnx::AttributeProto *attribute(const std::string &name, int type);
  int64_t integerAttr(const std::string &name, int64_t otherwise);
  double floatAttr(const std::string &name, double otherwise);
  std::string stringAttr(const std::string &name, const std::string &otherwise);
  std::optional<std::vector<int64_t>> integersAttr(const std::string &name);
  /// An empty list where there is no such attribute.
  std::vector<std::string> stringsAttr(const std::string &name);
  /// An axis between -rank and rank - 1, as an index.
  size_t axisAttr(const std::string &name, int64_t otherwise, int64_t rank);
  static size_t axis(int64_t axis, int64_t rank);
  /// Each axis once, ascending.
  static std::vector<int64_t> axes(const std::vector<int64_t> &axes, int64_t rank);

  //===-- outputs ---------------------------------------------------------------===//
  size_t outputs() const { return size_t(node_.proto->output_size()); }
  /// Whether anything reads output i; exporters also declare outputs that nothing does.
  bool wants(size_t i) const { return i < outputs() && graph_.isUsed(node_.proto->output(int(i))); }
  void set(size_t i, Value value);
  /// Checks that every output that something reads has been set, and that the operator knows all its inputs.
  void finish();

  //===-- bodies ----------------------------------------------------------------===//
  /// The graph that the attribute holds.
  const onnx::GraphProto &bodyAttr(const std::string &name);
  /// What the body makes of `inputs`.
  std::vector<Value> run(const onnx::GraphProto &body, std::vector<Value> inputs) {
    return graph_.importBody(body, opset(), std::move(inputs));
  }

  //===-- building --------------------------------------------------------------===//
  mlir::Value operand(const Value &value) { return graph_.operand(value, location_); }
  Value cast(const Value &input, DType to);
  mlir::NamedAttribute list(llvm::StringRef name, const std::vector<int64_t> &values) {
    return builder().getNamedAttr(name, builder().getDenseI64ArrayAttr(values));
  }
  mlir::NamedAttribute number(llvm::StringRef name, int64_t value) {
    return builder().getNamedAttr(name, builder().getI64IntegerAttr(value));
  }
  mlir::NamedAttribute real(llvm::StringRef name, double value) {
    return builder().getNamedAttr(name, builder().getF64FloatAttr(value));
  }
  /// Creates an op; a broken constraint becomes a Failure.
  template <typename OpTy>
  OpTy create(mlir::ValueRange operands, llvm::ArrayRef<mlir::NamedAttribute> attributes = {}) {
    std::string reason;
    mlir::ScopedDiagnosticHandler collect(builder().getContext(), [&](mlir::Diagnostic &diagnostic) {
      if (reason.empty())
        reason = diagnostic.str();
      return mlir::success();
    });
    OpTy op = train::tryCreate<OpTy>(builder(), location_, operands, attributes);
    if (!op || failed(mlir::verify(op, /*verifyRecursively=*/false)))
      throw Failure(reason);
    checkResults(op);
    return op;
  }

private:
  void checkResults(mlir::Operation *op);
  bool isStatistic(size_t i) const;

  GraphImporter &graph_;
  const FlatNode &node_;
  mlir::Location location_;
  std::vector<bool> set_;
  mutable size_t asked_ = 0; // inputs that the operator may have, as far as it has asked
  /// The type of results of an operator that computes with float16 or bfloat16: its inputs are cast to float32, which
  /// these are then, and its results back.
  std::optional<DType> narrow_;
  std::map<size_t, Value> widened_; // inputs
};

} // namespace ds::import
