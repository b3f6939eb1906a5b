//===- Buckets.cpp - verifiers of buckets and of tensors in them ----------===//
#include "dialects/Dist/Mesh.h"

using namespace mlir;
using namespace ds::dist;

RankedTensorType BucketOp::getStateType() { return getSliceType(); }

/// Tensors at offsets of a flat one: ascending, apart, within.
static bool liesWithin(ArrayRef<int64_t> offsets, ArrayRef<int64_t> counts, int64_t size) {
  int64_t end = 0;
  for (auto [offset, count] : llvm::zip(offsets, counts)) {
    if (offset < end || count > size || offset > size - count)
      return false;
    end = offset + count;
  }
  return true;
}

LogicalResult BucketOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto mesh = symbols.lookupNearestSymbolFrom<MeshOp>(*this, getMeshAttr());
  if (!mesh || !axisIndex(mesh, getAxis())) // bucket_c1
    return withMesh(emitOpError() << getMeshAttr() << " is not a dist.mesh with an axis \"" << getAxis() << "\"", mesh);
  const int64_t ranks = axisSize(mesh, getAxis());
  const RankedTensorType whole = getWholeType(), slice = getSliceType();
  const bool flat = whole.getRank() == 1 && slice.getRank() == 1 && whole.hasStaticShape() && slice.hasStaticShape();
  if (!flat || whole.getElementType() != slice.getElementType() || // bucket_c1
      slice.getNumElements() * ranks != whole.getNumElements())
    return withMesh(emitOpError() << whole << " is not " << ranks << " slices of " << slice, mesh);
  if (getMembers().size() != getOffsets().size()) // bucket_c2
    return emitOpError() << "has " << getMembers().size() << " members and " << getOffsets().size() << " offsets";
  SmallVector<int64_t> counts;
  for (FlatSymbolRefAttr name : getMembers().getAsRange<FlatSymbolRefAttr>()) {
    auto member = dyn_cast_or_null<train::StateOpInterface>(symbols.lookupNearestSymbolFrom(*this, name));
    if (!member || member.getStateType().getElementType() != whole.getElementType()) // bucket_c2
      return withDeclaration(emitOpError() << "member " << name << " is not a variable of " << whole.getElementType(),
                             member);
    counts.push_back(member.getStateType().getNumElements());
  }
  if (!liesWithin(getOffsets(), counts, whole.getNumElements())) // bucket_c2
    return emitOpError() << "members at [" << getOffsets() << "] overlap, or pass the end of " << whole;
  if (slice.getNumElements() % smallestPart != 0 ||
      llvm::any_of(getOffsets(), [](int64_t offset) { return offset % block != 0; })) // bucket_c3
    return emitOpError() << "slices of " << slice.getNumElements() << " elements must be multiples of " << smallestPart
                         << ", and offsets [" << getOffsets() << "] of " << block;
  if (isSharded() && getSharding() != ShardingAttr::getSharded(getAxisAttr(), 0)) // bucket_c4
    return emitOpError() << "has sharding " << getSharding() << "; it must be replicated, or sharded by axis \""
                         << getAxis() << "\" alone, along dimension 0";
  return success();
}

int64_t BucketOp::getPart() {
  const int64_t slice = getSliceType().getNumElements();
  return std::min(block, slice & -slice);
}

int64_t BucketOp::sliceElements(int64_t elements, int64_t ranks) {
  int64_t part = block, slice = 0;
  for (;; part /= 2) {
    slice = std::max<int64_t>(1, llvm::divideCeil(elements, ranks * part)) * part;
    if (part == smallestPart || (slice * ranks - elements) * 256 <= elements)
      return slice;
  }
}

LogicalResult ReadWholeOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto bucket = symbols.lookupNearestSymbolFrom<BucketOp>(*this, getBucketAttr());
  if (!bucket || bucket.isSharded() || bucket.getType() != getResult().getType()) // read_whole_c1
    return withDeclaration(
        emitOpError() << getBucketAttr() << " is not a replicated dist.bucket of " << getResult().getType(), bucket);
  return success();
}

LogicalResult ViewOp::verify() {
  auto input = cast<RankedTensorType>(getInput().getType()), result = cast<RankedTensorType>(getResult().getType());
  if (input.getRank() != 1 || input.getElementType() != result.getElementType()) // view_c1
    return emitOpError() << "views " << input << " as " << result << "; the input must be flat and of one element type";
  if (!liesWithin({static_cast<int64_t>(getOffset())}, {result.getNumElements()}, input.getNumElements())) // view_c2
    return emitOpError() << result.getNumElements() << " elements at " << static_cast<int64_t>(getOffset())
                         << " are not within " << input;
  return success();
}

LogicalResult PackOp::verify() {
  auto result = cast<RankedTensorType>(getResult().getType());
  SmallVector<int64_t> counts;
  bool alike = result.getRank() == 1 && getInputs().size() == getOffsets().size();
  for (Value input : getInputs()) {
    auto type = cast<RankedTensorType>(input.getType());
    alike &= type.getElementType() == result.getElementType();
    counts.push_back(type.getNumElements());
  }
  if (!alike) // pack_c1
    return emitOpError() << "lays " << getInputs().size() << " inputs at " << getOffsets().size() << " offsets into "
                         << result << "; the result must be flat and all of one element type";
  if (!liesWithin(getOffsets(), counts, result.getNumElements())) // pack_c2
    return emitOpError() << "inputs at [" << getOffsets() << "] overlap, or pass the end of " << result;
  return success();
}
