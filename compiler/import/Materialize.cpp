//===- Materialize.cpp - values become operands ---------------------------------===//
#include "compiler/import/GraphImporter.h"
#include "compiler/import/files/Failure.h"
#include "dialects/Train/Train.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace ds::import {

std::optional<Constant> GraphImporter::known(const Value &value) {
  if (value.isConstant())
    return value.constant;
  if (value.kind == Value::Kind::Variable && value.variable->foldable)
    return variables_.constant(*value.variable);
  return std::nullopt;
}

std::optional<Constant> GraphImporter::resolve(const Value &value) {
  if (value.kind == Value::Kind::Variable && !value.variable->trainable && !value.variable->carried &&
      elementCount(value.shape) <= 65536)
    return variables_.constant(*value.variable);
  return known(value);
}

mlir::Value GraphImporter::readVariable(Variable &variable, Location location) {
  if (!variable.read) {
    checkedElements(variable.shape, variable.dtype(), "initializer '" + variable.name + "'");
    auto symbol = FlatSymbolRefAttr::get(&context_, variable.name);
    const Location where = NameLoc::get(builder_.getStringAttr(variable.name), location);
    variable.read =
        train::ReadOp::create(builder_, where, tensorType(&context_, variable.dtype(), variable.shape), symbol);
  }
  return variable.read;
}

mlir::Value GraphImporter::operand(const Value &value, Location location) {
  if (value.kind == Value::Kind::Runtime)
    return value.value;
  if (const std::optional<Constant> constant = known(value)) {
    const Shape distinct = constant->distinctShape();
    mlir::Value result = materialize(*constant, distinct, location);
    if (distinct == value.shape)
      return result;
    auto shape = builder_.getNamedAttr("shape", builder_.getDenseI64ArrayAttr(value.shape));
    return train::tryCreate<train::BroadcastOp>(builder_, location, {result}, {shape});
  }
  if (value.kind == Value::Kind::Variable)
    return readVariable(*value.variable, location);
  throw Failure("a sequence is used where a tensor is needed");
}

mlir::Value GraphImporter::broadcastOperand(const Value &value, Location location) {
  const std::optional<Constant> constant = known(value);
  if (!constant)
    return operand(value, location);
  return materialize(*constant, constant->isUniform() ? Shape() : constant->distinctShape(), location);
}

mlir::Value GraphImporter::materialize(const Constant &constant, const Shape &shape, Location location) {
  const Constant view = constant.isUniform() ? constant.view(shape, Shape(shape.size(), 0), constant.offset())
                                             : constant.view(shape, constant.strides(), constant.offset());
  constexpr int64_t few = 1024; // elements that are faster compared by content than by identity
  const bool isLarge = elementCount(shape) > few;
  const std::string identity = isLarge ? view.identity() : std::string();
  if (auto found = large_.find(identity); found != large_.end())
    return found->second.second;
  budget_.charge(elementCount(shape));
  std::vector<char> bytes = view.bytes(shape);
  std::string key(bytes.begin(), bytes.end());
  if (bytes.size() > 4096) { // as good as the content, and small
    const llvm::XXH128_hash_t hash =
        llvm::xxh3_128bits(ArrayRef<uint8_t>(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()));
    key = std::to_string(hash.low64) + ":" + std::to_string(hash.high64);
  }
  const std::string type = std::string(ds::name(constant.dtype())) + toString(shape);
  mlir::Value &result = constants_[{type, key}];
  if (!result)
    result = train::ConstantOp::create(builder_, location, elementsAttr(constant, shape, std::move(bytes)));
  if (isLarge)
    large_.try_emplace(identity, view, result);
  return result;
}

Constant GraphImporter::foldMask(const Constant &condition, const Constant &onTrue, const Constant &onFalse,
                                 const Shape &shape) {
  if (onTrue.elements() != 1 || onFalse.elements() != 1)
    return foldSelect(condition, onTrue, onFalse, shape, budget_);
  const std::vector<char> x = onTrue.bytes(onTrue.shape()), y = onFalse.bytes(onFalse.shape());
  const std::string key = condition.identity() + std::string(ds::name(onTrue.dtype())) + toString(shape) +
                          std::string(x.begin(), x.end()) + std::string(y.begin(), y.end());
  auto found = masks_.find(key);
  if (found == masks_.end())
    found = masks_.try_emplace(key, condition, foldSelect(condition, onTrue, onFalse, shape, budget_)).first;
  return found->second.second;
}

/// Small ones are printed with the IR; large ones are resources, which are neither uniqued nor copied.
ElementsAttr GraphImporter::elementsAttr(const Constant &constant, const Shape &shape, std::vector<char> bytes) {
  constexpr int64_t maxPrinted = 64; // elements
  const RankedTensorType type = tensorType(&context_, constant.dtype(), shape);
  if (elementCount(shape) <= maxPrinted) {
    if (constant.dtype() != DType::Bool)
      return DenseElementsAttr::getFromRawBuffer(type, bytes);
    return DenseElementsAttr::get(type, ArrayRef<bool>(reinterpret_cast<const bool *>(bytes.data()), bytes.size()));
  }
  AsmResourceBlob blob = HeapAsmResourceBlob::allocateAndCopyWithAlign(bytes, 64, /*dataIsMutable=*/false);
  return DenseResourceElementsAttr::get(type, "constant_" + std::to_string(resources_++), std::move(blob));
}

} // namespace ds::import
