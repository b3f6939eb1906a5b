//===- Pipeline.cpp - verifiers of what is said of a pipeline -------------===//
#include "dialects/Dist/Dist.h"

using namespace mlir;
using namespace ds::dist;

LogicalResult PipelineOp::verify() {
  int64_t stages = 0;
  for (Operation &op : getBody().front()) {
    ++stages;
    if (!isa<StageOp>(op)) // pipeline_c1
      return emitOpError() << "holds '" << op.getName() << "'; it describes stages";
  }
  if (stages < 2) // pipeline_c1
    return emitOpError() << "has " << stages << " dist.stage; a model that is not cut has no dist.pipeline";
  return success();
}

LogicalResult StageOp::verify() {
  if (getSent().size() != getTypes().size() || getSent().size() != getReceivers().size()) // stage_c1
    return emitOpError() << "sends " << getSent().size() << " values of " << getTypes().size() << " types to "
                         << getReceivers().size() << " stages; these must be as many";
  return success();
}
