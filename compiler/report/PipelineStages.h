//===- PipelineStages.h - how a model was cut into pipeline stages --------===//
#pragma once

#include "compiler/report/Table.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ds::report {

/// Whether the plan has several stages, or says what its one is.
inline bool hasStages(const plan::proto::Plan &plan) { return plan.pipeline().stages_size() > 0; }

/// Seconds of a stage for one micro-batch, by the cost model.
double secondsOf(const plan::proto::Stage &stage);
/// Bytes that its forward sends on, each micro-batch.
uint64_t bytesSent(const plan::proto::Stage &stage);
/// Seconds of the slowest stage, of the mean; 1 where no times are known.
double imbalance(const plan::proto::Pipeline &pipeline);

/// By variable, the stages that hold it or a part of it, ascending. A rank that runs several stages holds what one of
/// them reads for that stage.
std::vector<std::vector<uint64_t>> stagesOfVariables(const plan::proto::Plan &plan);

/// "1f1b, 2 stages, 4 micro-batches; ...".
std::string pipelineLine(const plan::proto::Plan &plan);
/// A line a stage: where it runs, its time, what it sends and keeps, where it begins and ends.
Table stageTable(const plan::proto::Plan &plan);

} // namespace ds::report
