//===- Value.h - what a name of the graph stands for while it is walked ------===//
#pragma once

#include "compiler/import/Variables.h"

#include "mlir/IR/Value.h"

namespace ds::import {

/// Known now (Constant), known when the plan runs (Runtime), a parameter or buffer that no op has read yet, or a list
/// of values (ONNX's sequences, which exist at import only).
struct Value {
  enum class Kind { Absent, Constant, Runtime, Variable, Sequence };
  Kind kind = Kind::Absent;
  DType dtype = DType::F32;
  Shape shape;
  Constant constant;
  mlir::Value value;
  Variable *variable = nullptr;
  std::vector<Value> elements;

  static Value of(Constant constant) {
    Value result;
    result.kind = Kind::Constant;
    result.dtype = constant.dtype();
    result.shape = constant.shape();
    result.constant = std::move(constant);
    return result;
  }
  static Value of(mlir::Value value) {
    Value result;
    result.kind = Kind::Runtime;
    const auto type = mlir::cast<mlir::RankedTensorType>(value.getType());
    result.dtype = dtypeOf(type.getElementType());
    result.shape.assign(type.getShape().begin(), type.getShape().end());
    result.value = value;
    return result;
  }
  static Value of(Variable &variable) {
    Value result;
    result.kind = Kind::Variable;
    result.dtype = variable.dtype();
    result.shape = variable.shape;
    result.variable = &variable;
    return result;
  }
  static Value sequence(std::vector<Value> elements) {
    Value result;
    result.kind = Kind::Sequence;
    result.elements = std::move(elements);
    return result;
  }

  bool isConstant() const { return kind == Kind::Constant; }
  int64_t rank() const { return int64_t(shape.size()); }
};

} // namespace ds::import
