//===- PipelineStages.cpp - how a model was cut into pipeline stages ------===//
#include "compiler/report/PipelineStages.h"

#include "compiler/report/Facts.h"
#include "compiler/report/Sharing.h"
#include "compiler/report/Table.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ds::report {
namespace {

using plan::proto::Pipeline;
using plan::proto::Plan;
using plan::proto::Role;
using plan::proto::Stage;

/// By variable, the stages of a role whose forwards read it.
std::map<uint32_t, std::set<uint64_t>> readersOf(const Plan &plan, const Role &role) {
  std::map<uint32_t, uint32_t> variableIn; // by reference value
  for (const plan::proto::ReferenceOp &op : plan.reference().ops())
    if (op.variables_size() == 1 && op.results_size() == 1)
      variableIn[op.results(0)] = op.variables(0);
  std::map<uint32_t, std::set<uint64_t>> readers;
  for (const plan::proto::Routine &routine : role.routines()) {
    if (routine.phase() != plan::proto::Routine::FORWARD)
      continue;
    for (const plan::proto::Command &command : routine.commands())
      for (uint32_t index : command.reference())
        for (uint32_t operand : plan.reference().ops(int(index)).operands())
          if (const auto variable = variableIn.find(operand); variable != variableIn.end())
            readers[variable->second].insert(routine.stage());
  }
  return readers;
}

} // namespace

double secondsOf(const Stage &stage) {
  return stage.forward_seconds() + stage.backward_seconds() + stage.weight_seconds();
}

uint64_t bytesSent(const Stage &stage) {
  uint64_t bytes = 0;
  for (const plan::proto::SentValue &sent : stage.sent())
    bytes += sent.bytes();
  return bytes;
}

double imbalance(const Pipeline &pipeline) {
  double sum = 0, most = 0;
  for (const Stage &stage : pipeline.stages()) {
    sum += secondsOf(stage);
    most = std::max(most, secondsOf(stage));
  }
  return sum > 0 ? most * pipeline.stages_size() / sum : 1;
}

std::vector<std::vector<uint64_t>> stagesOfVariables(const Plan &plan) {
  std::vector<std::set<uint64_t>> stages(size_t(plan.variables_size()));
  for (const Role &role : plan.roles()) {
    const uint64_t at = plan::axisCoordinate(plan.world(), "pipe", role.ranks(0));
    const auto readers =
        plan.pipeline().chunks() > 1 ? readersOf(plan, role) : std::map<uint32_t, std::set<uint64_t>>();
    for (uint32_t variable : variablesHeld(plan, role))
      if (const auto known = readers.find(variable); known != readers.end())
        stages[variable].insert(known->second.begin(), known->second.end());
      else
        stages[variable].insert(at);
  }
  std::vector<std::vector<uint64_t>> result;
  for (const std::set<uint64_t> &one : stages)
    result.emplace_back(one.begin(), one.end());
  return result;
}

std::string pipelineLine(const Plan &plan) {
  const Pipeline &pipeline = plan.pipeline();
  std::array<char, 32> slowest{};
  std::snprintf(slowest.data(), slowest.size(), "%.2f", imbalance(pipeline));
  return pipeline.schedule() + ", " + plural(uint64_t(pipeline.stages_size()), "stage") +
         (pipeline.chunks() > 1 ? ", " + grouped(pipeline.chunks()) + " on each rank" : "") + ", " +
         plural(plan.training().accumulation_steps(), "micro-batch", "es") + "; bubble " +
         percentText(pipeline.bubble_fraction()) + " of a step, slowest stage " + slowest.data() +
         " times the mean, by the cost model";
}

Table stageTable(const Plan &plan) {
  const Pipeline &pipeline = plan.pipeline();
  double all = 0, weights = 0;
  for (const Stage &stage : pipeline.stages()) {
    all += secondsOf(stage);
    weights += stage.weight_seconds();
  }
  Table::Row head{"stage", "pipe", "forward", "backward"};
  if (weights > 0)
    head.emplace_back("weight gradients");
  for (const char *title : {"of the mean", "sends", "bytes", "in flight", "first op", "last op"})
    head.emplace_back(title);
  Table table(head, std::vector<bool>(head.size() - 2, true));
  const uint64_t ranks = worldSize(plan).pipe;
  for (int i = 0; i < pipeline.stages_size(); ++i) {
    const Stage &stage = pipeline.stages(i);
    Table::Row row{grouped(uint64_t(i)), grouped(uint64_t(i) % ranks), secondsText(stage.forward_seconds()),
                   secondsText(stage.backward_seconds())};
    if (weights > 0)
      row.push_back(secondsText(stage.weight_seconds()));
    row.push_back(all > 0 ? percentText(secondsOf(stage) * pipeline.stages_size() / all) : "");
    row.push_back(plural(uint64_t(stage.sent_size()), "tensor"));
    row.push_back(grouped(bytesSent(stage)));
    row.push_back(grouped(stage.microbatches_in_flight()));
    row.push_back(stage.first_op());
    row.push_back(stage.last_op());
    table.add(std::move(row));
  }
  return table;
}

} // namespace ds::report
