//===- WaitGraph.cpp - which ranks wait for which, and who held up all ----===//
#include "runtime/postmortem/WaitGraph.h"

#include "runtime/device/CommandRing.h"
#include "runtime/flight/FlightFile.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"
#include "runtime/postmortem/Moment.h"
#include "runtime/postmortem/Records.h"
#include "runtime/postmortem/Standing.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

using Kind = EntranceCount::Kind;

/// How often a rank has entered a communicator or channel from a queue of the kind, whether it is in it now, and its
/// messages with each member.
struct Progress {
  uint64_t entrances = 0;
  bool inside = false;
  std::span<const PeerCount> peers = {};
};

Progress progressOf(const plan::proto::Plan &plan, const FlightFile &file, Kind kind, uint32_t index,
                    plan::proto::Queue::Kind queueKind) {
  const plan::proto::Role &role = plan::roleOfRank(plan, file.rank);
  for (const EntranceCount &count : file.counts) {
    if (count.kind != kind || count.index != index || role.queues(int(count.queue)).kind() != queueKind)
      continue;
    const auto standing = standingOf(plan, file, count.queue);
    return {count.entrances,
            standing && standing->entry().state == CommandState::Running &&
                standing->entry().entrance == count.entrances,
            count.peers};
  }
  return {};
}

double secondsSince(const FlightFile &file, int64_t sinceMs) {
  return double(std::max<int64_t>(0, file.writtenMs - sinceMs)) / 1000;
}

} // namespace

WaitGraph::WaitGraph(const plan::proto::Plan &plan, const Records &records)
    : plan_(plan), momentMs_(momentOfTheHang(plan, records)), records_(asOf(plan, records, momentMs_)) {
  for (const RankRecord &record : records_.ranks)
    ranks_.push_back(record.file ? stateOf(*record.file) : RankState{});
}

RankState WaitGraph::stateOf(const FlightFile &file) const {
  RankState state;
  const auto worksOn = [&](const OwnWork &work) {
    if (!state.own || state.own->seconds < work.seconds)
      state.own = work;
  };
  const HostStage &stage = file.stage();
  if (stage.state == HostState::Works)
    worksOn({.what = stage.work, .seconds = secondsSince(file, stage.sinceMs), .files = true});
  if (stage.state == HostState::Awaits)
    state.waits.push_back(hostWait(file));
  for (uint32_t queue = 0; queue < file.queues.size(); ++queue) {
    const auto standing = standingOf(plan_, file, queue);
    if (!standing)
      continue;
    if (standing->worksAlone())
      worksOn({.what = "is in " + standing->what() + ", " + standing->when(),
               .seconds = standing->seconds(),
               .files = standing->command().has_feed()});
    else if (standing->isInside())
      state.waits.push_back(remoteWait(*standing));
    state.standings.push_back(*standing);
  }
  return state;
}

/// Between steps. Those that have begun fewer things are behind.
RemoteWait WaitGraph::hostWait(const FlightFile &file) const {
  const HostStage &mine = file.stage();
  RemoteWait wait{.what = "between steps (" + mine.work + ")", .seconds = secondsSince(file, mine.sinceMs)};
  for (uint32_t rank = 0; rank < records_.ranks.size(); ++rank) {
    const std::optional<FlightFile> &other = records_.ranks[rank].file;
    const bool behind = !other || other->stage().number < mine.number ||
                        (other->stage().number == mine.number &&
                         (other->stage().state == HostState::Works || stillness(rank) != nullptr));
    if (behind && rank != file.rank)
      wait.behind.push_back(rank);
  }
  if (!wait.behind.empty())
    return wait;
  std::vector<bool> unheard(records_.ranks.size()); // by some rank
  for (const RankRecord &record : records_.ranks)
    for (const uint32_t rank : record.file->missed)
      unheard[rank] = true;
  for (uint32_t rank = 0; rank < unheard.size(); ++rank)
    if (unheard[rank] && !unheard[file.rank])
      wait.behind.push_back(rank);
  if (unheard[file.rank])
    wait.lost = "it has come as far as the others: what it said to them was lost on the way";
  else if (wait.behind.empty())
    wait.lost = "all ranks have come as far; the network between them has lost a message or is slower than "
                "--collective-timeout allows";
  return wait;
}

RemoteWait WaitGraph::remoteWait(const Standing &standing) const {
  const plan::proto::Command &command = standing.command();
  const uint32_t rank = standing.rank();
  RemoteWait wait{.what = "in " + standing.what() + ", " + standing.when(), .seconds = standing.seconds()};
  if (command.has_collective()) {
    const uint32_t communicator = command.collective().communicator();
    compareEntrances(wait, standing, plan::Group(plan_, communicator).ranks(rank), Kind::Collective, communicator);
  } else if (command.has_receive()) {
    const uint32_t channel = command.receive().channel();
    compareEntrances(wait, standing, {plan::senderTo(plan_, channel, rank)}, Kind::Send, channel);
  } else {
    const uint32_t channel = command.send().channel();
    compareEntrances(wait, standing, {plan::receiverOf(plan_, channel, rank)}, Kind::Receive, channel);
  }
  return wait;
}

/// The k-th entrance of this rank waits for the k-th of each other.
void WaitGraph::compareEntrances(RemoteWait &wait, const Standing &standing, const std::vector<uint32_t> &others,
                                 Kind kind, uint32_t index) const {
  const uint64_t mine = standing.entry().entrance;
  std::vector<uint32_t> gone; // have left it
  for (const uint32_t rank : others) {
    if (rank == standing.rank())
      continue;
    const std::optional<FlightFile> &file = records_.ranks[rank].file;
    const Progress other = file ? progressOf(plan_, *file, kind, index, standing.queue().kind()) : Progress{};
    if (other.entrances < mine || (other.inside && stillness(rank) != nullptr))
      wait.behind.push_back(rank);
    else if (other.entrances > mine || !other.inside)
      gone.push_back(rank);
  }
  if (!wait.behind.empty())
    return;
  const std::string me = std::to_string(standing.rank());
  if (gone.empty())
    wait.lost = (kind == Kind::Collective ? "all ranks are in it, and none comes out: the network between them"
                                          : ranksText(others) + " is in it, too: the link between them") +
                " stands still or is slower than --collective-timeout allows";
  else
    wait.lost = ranksText(gone) + (gone.size() == 1 ? " has" : " have") + " finished " +
                (kind == Kind::Send      ? "sending it"
                 : kind == Kind::Receive ? "receiving it"
                                         : "it") +
                ": a message " + (kind == Kind::Collective ? "" : "from " + ranksText(others) + " ") + "to rank " + me +
                " was lost on the way";
  if (kind == Kind::Collective)
    compareMessages(wait, standing, others, index);
}

/// All members have come to the collective. What this rank expects next of a member was sent, and is lost, or was not
/// sent yet, and the member is behind.
void WaitGraph::compareMessages(RemoteWait &wait, const Standing &standing, const std::vector<uint32_t> &members,
                                uint32_t communicator) const {
  const auto peersOf = [&](uint32_t rank) {
    return progressOf(plan_, *records_.ranks[rank].file, Kind::Collective, communicator, standing.queue().kind()).peers;
  };
  const std::span<const PeerCount> mine = peersOf(standing.rank());
  const auto me = size_t(std::ranges::find(members, standing.rank()) - members.begin());
  std::vector<uint32_t> senders, behind;
  for (size_t i = 0; i < mine.size(); ++i) {
    if (mine[i].received >= mine[i].expected)
      continue;
    const std::span<const PeerCount> theirs = peersOf(members[i]);
    (me < theirs.size() && theirs[me].sent > mine[i].received ? senders : behind).push_back(members[i]);
  }
  if (!senders.empty()) {
    wait.lost = "a message from " + ranksText(senders) + " to rank " + std::to_string(standing.rank()) +
                " was lost on the way, while all ranks are in it or have finished it";
  } else if (!behind.empty()) {
    wait.lost.clear();
    wait.behind = behind;
  }
}

const Stillness *WaitGraph::stillness(uint32_t rank) const {
  const std::optional<FlightFile> &file = records_.ranks[rank].file;
  if (!file)
    return nullptr;
  const auto covers = [&](const Stillness &still) {
    return still.untilMs - still.ms <= momentMs_ && momentMs_ <= still.untilMs;
  };
  const auto found = std::ranges::find_if(file->stills, covers);
  return found != file->stills.end() ? &*found : nullptr;
}

/// Whether what a rank does on its own, rather than what it waits for, explains that others wait for it.
bool WaitGraph::holdsUp(uint32_t rank) const {
  const RankState &state = ranks_[rank];
  const bool waits = std::ranges::any_of(state.waits, [](const RemoteWait &wait) { return !wait.behind.empty(); });
  if (!waits || !records_.ranks[rank].file || stillness(rank) != nullptr)
    return true;
  double longest = 0;
  for (const RemoteWait &wait : state.waits)
    longest = std::max(longest, wait.seconds);
  return state.own && state.own->seconds >= 1 && state.own->seconds >= longest / 2;
}

Culprit WaitGraph::blame(uint32_t rank) const {
  const RankRecord &record = records_.ranks[rank];
  const RankState &state = ranks_[rank];
  const std::string name = "rank " + std::to_string(rank);
  if (!record.file)
    return {Blame::NoRecord,
            {rank},
            name + (record.trouble.empty() ? " left no record: it was stopped or killed, its host is gone, or its file "
                                             "was not copied here"
                                           : " left no record that can be used (" + record.trouble + ")")};
  if (const Stillness *still = stillness(rank))
    return {Blame::Still,
            {rank},
            name + " stood still for " + secondsText(double(still->ms) / 1000) +
                " and wrote its record when it went on: its process was stopped, or its host was"};
  if (state.own)
    return {state.own->files ? Blame::Files : Blame::Works,
            {rank},
            name + " " + state.own->what + ", for " + secondsText(state.own->seconds)};
  for (const RemoteWait &wait : state.waits)
    if (!wait.lost.empty())
      return {Blame::Lost,
              {rank},
              name + " has been " + wait.what + " for " + secondsText(wait.seconds) + ", but " + wait.lost};
  for (const Standing &standing : state.standings)
    return {Blame::Stands, {rank}, name + "'s queue " + standing.queue().name() + " " + standing.sentence()};
  return {Blame::Stands, {rank}, name + " has ended what it was given (" + record.file->stage().work + ")"};
}

/// Those that somebody waits for and that wait for nobody.
std::vector<Culprit> WaitGraph::culprits() const {
  std::vector<bool> awaited(ranks_.size());
  std::vector<uint32_t> waiting;
  std::vector<Culprit> found;
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank)
    for (const RemoteWait &wait : ranks_[rank].waits) {
      for (const uint32_t behind : wait.behind)
        awaited[behind] = true;
      if (!wait.behind.empty())
        waiting.push_back(rank);
    }
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    const bool lost =
        std::ranges::any_of(ranks_[rank].waits, [](const RemoteWait &wait) { return !wait.lost.empty(); });
    if (holdsUp(rank) && (awaited[rank] || lost || (waiting.empty() && ranks_[rank].own)))
      found.push_back(blame(rank));
  }
  std::ranges::stable_sort(found, {}, &Culprit::blame);
  if (found.empty() && !waiting.empty()) {
    const auto [end, same] = std::ranges::unique(waiting);
    waiting.erase(end, same);
    found.push_back({Blame::Circle, waiting, ranksText(waiting) + " wait for each other in a circle"});
  }
  return found;
}

} // namespace ds::runtime
