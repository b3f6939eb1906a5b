//===- CheckProgress.cpp - every run of every program comes to its end ----===//
//
// Plays a run of all roles together without doing anything: queues take their commands in order, waits look at
// counters, signals raise them, and a message or a collective goes on when all roles that meet there have come to it.
// Counters only rise and who has come stays, so a condition that holds once holds for ever and the order in which
// queues are tried does not matter: if this run gets stuck, every run does, and if it ends, every run does. A sender
// waits for its receiver here, as in one process; a transport that buffers messages only waits less. Linear in the
// commands that wait, signal or meet.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/PlanChecks.h"
#include "runtime/plan/RolePeers.h"
#include "runtime/plan/plan.pb.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ds::plan {
namespace {

/// A queue of a role.
struct Place {
  int role;
  uint32_t queue;
};

/// What a role has to do with a channel, or with a communicator on one kind of queue.
struct Meeting {
  int role = 0;
  std::string name;
  uint64_t arrived = 0;        // messages or collectives that the role has come to
  std::vector<Meeting *> with; // the same of the roles that it meets there
  std::vector<Place> sleepers; // whoever waits for this role to come
};

/// A command that waits, signals or meets.
struct Stop {
  int command;
  Meeting *meeting; // or nullptr
};

/// Where a queue stands in a run: the next of its stops.
struct Cursor {
  int call = 0;
  size_t stop = 0;
  bool arrived = false; // at the meeting of that stop
};

/// One role in the run.
struct Player {
  const proto::Role *role;
  const proto::Program *program;
  std::vector<std::vector<Stop>> stops; // by routine and queue
  std::vector<Cursor> cursors;          // by queue
  std::vector<uint64_t> events;
  std::vector<std::vector<uint32_t>> sleepers; // by event: queues that it holds back
};

class Run {
public:
  Run(const proto::Plan &plan, const std::string &program, RolePeers &roles) : plan_(plan), roles_(roles) {
    for (int r = 0; r < plan.roles_size(); ++r)
      addPlayer(r, program);
    for (auto &[key, meeting] : meetings_)
      findOthers(key, meeting);
  }

  /// Goes as far as it goes; throws when that is not the end.
  void play() {
    for (int r = 0; r < int(players_.size()); ++r)
      for (uint32_t queue = 0; queue < players_[size_t(r)].cursors.size(); ++queue)
        ready_.push_back({r, queue});
    while (!ready_.empty()) {
      const Place place = ready_.back();
      ready_.pop_back();
      advance(place);
    }
    refuseStuck();
  }

private:
  /// Role, channel or -1, communicator, kind of queue.
  using Key = std::array<int, 4>;

  void addPlayer(int r, const std::string &name) {
    const proto::Role &role = plan_.roles(r);
    Player &player = players_.emplace_back();
    player.role = &role;
    for (const proto::Program &program : role.programs())
      if (program.name() == name)
        player.program = &program;
    player.stops.resize(size_t(role.routines_size()) * size_t(role.queues_size()));
    player.cursors.resize(size_t(role.queues_size()));
    player.events.resize(size_t(role.events_size()));
    player.sleepers.resize(size_t(role.events_size()));
    for (int i = 0; i < role.routines_size(); ++i)
      for (int c = 0; c < role.routines(i).commands_size(); ++c) {
        const proto::Command &command = role.routines(i).commands(c);
        Meeting *meeting = meetingOf(r, command);
        if (meeting != nullptr || command.waits_size() > 0 || command.signals_size() > 0)
          player.stops[size_t(i) * player.cursors.size() + command.queue()].push_back({c, meeting});
      }
  }

  Meeting *meetingOf(int role, const proto::Command &command) {
    if (command.has_send() || command.has_receive()) {
      const uint32_t channel = command.has_send() ? command.send().channel() : command.receive().channel();
      Meeting &meeting = meetings_[{role, int(channel), 0, 0}];
      meeting.role = role;
      meeting.name = describe("channel", channel, plan_.channels(int(channel)).name());
      return &meeting;
    }
    if (!command.has_collective() || plan_.roles_size() < 2) // ranks of one role come by themselves
      return nullptr;
    const auto communicator = int(command.collective().communicator());
    Meeting &meeting = meetings_[{role, -1, communicator, plan_.roles(role).queues(int(command.queue())).kind()}];
    meeting.role = role;
    meeting.name = describe("communicator", communicator, plan_.communicators(communicator).name());
    return &meeting;
  }

  void findOthers(const Key &key, Meeting &meeting) {
    const auto &[role, channel, communicator, kind] = key;
    const RolePairs pairs =
        channel >= 0 ? roles_.onChannel(uint32_t(channel)) : roles_.inCommunicator(uint32_t(communicator));
    for (const auto &[a, b] : pairs)
      if (a == role || b == role)
        if (const auto other = meetings_.find({a == role ? b : a, channel, communicator, kind});
            other != meetings_.end())
          meeting.with.push_back(&other->second);
  }

  static uint64_t microbatch(const Player &player, const Cursor &cursor) {
    return player.program->calls(cursor.call).microbatch();
  }
  static const std::vector<Stop> &stops(const Player &player, const Cursor &cursor, uint32_t queue) {
    return player.stops[size_t(player.program->calls(cursor.call).routine()) * player.cursors.size() + queue];
  }
  static const proto::Command &commandAt(const Player &player, const Cursor &cursor, const Stop &stop) {
    return player.role->routines(int(player.program->calls(cursor.call).routine())).commands(stop.command);
  }

  /// The event that holds the queue back, or nullptr.
  static const proto::Wait *blocker(const Player &player, const Cursor &cursor, const Stop &stop) {
    for (const proto::Wait &wait : commandAt(player, cursor, stop).waits())
      if (player.events[wait.event()] + wait.delay() < microbatch(player, cursor) + 1)
        return &wait;
    return nullptr;
  }

  /// Whoever has not come to the meeting that a queue stands at, or nullptr.
  static Meeting *absent(const Meeting &meeting) {
    for (Meeting *other : meeting.with)
      if (other->arrived < meeting.arrived)
        return other;
    return nullptr;
  }

  void advance(Place place) {
    Player &player = players_[size_t(place.role)];
    Cursor &cursor = player.cursors[place.queue];
    for (; cursor.call < player.program->calls_size(); ++cursor.call, cursor.stop = 0)
      for (; cursor.stop < stops(player, cursor, place.queue).size(); ++cursor.stop, cursor.arrived = false) {
        const Stop &stop = stops(player, cursor, place.queue)[cursor.stop];
        if (const proto::Wait *wait = blocker(player, cursor, stop)) {
          player.sleepers[wait->event()].push_back(place.queue);
          return;
        }
        if (stop.meeting != nullptr && !meet(place, *stop.meeting, cursor))
          return;
        for (uint32_t event : commandAt(player, cursor, stop).signals())
          raise(place.role, event, microbatch(player, cursor) + 1);
      }
  }

  /// Whether all have come; if not, the queue sleeps until the next has.
  bool meet(Place place, Meeting &meeting, Cursor &cursor) {
    if (!std::exchange(cursor.arrived, true)) {
      ++meeting.arrived;
      ready_.insert(ready_.end(), meeting.sleepers.begin(), meeting.sleepers.end());
      meeting.sleepers.clear();
    }
    Meeting *other = absent(meeting);
    if (other != nullptr)
      other->sleepers.push_back(place);
    return other == nullptr;
  }

  void raise(int role, uint32_t event, uint64_t value) {
    Player &player = players_[size_t(role)];
    player.events[event] = std::max(player.events[event], value);
    for (uint32_t queue : player.sleepers[event])
      ready_.push_back({role, queue});
    player.sleepers[event].clear();
  }

  bool isStuck(Place place) const {
    const Player &player = players_[size_t(place.role)];
    return player.cursors[place.queue].call < player.program->calls_size();
  }

  /// The queue of a role that is stuck and has a stop for which `holds`, or nothing.
  template <typename Holds> std::optional<Place> stuckQueue(int role, Holds holds) const {
    const Player &player = players_[size_t(role)];
    for (size_t i = 0; i < player.stops.size(); ++i)
      if (const Place place{role, uint32_t(i % player.cursors.size())}; isStuck(place))
        for (const Stop &stop : player.stops[i])
          if (holds(player.role->routines(int(i / player.cursors.size())).commands(stop.command), stop))
            return place;
    return std::nullopt;
  }

  /// The queue that one which stands still waits for, if that stands still too.
  std::optional<Place> heldBackBy(Place place) const {
    const auto &[player, stop] = standing(place);
    if (const proto::Wait *wait = blocker(*player, player->cursors[place.queue], *stop))
      return stuckQueue(place.role, [&](const proto::Command &command, const Stop &) {
        return std::ranges::find(command.signals(), wait->event()) != command.signals().end();
      });
    const Meeting *other = absent(*stop->meeting);
    return stuckQueue(other->role, [&](const proto::Command &, const Stop &theirs) { return theirs.meeting == other; });
  }

  /// Goes from one that stands still to the one that it waits for, until that is nobody or they are a circle; of a
  /// circle it names one that waits for another role, if there is any.
  void refuseStuck() const {
    std::optional<Place> place;
    for (int r = 0; r < int(players_.size()) && !place; ++r)
      place = stuckQueue(r, [](const proto::Command &, const Stop &) { return true; });
    if (!place)
      return;
    std::set<std::pair<int, uint32_t>> seen;
    std::optional<Place> meeting;
    for (std::optional<Place> next = place; next; next = heldBackBy(*next)) {
      place = next;
      if (!seen.emplace(place->role, place->queue).second) {
        place = meeting.value_or(*place);
        break;
      }
      if (const auto &[player, stop] = standing(*place);
          blocker(*player, player->cursors[place->queue], *stop) == nullptr)
        meeting = place;
    }
    const auto &[player, stop] = standing(*place);
    const Cursor &cursor = player->cursors[place->queue];
    const proto::Wait *wait = blocker(*player, cursor, *stop);
    refuse(
        placeInRun(plan_, *player->role, *player->program, cursor.call, stop->command),
        "queue " + player->role->queues(int(place->queue)).name() + " would wait for ever for " +
            (wait != nullptr ? eventText(*player, *wait, microbatch(*player, cursor)) : meetingText(*stop->meeting)));
  }

  std::pair<const Player *, const Stop *> standing(Place place) const {
    const Player &player = players_[size_t(place.role)];
    const Cursor &cursor = player.cursors[place.queue];
    return {&player, &stops(player, cursor, place.queue)[cursor.stop]};
  }

  static std::string eventText(const Player &player, const proto::Wait &wait, uint64_t microbatch) {
    return describe("event", wait.event(), player.role->events(int(wait.event())).name()) + " to reach " +
           std::to_string(microbatch + 1 - wait.delay()) + "; it stays at " +
           std::to_string(player.events[wait.event()]);
  }

  static std::string meetingText(const Meeting &meeting) {
    return "the other end of " + meeting.name + ", which comes " + std::to_string(absent(meeting)->arrived) +
           " times there, not " + std::to_string(meeting.arrived);
  }

  const proto::Plan &plan_;
  RolePeers &roles_;
  std::deque<Player> players_; // by role
  std::map<Key, Meeting> meetings_;
  std::vector<Place> ready_;
};

} // namespace

void checkProgress(const proto::Plan &plan, RolePeers &meetings) {
  for (const proto::Program &program : plan.roles(0).programs()) // all have the same
    Run(plan, program.name(), meetings).play();
}

} // namespace ds::plan
