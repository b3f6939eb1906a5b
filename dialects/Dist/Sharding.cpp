//===- Sharding.cpp - #dist.sharding ----------------------------------------===//
#include "dialects/Dist/Dist.h"

#include "mlir/IR/DialectImplementation.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
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
  return sharded ? failure(parser.parseKeyword("dim") || parser.parseInteger(placement.dim.emplace())) : success();
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
  }
  return success();
}
