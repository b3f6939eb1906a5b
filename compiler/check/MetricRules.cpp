//===- MetricRules.cpp - a metric is the scalar that it is called after ---===//
#include "compiler/check/MetricRules.h"

#include "core/DType.h"
#include "kernels/ElementwiseProgram.h"
#include "runtime/plan/world/Mesh.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ds::check {

namespace {

/// What the reference program leaves in the variable of a metric's name; unknown where it has none.
uint32_t expectedOf(const RankMemory &memory, const proto::Metric &metric) {
  const proto::Plan &plan = memory.plan();
  for (int v = 0; v < plan.variables_size(); ++v) {
    if (plan.variables(v).name() != metric.name())
      continue;
    const StateChanges::Change change = memory.context.changes.of(uint32_t(v));
    if (change.how == StateChanges::Kept)
      return Values::unknown;
    const bool isSumOverRanks = change.how == StateChanges::Accumulated && memory.context.program.name() == "evaluate";
    if (!isSumOverRanks || plan::batchRanks(plan) == 1)
      return change.value;
    const proto::Variable &sum = plan.variables(v);
    const uint32_t parts[] = {change.value, memory.values().constant(double(plan::batchRanks(plan)), sum.dtype())};
    return memory.values().apply(int64_t(kernels::ElementwiseOp::Div), sum.dtype(), parts, elementsIn(shapeOf(sum)));
  }
  return Values::unknown;
}

/// Names of variables that are metrics (plan.proto).
constexpr std::string_view metricNames[] = {"loss", "grad_norm", "lr", "loss_scale", "skipped", "targets"};

void requireAll(const RankMemory &memory) {
  const proto::Program &program = memory.context.program;
  const proto::Plan &plan = memory.plan();
  for (int v = 0; v < plan.variables_size(); ++v) {
    const std::string &name = plan.variables(v).name();
    const StateChanges::How how = memory.context.changes.of(uint32_t(v)).how;
    const bool isYielded = how == StateChanges::Accumulated || how == StateChanges::Stored; // no parameter of that name
    if (isYielded && std::ranges::count(metricNames, name) > 0 &&
        std::ranges::count(program.metrics(), name, &proto::Metric::name) == 0)
      throw Refusal{"meaning", "program " + program.name() + ": the reference program yields " + name +
                                   ", which is no metric of role " + memory.role().name() + ", which has rank 0"};
  }
}

std::string nameOf(proto::DType dtype) { return std::string(name(*dtypeFromNumber(dtype))); } // the reader knows it

/// The host reads the bytes as what the metric says.
void requireType(const RankMemory &memory, const proto::Metric &metric) {
  for (const proto::Variable &variable : memory.plan().variables())
    if (variable.name() == metric.name() && variable.dtype() != metric.source().dtype())
      throw Refusal{"meaning", "program " + memory.context.program.name() + ": metric " + metric.name() +
                                   " is read as " + nameOf(metric.source().dtype()) + ", but is " +
                                   nameOf(variable.dtype())};
}

void requireMetric(RankMemory &memory, const proto::Metric &metric) {
  requireType(memory, metric);
  const std::string what = "program " + memory.context.program.name() + ": metric " + metric.name() + " is read from " +
                           memory.nameOf(metric.source().buffer());
  const uint32_t value = memory.valueIn(metric.source(), 0), expected = expectedOf(memory, metric);
  if (!mayBe(value, expected))
    throw Refusal{"meaning",
                  what + ", which holds " + memory.values().name(value) + ", not " + memory.values().name(expected)};
  const Range range = memory.rangeOf(metric.source(), 0);
  const uint64_t last = memory.context.changes.microbatches() - 1;
  memory.shadow(range.arena).histories(range.begin, range.end, [&](const Segment &segment) {
    const Content &content = segment.content;
    if (content.kind == Content::Undefined || content.buffer != metric.source().buffer())
      throw Refusal{"value", what + ", which does not hold it at the end"};
    const std::optional<uint64_t> of = RankMemory::microbatchOf(content, content.generation);
    if (memory.context.changes.isOfMicrobatch(value) && of != last)
      throw Refusal{"value",
                    what + ", which holds " +
                        (of ? "that of micro-batch " + std::to_string(*of) : "that of several micro-batches or ranks") +
                        ", not of the last one, " + std::to_string(last)};
  });
}

} // namespace

void requireMetrics(RankMemory &memory) {
  if (memory.rank == 0)
    requireAll(memory);
  for (const proto::Metric &metric : memory.context.program.metrics())
    requireMetric(memory, metric);
}

} // namespace ds::check
