//===- Sharding.cpp - #dist.sharding, #dist.by_rank --------------------------===//
#include "dialects/Dist/Mesh.h"

#include "mlir/IR/DialectImplementation.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace ds;
using namespace ds::dist;

#define GET_ATTRDEF_CLASSES
#include "dialects/Dist/DistAttributes.cpp.inc"

void DistDialect::addShardings() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Dist/DistAttributes.cpp.inc"
      >();
}

static ParseResult parsePlacement(AsmParser &parser, SmallVectorImpl<AxisPlacement> &placements) {
  AxisPlacement &placement = placements.emplace_back();
  const bool sharded = succeeded(parser.parseOptionalKeyword("sharded"));
  if ((!sharded && parser.parseKeyword("partial")) || parser.parseAttribute(placement.axis))
    return failure();
  if (!sharded)
    return success();
  if (parser.parseKeyword("dim") || parser.parseInteger(placement.dim.emplace()))
    return failure();
  return succeeded(parser.parseOptionalKeyword("runs")) ? parser.parseInteger(placement.runs) : success();
}

Attribute ShardingAttr::parse(AsmParser &parser, Type) {
  SmallVector<AxisPlacement> placements;
  if (parser.parseLess())
    return {};
  if (failed(parser.parseOptionalKeyword("replicated")) &&
      parser.parseCommaSeparatedList([&] { return parsePlacement(parser, placements); }))
    return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<ShardingAttr>(parser.getContext(), placements);
}

void ShardingAttr::print(AsmPrinter &printer) const {
  printer << (isReplicated() ? "<replicated" : "<");
  llvm::interleaveComma(getPlacements(), printer, [&](const AxisPlacement &placement) {
    printer << (placement.dim ? "sharded " : "partial ") << placement.axis;
    if (placement.dim)
      printer << " dim " << *placement.dim;
    if (placement.runs != 1)
      printer << " runs " << placement.runs;
  });
  printer << '>';
}

LogicalResult ShardingAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                                   ArrayRef<AxisPlacement> placements) {
  for (auto [index, placement] : llvm::enumerate(placements)) {
    for (const AxisPlacement &before : placements.take_front(index))
      if (before.axis == placement.axis) // sharding_c1
        return emitError() << "axis " << placement.axis << " stands twice";
    if (placement.dim && *placement.dim < 0) // sharding_c2
      return emitError() << "dimension " << *placement.dim << " is negative";
    if (placement.runs < 1 || (!placement.dim && placement.runs != 1)) // sharding_c2
      return emitError() << placement.runs << " runs along axis " << placement.axis
                         << "; a dimension has at least one, and terms of a sum have none";
  }
  return success();
}

/// sharding_c3 of one axis: leaves in `shape` what a rank has.
static LogicalResult cut(ds::train::VariableOp variable, MeshOp mesh, const AxisPlacement &placement,
                         MutableArrayRef<int64_t> shape) {
  const auto error = [&] { return variable.emitOpError() << "is sharded by axis " << placement.axis; };
  if (!mesh || !axisIndex(mesh, placement.axis))
    return withMesh(error() << ", which the mesh does not have", mesh);
  if (!placement.dim)
    return variable.emitOpError() << "is partial by axis " << placement.axis
                                  << "; nothing adds up what outlives a step";
  if (*placement.dim >= int64_t(shape.size()))
    return error() << " along dimension " << *placement.dim << ", and " << variable.getWholeType() << " has none";
  const int64_t ranks = axisSize(mesh, placement.axis), parts = ranks * placement.runs;
  if (shape[size_t(*placement.dim)] % parts != 0)
    return error() << ", but " << ranks << " ranks with parts of " << placement.runs << " runs do not divide the "
                   << shape[size_t(*placement.dim)] << " elements of dimension " << *placement.dim;
  shape[size_t(*placement.dim)] /= ranks;
  return success();
}

LogicalResult DistDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() != shardingAttribute)
    return success();
  auto variable = dyn_cast<ds::train::VariableOp>(op);
  auto sharding = dyn_cast<ShardingAttr>(attribute.getValue());
  if (!variable || !sharding) // sharding_c3
    return op->emitOpError() << shardingAttribute << " is a #dist.sharding of a train.variable";
  auto module = op->getParentOfType<ModuleOp>();
  SmallVector<int64_t> shape(variable.getWholeType().getShape());
  for (const AxisPlacement &placement : sharding.getPlacements())
    if (failed(cut(variable, module ? meshOf(module) : MeshOp(), placement, shape)))
      return failure();
  if (ArrayRef(shape) != variable.getTensorType().getShape())
    return op->emitOpError() << "of " << variable.getType() << " is sharded into pieces of [" << ArrayRef(shape) << "]";
  return success();
}

LogicalResult ByRankAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> values,
                                 StringAttr, ArrayRef<int64_t> steps) {
  if (values.size() != steps.size()) // by_rank_c1
    return emitError() << steps.size() << " steps for " << values.size() << " numbers";
  return success();
}
