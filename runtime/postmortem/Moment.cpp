//===- Moment.cpp - the records as they stood at one moment ---------------===//
#include "runtime/postmortem/Moment.h"

#include "runtime/device/CommandRing.h"
#include "runtime/flight/FlightFile.h"
#include "runtime/flight/FlightRank.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/postmortem/Records.h"
#include "runtime/postmortem/Standing.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

/// The command has not begun.
void takeBack(const plan::proto::Plan &plan, FlightFile &file, uint32_t queue, CommandEntry &entry) {
  const auto entered = entranceOf(Standing(plan, file, queue, entry).command());
  for (EntranceCount &count : file.counts)
    if (entered && entry.entrance > 0 && count.queue == queue && count.kind == entered->kind &&
        count.index == entered->index)
      count.entrances = std::min(count.entrances, entry.entrance - 1);
  entry.entrance = 0;
  entry.state = CommandState::Waiting;
}

void takeBackQueue(const plan::proto::Plan &plan, FlightFile &file, uint32_t queue, int64_t momentMs) {
  std::vector<CommandEntry> &entries = file.queues[queue];
  for (CommandEntry &entry : entries)
    if (entry.beginMs > momentMs || entry.waitMs > momentMs)
      takeBack(plan, file, queue, entry);
    else if (entry.endMs > momentMs)
      entry.state = CommandState::Running;
  std::erase_if(entries, [&](const CommandEntry &entry) { return entry.waitMs > momentMs; });
}

FlightFile asOf(const plan::proto::Plan &plan, FlightFile file, int64_t momentMs) {
  for (uint32_t queue = 0; queue < file.queues.size(); ++queue)
    takeBackQueue(plan, file, queue, momentMs);
  while (file.stages.size() > 1 && file.stages.back().sinceMs > momentMs)
    file.stages.pop_back();
  return file;
}

} // namespace

int64_t momentOfTheHang(const plan::proto::Plan &plan, const Records &records) {
  int64_t first = std::numeric_limits<int64_t>::max(), moment = first;
  const auto waits = [&](int64_t begin, int64_t end) {
    if (begin >= first)
      return;
    first = begin;
    moment = begin + std::max<int64_t>(0, end - begin) / 2;
  };
  for (const RankRecord &record : records.ranks) {
    if (!record.file)
      continue;
    const FlightFile &file = *record.file;
    if (file.stage().state == HostState::Awaits)
      waits(file.stage().sinceMs, file.writtenMs);
    for (uint32_t queue = 0; queue < file.queues.size(); ++queue)
      if (const auto standing = standingOf(plan, file, queue); standing && standing->isInside())
        waits(standing->entry().beginMs, file.writtenMs);
  }
  return moment;
}

Records asOf(const plan::proto::Plan &plan, Records records, int64_t momentMs) {
  for (RankRecord &record : records.ranks)
    if (record.file && momentMs < record.file->writtenMs)
      record.file = asOf(plan, std::move(*record.file), momentMs);
  return records;
}

} // namespace ds::runtime
