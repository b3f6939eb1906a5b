//===- Timeline.cpp - a run of a program, played without doing anything ------===//
//
// Queues take their commands in order; waits look at counters that only rise, and a collective goes on when all roles
// that meet on its communicator have come to it. Both conditions stay true once they are, so the order in which queues
// are tried does not matter: if this run ends, every run does, and if it gets stuck, every run does.
//
//===----------------------------------------------------------------------===//
#include "compiler/check/Timeline.h"

#include "runtime/plan/Groups.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace ds::check {

namespace {

constexpr uint32_t none = UINT32_MAX;

std::string commandName(const proto::Command &command) {
  switch (command.kind_case()) {
  case proto::Command::kKernel:
    return command.kernel().kernel();
  case proto::Command::kCollective:
    return proto::CollectiveCommand::Kind_Name(command.collective().kind());
  case proto::Command::kFill:
    return "fill";
  case proto::Command::kCopy:
    return "copy";
  case proto::Command::kFeed:
    return "feed";
  default:
    return "nothing";
  }
}

/// What all ranks that meet in a collective must agree on.
std::string agreement(const proto::CollectiveCommand &collective) {
  std::string text = proto::CollectiveCommand::Kind_Name(collective.kind());
  for (const proto::CollectivePart &part : collective.parts()) {
    int64_t count = 1;
    for (int64_t dim : part.source().shape())
      count *= dim;
    text += " of " + std::to_string(count) + " " + proto::DType_Name(part.source().dtype());
  }
  return text;
}

} // namespace

std::string placeOf(const proto::Plan &plan, const proto::Role &role, const std::string &program,
                    const Instance &instance) {
  std::string text = "program " + program + ", call " + std::to_string(instance.call) + " (routine " +
                     role.routines(int(instance.routine)).name() + ", micro-batch " +
                     std::to_string(instance.microbatch) + "), command " + std::to_string(instance.index) + " (" +
                     commandName(*instance.command);
  if (instance.command->reference_size() > 0) {
    const std::string &name = plan.reference().ops(int(instance.command->reference(0))).name();
    text += name.empty() ? "" : " of " + name;
  }
  return text + ")" + (plan.roles_size() > 1 ? " of role " + role.name() : "");
}

/// Roles that share groups of a communicator, and how far each has come with its collectives.
struct Meeting {
  std::vector<uint32_t> leader;                     ///< by role: the first role that it meets, directly or not
  std::vector<std::vector<std::string>> agreements; ///< by role: what it has come to, in order
  std::vector<std::string> places;                  ///< by role: where it came to the last of them
};

class Play {
public:
  Play(const proto::Plan &plan, const std::string &program) : plan_(plan), programName_(program) {
    players_.reserve(size_t(plan.roles_size()));
    for (const proto::Role &role : plan.roles())
      players_.push_back(prepare(role));
    meetings_.reserve(size_t(plan.communicators_size()));
    for (int c = 0; c < plan.communicators_size(); ++c)
      meetings_.push_back(meet(uint32_t(c)));
  }

  std::vector<Timeline> run() {
    while (advanceAll()) {
    }
    refuseStuck();
    std::vector<Timeline> timelines;
    for (Player &player : players_)
      timelines.push_back(std::move(player.timeline));
    return timelines;
  }

private:
  struct Signal {
    uint64_t value;
    std::vector<uint64_t> clock; ///< by queue, when the signalling command has finished
  };
  struct Event {
    uint32_t queue = none;
    std::vector<Signal> signals;
  };
  struct Cursor {
    int call = 0;
    size_t stop = 0;      ///< among the queue's commands of the call's routine
    bool arrived = false; ///< at the collective that it stands before
  };
  struct Player {
    const proto::Role *role = nullptr;
    const proto::Program *program = nullptr;
    std::vector<std::vector<uint32_t>> commands; ///< by routine and queue
    std::vector<Cursor> cursors;                 ///< by queue
    std::vector<std::vector<uint64_t>> clocks;   ///< by queue
    std::vector<Event> events;
    std::vector<size_t> met;             ///< by communicator: collectives finished
    std::vector<uint32_t> enteringQueue; ///< by communicator
    Timeline timeline;
  };

  Player prepare(const proto::Role &role) const {
    Player player;
    player.role = &role;
    for (const proto::Program &program : role.programs())
      if (program.name() == programName_)
        player.program = &program;
    const auto queues = size_t(role.queues_size());
    player.commands.resize(size_t(role.routines_size()) * queues);
    for (int r = 0; r < role.routines_size(); ++r)
      for (int c = 0; c < role.routines(r).commands_size(); ++c)
        player.commands[size_t(r) * queues + role.routines(r).commands(c).queue()].push_back(uint32_t(c));
    player.cursors.resize(queues);
    player.clocks.assign(queues, std::vector<uint64_t>(queues, 0));
    player.events.resize(size_t(role.events_size()));
    player.met.assign(size_t(plan_.communicators_size()), 0);
    player.enteringQueue.assign(size_t(plan_.communicators_size()), none);
    player.timeline.queues_ = queues;
    return player;
  }

  Meeting meet(uint32_t communicator) const {
    Meeting meeting;
    meeting.leader.resize(players_.size());
    std::iota(meeting.leader.begin(), meeting.leader.end(), 0);
    meeting.agreements.resize(players_.size());
    meeting.places.resize(players_.size());
    if (players_.size() == 1)
      return meeting;
    std::map<uint32_t, uint32_t> first; // by first rank of a group: the first role seen there
    for (uint32_t r = 0; r < players_.size(); ++r)
      for (int i = 0; i + 1 < plan_.roles(int(r)).ranks_size(); i += 2)
        for (uint64_t rank = plan_.roles(int(r)).ranks(i); rank <= plan_.roles(int(r)).ranks(i + 1); ++rank) {
          const uint32_t group = plan::groupFirst(plan_, communicator, uint32_t(rank));
          const uint32_t other = meeting.leader[first.emplace(group, r).first->second], own = meeting.leader[r];
          for (uint32_t &leader : meeting.leader)
            if (leader == own)
              leader = other;
        }
    return meeting;
  }

  /// Whether any queue went on.
  bool advanceAll() {
    bool moved = false;
    for (uint32_t p = 0; p < players_.size(); ++p)
      for (uint32_t q = 0; q < players_[p].cursors.size(); ++q)
        while (players_[p].program && step(p, q))
          moved = true;
    return moved;
  }

  const std::vector<uint32_t> &commandsOf(const Player &player, const Cursor &cursor, uint32_t queue) const {
    return player.commands[size_t(player.program->calls(cursor.call).routine()) * player.cursors.size() + queue];
  }

  /// Moves past routines in which the queue has nothing to do; false at the end of the run.
  bool atCommand(const Player &player, Cursor &cursor, uint32_t queue) const {
    for (; cursor.call < player.program->calls_size(); ++cursor.call, cursor.stop = 0)
      if (cursor.stop < commandsOf(player, cursor, queue).size())
        return true;
    return false;
  }

  Instance instanceAt(const Player &player, const Cursor &cursor, uint32_t queue) const {
    const proto::Call &call = player.program->calls(cursor.call);
    const uint32_t index = commandsOf(player, cursor, queue)[cursor.stop];
    return {&player.role->routines(int(call.routine())).commands(int(index)),
            uint32_t(cursor.call),
            call.routine(),
            index,
            queue,
            call.microbatch(),
            player.clocks[queue][queue] + 1};
  }

  /// Executes the next command of a queue, if nothing holds it back.
  bool step(uint32_t p, uint32_t queue) {
    Player &player = players_[p];
    Cursor &cursor = player.cursors[queue];
    if (!atCommand(player, cursor, queue))
      return false;
    const Instance instance = instanceAt(player, cursor, queue);
    std::vector<uint64_t> clock = player.clocks[queue];
    for (const proto::Wait &wait : instance.command->waits()) {
      const Signal *signal = releaseOf(player, wait, instance.microbatch);
      if (!signal && wait.delay() < instance.microbatch + 1)
        return false;
      for (size_t i = 0; signal && i < clock.size(); ++i)
        clock[i] = std::max(clock[i], signal->clock[i]);
    }
    if (instance.command->has_collective() && !meets(p, cursor, instance))
      return false;
    player.timeline.instances.push_back(instance);
    player.timeline.clocks_.insert(player.timeline.clocks_.end(), clock.begin(), clock.end());
    clock[queue] = instance.position;
    player.clocks[queue] = clock;
    for (uint32_t event : instance.command->signals())
      signalEvent(player, event, instance, clock);
    ++cursor.stop;
    cursor.arrived = false;
    return true;
  }

  /// The signal that lets a wait go on: the first that is high enough; those of an event come from one queue, in order.
  /// None where it needs none, even if one came earlier in this play: the next run may be faster.
  static const Signal *releaseOf(const Player &player, const proto::Wait &wait, uint64_t microbatch) {
    if (wait.delay() >= microbatch + 1)
      return nullptr;
    for (const Signal &signal : player.events[wait.event()].signals)
      if (signal.value + wait.delay() >= microbatch + 1)
        return &signal;
    return nullptr;
  }

  void signalEvent(Player &player, uint32_t index, const Instance &instance, const std::vector<uint64_t> &clock) const {
    Event &event = player.events[index];
    if (event.queue != none && event.queue != instance.queue)
      throw Refusal{"progress", placeOf(plan_, *player.role, programName_, instance) + ": event " +
                                    player.role->events(int(index)).name() + " is signalled by queue " +
                                    player.role->queues(int(instance.queue)).name() + " and by queue " +
                                    player.role->queues(int(event.queue)).name() +
                                    ", so which of them ends a wait depends on timing"};
    event.queue = instance.queue;
    if (event.signals.empty() || event.signals.back().value < instance.microbatch + 1) // a lower one releases nothing
      event.signals.push_back({instance.microbatch + 1, clock});
  }

  /// Whether all roles that meet there have come to this collective; refuses one that another role does not expect.
  bool meets(uint32_t p, Cursor &cursor, const Instance &instance) {
    const proto::CollectiveCommand &collective = instance.command->collective();
    Meeting &meeting = meetings_[collective.communicator()];
    Player &player = players_[p];
    const size_t number = player.met[collective.communicator()];
    uint32_t &queue = player.enteringQueue[collective.communicator()];
    if (queue != none && queue != instance.queue)
      throw Refusal{"progress", placeOf(plan_, *player.role, programName_, instance) + ": communicator " +
                                    plan_.communicators(int(collective.communicator())).name() +
                                    " is entered by queue " + player.role->queues(int(instance.queue)).name() +
                                    " and by queue " + player.role->queues(int(queue)).name() +
                                    ", so the order of its collectives depends on timing"};
    queue = instance.queue;
    if (!cursor.arrived) {
      cursor.arrived = true;
      meeting.agreements[p].push_back(agreement(collective));
      meeting.places[p] = placeOf(plan_, *player.role, programName_, instance);
    }
    for (uint32_t other = 0; other < players_.size(); ++other) {
      if (meeting.leader[other] != meeting.leader[p] || other == p)
        continue;
      if (meeting.agreements[other].size() <= number)
        return false;
      if (meeting.agreements[other][number] != meeting.agreements[p][number])
        throw Refusal{"progress", meeting.places[p] + " enters " + meeting.agreements[p][number] + " on communicator " +
                                      plan_.communicators(int(collective.communicator())).name() + ", but " +
                                      meeting.places[other] + " enters " + meeting.agreements[other][number]};
    }
    ++player.met[collective.communicator()];
    return true;
  }

  void refuseStuck() {
    for (Player &player : players_)
      for (uint32_t q = 0; player.program && q < player.cursors.size(); ++q)
        if (atCommand(player, player.cursors[q], q))
          throw Refusal{"progress", stuckSentence(player, q)};
  }

  std::string stuckSentence(const Player &player, uint32_t queue) const {
    const Instance instance = instanceAt(player, player.cursors[queue], queue);
    std::string text = placeOf(plan_, *player.role, programName_, instance) + ": queue " +
                       player.role->queues(int(queue)).name() + " waits for ever for ";
    for (const proto::Wait &wait : instance.command->waits()) {
      const std::vector<Signal> &signals = player.events[wait.event()].signals;
      if (wait.delay() < instance.microbatch + 1 && !releaseOf(player, wait, instance.microbatch))
        return text + "event " + player.role->events(int(wait.event())).name() + " to reach " +
               std::to_string(instance.microbatch + 1 - wait.delay()) + "; it stays at " +
               std::to_string(signals.empty() ? 0 : signals.back().value);
    }
    return text + "the other ranks of communicator " +
           plan_.communicators(int(instance.command->collective().communicator())).name() +
           ", which do not come to this " + agreement(instance.command->collective());
  }

  const proto::Plan &plan_;
  const std::string &programName_;
  std::vector<Player> players_;
  std::vector<Meeting> meetings_; ///< by communicator
};

std::vector<Timeline> playProgram(const proto::Plan &plan, const std::string &program) {
  return Play(plan, program).run();
}

} // namespace ds::check
