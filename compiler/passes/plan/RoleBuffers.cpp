//===- RoleBuffers.cpp - buffers of a role's variables, buckets and values ----===//
#include "compiler/passes/plan/RoleBuffers.h"

using namespace mlir;
using namespace ds;

RoleBuffers::RoleBuffers(SymbolTable &symbols, dist::RoleOp role, OpBuilder &builder)
    : buckets_(role->getParentOfType<ModuleOp>()), symbols_(symbols), role_(role), builder_(builder) {}

Value RoleBuffers::make(StringRef name, int64_t bytes, plan::Scope scope, plan::Category category,
                        plan::MemorySpace space) {
  return plan::BufferOp::create(builder_, builder_.getUnknownLoc(), name, space, bytes, scope, category);
}

static plan::Category categoryOf(train::VariableKind kind) {
  switch (kind) {
  case train::VariableKind::Gradient:
    return plan::Category::Gradients;
  case train::VariableKind::Metric:
  case train::VariableKind::Optimizer:
    return plan::Category::Optimizer;
  case train::VariableKind::Constant:
    return plan::Category::Constants;
  default:
    return plan::Category::Weights;
  }
}

train::VariableKind RoleBuffers::kindOf(StringAttr state) const {
  if (auto bucket = symbols_.lookup<dist::BucketOp>(state))
    state = cast<FlatSymbolRefAttr>(bucket.getMembers()[0]).getAttr();
  return symbols_.lookup<train::VariableOp>(state).getKind();
}

bool RoleBuffers::isOfStep(StringAttr state) const {
  const train::VariableKind kind = kindOf(state);
  return kind == train::VariableKind::Gradient || kind == train::VariableKind::Metric;
}

/// What is of the step alone holds nothing that anybody saves, and so names nothing.
Value RoleBuffers::makeState(StringAttr name, int64_t bytes) {
  const bool ofStep = isOfStep(name);
  return plan::BufferOp::create(builder_, builder_.getUnknownLoc(), name.getValue(), plan::MemorySpace::Device, bytes,
                                ofStep ? plan::Scope::Step : plan::Scope::Plan, categoryOf(kindOf(name)),
                                ofStep ? FlatSymbolRefAttr() : FlatSymbolRefAttr::get(name));
}

Value RoleBuffers::bufferOfVariable(train::VariableOp variable) {
  Value &buffer = state_[variable.getSymNameAttr()];
  if (!buffer)
    buffer = makeState(variable.getSymNameAttr(), plan::tensorBytes(variable.getType()));
  return buffer;
}

Value RoleBuffers::bufferOfBucket(dist::BucketOp bucket) {
  Value &buffer = state_[bucket.getSymNameAttr()];
  if (!buffer)
    buffer = makeState(bucket.getSymNameAttr(),
                       plan::tensorBytes(bucket.isSharded() ? bucket.getSlice() : bucket.getType()));
  return buffer;
}

BufferView RoleBuffers::ofState(StringAttr name) {
  if (auto bucket = symbols_.lookup<dist::BucketOp>(name))
    return {bufferOfBucket(bucket), 0,
            bucket.isSharded() || bucket.getSlice() == bucket.getType() ? 0 : plan::tensorBytes(bucket.getSlice())};
  if (auto [bucket, offset] = buckets_.find(name); bucket)
    return {bufferOfBucket(bucket), offset * bucket.getWholeType().getElementTypeBitWidth() / 8, 0};
  return {bufferOfVariable(symbols_.lookup<train::VariableOp>(name)), 0, 0};
}

BufferView RoleBuffers::ofWhole(dist::BucketOp bucket) { return {bufferOfBucket(bucket), 0, 0}; }

BufferView RoleBuffers::ofValue(StringAttr name) {
  Value &buffer = values_[name];
  if (buffer)
    return {buffer, 0, 0};
  auto value = symbols_.lookup<dist::ValueOp>(name);
  const plan::Category category = value.getInput()     ? plan::Category::Inputs
                                  : value.getBucket()  ? plan::Category::Communication
                                  : value.getForStep() ? plan::Category::Weights
                                                       : plan::Category::Activations;
  buffer = make(name, plan::tensorBytes(value.getType()), value.getForStep() ? plan::Scope::Step : plan::Scope::Slot,
                category, plan::MemorySpace(value.getSpace()));
  return {buffer, 0, 0};
}

BufferView RoleBuffers::ofConstant(ElementsAttr value, Location location) {
  StringAttr &name = constants_[value];
  if (!name) {
    OpBuilder builder(role_);
    auto source = train::LiteralSourceAttr::get(builder.getContext(), value);
    auto variable = train::VariableOp::create(builder, location, train::VariableKind::Constant,
                                              "constant::" + std::to_string(constants_.size()),
                                              cast<RankedTensorType>(value.getShapedType()), source);
    symbols_.insert(variable);
    name = variable.getSymNameAttr();
  }
  return ofState(name);
}
