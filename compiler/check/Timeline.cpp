//===- Timeline.cpp - a run of a program, played without doing anything ------===//
//
// Queues take their commands in order; waits look at counters that only rise, and a collective or message goes on when
// all roles that meet there have come to it. Both conditions stay true once they are, so the order in which queues are
// tried does not matter: if this run ends, every run does, and if it gets stuck, every run does.
//
//===----------------------------------------------------------------------===//
#include "compiler/check/Timeline.h"

#include "compiler/check/Meetings.h"

#include <algorithm>
#include <utility>

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
  case proto::Command::kSend:
    return "send";
  case proto::Command::kReceive:
    return "receive";
  default:
    return "nothing";
  }
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

class Play {
public:
  Play(const proto::Plan &plan, const std::string &program)
      : plan_(plan), programName_(program), meetings_(plan, program) {
    players_.reserve(size_t(plan.roles_size()));
    for (const proto::Role &role : plan.roles())
      players_.push_back(prepare(role));
  }

  JointRun run() {
    while (advanceAll()) {
    }
    refuseStuck();
    for (Player &player : players_)
      joint_.timelines.push_back(std::move(player.timeline));
    return std::move(joint_);
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
    bool arrived = false; ///< at the collective or message that it stands before
  };
  struct Player {
    const proto::Role *role = nullptr;
    const proto::Program *program = nullptr;
    std::vector<std::vector<uint32_t>> commands; ///< by routine and queue
    std::vector<Cursor> cursors;                 ///< by queue
    std::vector<std::vector<uint64_t>> clocks;   ///< by queue
    std::vector<Event> events;
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
    player.timeline.queues_ = queues;
    return player;
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
    if (isMeeting(*instance.command) && !meetings_.goOn(p, instance, !std::exchange(cursor.arrived, true)))
      return false;
    note(p, instance);
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
    const std::vector<Signal> &signals = player.events[wait.event()].signals; // their values ascend
    const auto release = std::ranges::lower_bound(signals, microbatch + 1 - wait.delay(), {}, &Signal::value);
    return release == signals.end() ? nullptr : &*release;
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

  static bool isMeeting(const proto::Command &command) {
    return command.has_collective() || command.has_send() || command.has_receive();
  }

  void note(uint32_t p, const Instance &instance) {
    const Step step{p, players_[p].timeline.instances.size()};
    players_[p].timeline.instances.push_back(instance);
    joint_.order.push_back(step);
    if (instance.command->has_send())
      meetings_.sent(p, instance, step.instance);
    if (instance.command->has_collective() &&
        instance.command->collective().kind() == proto::CollectiveCommand::ALL_GATHER)
      if (auto others = meetings_.others(p, instance); !others.empty())
        joint_.gathers[step] = std::move(others);
    if (instance.command->has_receive())
      joint_.senders[step] = meetings_.sender(p, instance);
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
    return text + meetings_.absenceAt(instance);
  }

  const proto::Plan &plan_;
  const std::string &programName_;
  std::vector<Player> players_;
  Meetings meetings_;
  JointRun joint_;
};

JointRun playProgram(const proto::Plan &plan, const std::string &program) { return Play(plan, program).run(); }

} // namespace ds::check
