//===- Placement.cpp - where state and kept values lie ----------------------===//
#include "compiler/passes/plan/Placement.h"

using namespace mlir;
using namespace ds;

Placement::Placement(SymbolTable &symbols, dist::RoleOp role, OpBuilder &builder, const InFlight &inFlight)
    : buckets_(role->getParentOfType<ModuleOp>()), symbols_(symbols), role_(role), builder_(builder),
      inFlight_(inFlight) {}

Value Placement::make(plan::MemorySpace space, StringRef name, int64_t bytes, plan::Scope scope,
                      plan::Category category, int64_t slots, FlatSymbolRefAttr holds, bool shard) {
  return plan::BufferOp::create(
      builder_, builder_.getUnknownLoc(), plan::BufferType::get(builder_.getContext()), builder_.getStringAttr(name),
      FlatSymbolRefAttr::get(builder_.getContext(), stringifyMemorySpace(space)), builder_.getI64IntegerAttr(bytes),
      plan::ScopeAttr::get(builder_.getContext(), scope), plan::CategoryAttr::get(builder_.getContext(), category),
      builder_.getI64IntegerAttr(slots), holds, shard ? builder_.getUnitAttr() : UnitAttr(), IntegerAttr(),
      DenseI64ArrayAttr(), DenseI64ArrayAttr());
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

/// Whether state of a kind is zero at the start of every step, and gone after it.
static bool isOfStep(train::VariableKind kind) {
  return kind == train::VariableKind::Gradient || kind == train::VariableKind::Metric;
}

Value Placement::bufferOfVariable(train::VariableOp variable) {
  Value &buffer = state_[variable.getSymNameAttr()];
  if (buffer)
    return buffer;
  const bool ofStep = isOfStep(variable.getKind());
  return buffer = make(variable.getSymName(), plan::tensorBytes(variable.getType()),
                       ofStep ? plan::Scope::Step : plan::Scope::Plan, categoryOf(variable.getKind()), 1,
                       ofStep ? FlatSymbolRefAttr() : FlatSymbolRefAttr::get(variable.getSymNameAttr()));
}

Value Placement::bufferOfBucket(dist::BucketOp bucket) {
  Value &buffer = state_[bucket.getSymNameAttr()];
  if (buffer)
    return buffer;
  auto first = symbols_.lookup<train::VariableOp>(cast<FlatSymbolRefAttr>(bucket.getMembers()[0]).getAttr());
  const bool ofStep = isOfStep(first.getKind()), slice = bucket.isSharded();
  return buffer =
             make(bucket.getSymName(), plan::tensorBytes(slice ? bucket.getSlice() : bucket.getType()),
                  ofStep ? plan::Scope::Step : plan::Scope::Plan, categoryOf(first.getKind()), 1,
                  ofStep ? FlatSymbolRefAttr() : FlatSymbolRefAttr::get(bucket.getSymNameAttr()), slice && !ofStep);
}

Place Placement::ofState(StringAttr name) {
  if (auto bucket = symbols_.lookup<dist::BucketOp>(name))
    return {bufferOfBucket(bucket), 0, bucket.isSharded() ? 0 : plan::tensorBytes(bucket.getSlice())};
  if (auto [bucket, offset] = buckets_.find(name); bucket)
    return {bufferOfBucket(bucket), offset * bucket.getWholeType().getElementTypeBitWidth() / 8, 0};
  return {bufferOfVariable(symbols_.lookup<train::VariableOp>(name)), 0, 0};
}

Place Placement::ofWhole(dist::BucketOp bucket) { return {bufferOfBucket(bucket), 0, 0}; }

Place Placement::ofValue(StringAttr name) {
  Value &buffer = values_[name];
  if (buffer)
    return {buffer, 0, 0};
  auto value = symbols_.lookup<dist::ValueOp>(name);
  const int64_t bytes = plan::tensorBytes(value.getType());
  if (value.getInput())
    buffer = make(name, bytes, plan::Scope::Slot, plan::Category::Inputs, inFlight_.slots(name));
  else
    buffer = make(name, bytes, value.getForStep() ? plan::Scope::Step : plan::Scope::Slot,
                  value.getBucket() ? plan::Category::Communication : plan::Category::Activations,
                  value.getForStep() ? 1 : inFlight_.slots(name));
  return {buffer, 0, 0};
}

Place Placement::ofConstant(ElementsAttr value, Location location) {
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
