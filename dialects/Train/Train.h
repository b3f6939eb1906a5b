//===- Train.h - the train dialect ----------------------------------------===//
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "llvm/ADT/BitVector.h"

namespace ds::train {

/// Ops that work element by element on operands that broadcast to the result's shape.
template <typename ConcreteType> class Elementwise : public mlir::OpTrait::TraitBase<ConcreteType, Elementwise> {};

/// What reads and writes of variables act on, so that they keep their order.
struct VariableResource : public mlir::SideEffects::Resource::Base<VariableResource> {
  llvm::StringRef getName() final { return "train.variable"; }
};

} // namespace ds::train

#include "dialects/Train/TrainDialect.h.inc"
#include "dialects/Train/TrainEnums.h.inc"
#include "dialects/Train/TrainInterfaces.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Train/TrainAttributes.h.inc"
#define GET_OP_CLASSES
#include "dialects/Train/TrainOps.h.inc"

namespace ds::train {

/// NumPy's broadcast of two shapes, or nothing.
std::optional<llvm::SmallVector<int64_t>> broadcastShapes(llvm::ArrayRef<int64_t> lhs, llvm::ArrayRef<int64_t> rhs);

/// Whether a tensor of the dialect may have this element type.
bool isElementType(mlir::Type type);

/// Whether it is a float of 16 bits: bf16 or f16.
bool isNarrowFloat(mlir::Type type);

/// `type` in the element type that statistics and losses of such values have: f32 for 16 bits, else its own.
mlir::RankedTensorType statisticsType(mlir::RankedTensorType type);

/// Appends `type` to `types`, in f32 where an op is `wide`; reports where `wide` stands on anything but bf16 or f16.
mlir::LogicalResult addWidened(std::optional<mlir::Location> location, mlir::RankedTensorType type, bool wide,
                               llvm::SmallVectorImpl<mlir::Type> &types);

/// The names of the variables that an op writes.
llvm::SmallVector<mlir::StringAttr, 3> writtenVariables(mlir::Operation *op);

/// Module attribute, #train.numerics: how the results compare with those of one rank.
inline constexpr llvm::StringLiteral numericsAttribute = "train.numerics";
Numerics numericsOf(mlir::ModuleOp module);
/// For the pass that makes the change; what was worse already stays.
void raiseNumerics(mlir::ModuleOp module, Numerics numerics);

/// Unit attribute of a module: each update is of the gradient of the step before (ds-delay-updates), so results are
/// other ones than without, on one rank too.
inline constexpr llvm::StringLiteral staleAttribute = "train.stale";

/// Attribute of a train.gather until it is differentiated: the index, an i64, at which the data gets no gradient. Cf.
/// torch.nn.Embedding's padding_idx.
inline constexpr llvm::StringLiteral paddingAttribute = "train.padding_index";

/// Builds an op whose result types are inferred. Where `OpTy::create` would abort on operands that break a constraint,
/// this reports the constraint at `location` and returns null. For importers, whose input is not to be trusted.
template <typename OpTy>
OpTy tryCreate(mlir::OpBuilder &builder, mlir::Location location, mlir::ValueRange operands,
               llvm::ArrayRef<mlir::NamedAttribute> attributes = {}) {
  mlir::OperationState state(location, OpTy::getOperationName());
  state.addOperands(operands);
  mlir::DictionaryAttr dictionary = builder.getDictionaryAttr(attributes);
  auto complain = [&] { return mlir::emitError(location); };
  mlir::OpaqueProperties properties = nullptr;
  if constexpr (!std::is_same_v<typename OpTy::Properties, mlir::EmptyProperties>) {
    auto &typed = state.getOrAddProperties<typename OpTy::Properties>();
    if (failed(OpTy::setPropertiesFromAttr(typed, dictionary, complain)))
      return {};
    properties = &typed;
  } else {
    state.addAttributes(attributes);
  }
  llvm::SmallVector<mlir::Type> types;
  if (failed(OpTy::inferReturnTypes(builder.getContext(), location, operands, dictionary, properties, {}, types)))
    return {};
  state.addTypes(types);
  return mlir::cast<OpTy>(builder.create(state));
}

} // namespace ds::train
