//===- CollectiveState.cpp - state that a collective under way holds --------===//
#include "compiler/analysis/CollectiveState.h"

using namespace mlir;
using namespace ds;

/// The state that a collective goes into; none of other ops.
static SmallVector<StringAttr> targetsOf(Operation *op) {
  SmallVector<StringAttr> targets;
  auto collective = dyn_cast<dist::CollectiveOpInterface>(op);
  if (collective && collective.getIntoAttr())
    for (auto name : collective.getIntoAttr().getAsRange<FlatSymbolRefAttr>())
      targets.push_back(name.getAttr());
  return targets;
}

CollectiveState::CollectiveState(dist::CollectiveOpInterface collective, const BucketIndex &buckets)
    : buckets_(buckets) {
  for (Value input : collective.getInputs()) {
    if (auto read = input.getDefiningOp<train::ReadOp>())
      read_.insert(ownerOf(read.getVariableAttr().getAttr()));
    if (auto read = input.getDefiningOp<dist::ReadWholeOp>())
      read_.insert(read.getBucketAttr().getAttr());
  }
  for (StringAttr name : targetsOf(collective))
    written_.insert(ownerOf(name));
}

StringAttr CollectiveState::conflictWith(Operation *op) const {
  SmallVector<StringAttr> written = targetsOf(op);
  llvm::append_range(written, train::writtenVariables(op));
  for (StringAttr name : written)
    if (read_.contains(ownerOf(name)) || written_.contains(ownerOf(name)))
      return name;
  for (NamedAttribute attribute : op->getAttrDictionary())
    if (auto name = dyn_cast<FlatSymbolRefAttr>(attribute.getValue());
        name && written_.contains(ownerOf(name.getAttr())))
      return name.getAttr();
  return {};
}

StringAttr CollectiveState::ownerOf(StringAttr name) const {
  dist::BucketOp bucket = buckets_.bucketOf(name);
  return bucket ? bucket.getSymNameAttr() : name;
}
