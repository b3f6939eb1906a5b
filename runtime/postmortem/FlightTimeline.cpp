//===- FlightTimeline.cpp - the last commands of all ranks as a timeline --===//
#include "runtime/postmortem/FlightTimeline.h"

#include "runtime/device/CommandRing.h"
#include "runtime/executor/TracedTask.h"
#include "runtime/flight/FlightFile.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"
#include "runtime/postmortem/Records.h"
#include "runtime/postmortem/Standing.h"
#include "runtime/trace/Trace.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace ds::runtime {
namespace {

constexpr int64_t nsOfMs = 1000000;

void addQueue(Trace &trace, const plan::proto::Plan &plan, const FlightFile &file, uint32_t queue) {
  const plan::proto::Role &role = plan::roleOfRank(plan, file.rank);
  TraceRow &row = trace.addRow(file.rank, queue, role.queues(int(queue)).name());
  const auto add = [&](const TraceLabel &label, const CommandEntry &entry, int64_t beginMs, int64_t endMs) {
    const uint64_t microbatch = role.programs(int(entry.program)).calls(int(entry.call)).microbatch();
    row.add({&trace.addLabel(label), beginMs * nsOfMs, std::max(beginMs, endMs) * nsOfMs, entry.step, microbatch});
  };
  for (const CommandEntry &entry : file.queues[queue]) {
    const Standing standing(plan, file, queue, entry);
    const int64_t began = entry.state == CommandState::Waiting ? file.writtenMs : entry.beginMs;
    if (began > entry.waitMs)
      add({"waits", "wait", standing.op(), standing.routine()}, entry, entry.waitMs, began);
    if (entry.state != CommandState::Waiting)
      add(traceLabel(standing.command(), standing.routine(), standing.op()), entry, began,
          entry.state == CommandState::Done ? entry.endMs : file.writtenMs);
  }
}

} // namespace

std::string flightTimeline(const plan::proto::Plan &plan, const Records &records) {
  Trace trace(2 * CommandRing::capacity); // a command and its wait
  for (const RankRecord &record : records.ranks)
    for (uint32_t queue = 0; record.file && queue < record.file->queues.size(); ++queue)
      addQueue(trace, plan, *record.file, queue);
  return chromeTrace(trace.events());
}

} // namespace ds::runtime
