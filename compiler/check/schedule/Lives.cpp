//===- Lives.cpp - no two live buffers share bytes ------------------------===//
#include "compiler/check/schedule/Lives.h"

#include "compiler/check/schedule/Refusal.h"
#include "core/IntervalMap.h"
#include "runtime/plan/run/ProgramLives.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ds::check {

namespace {

/// A copy of a buffer that is alive from the beginning of one instant to the end of another.
struct Live {
  uint32_t buffer;
  uint64_t address, bytes;
  int64_t first, last;
};

/// All copies of a run, by arena.
std::map<uint32_t, std::vector<Live>> liveCopies(const proto::Role &role, const plan::ProgramLives &lives, int program,
                                                 const std::string &space) {
  std::map<uint32_t, std::vector<Live>> copies;
  for (int b = 0; b < role.buffers_size(); ++b)
    if (const proto::Buffer &buffer = role.buffers(b);
        buffer.scope() == proto::Buffer::PLAN && plan::isIn(role, buffer, space))
      copies[buffer.arena()].push_back({uint32_t(b), buffer.offset(), buffer.bytes(), -1, lives.instants()});
  std::set<uint32_t> readByHost; // which stay alive to the end
  for (const proto::Metric &metric : role.programs(program).metrics())
    readByHost.insert(metric.source().buffer());
  if (role.programs(program).has_tail())
    readByHost.insert(role.programs(program).tail().unless_one().buffer());
  lives.forEachStretch([&](const plan::Stretch &stretch) {
    const proto::Buffer &buffer = role.buffers(stretch.buffer);
    const auto index = uint32_t(stretch.buffer);
    copies[buffer.arena()].push_back({index, plan::slotOffset(buffer, stretch.slot), buffer.bytes(), stretch.first,
                                      readByHost.contains(index) ? lives.instants() : stretch.last});
  });
  return copies;
}

class Sweep {
public:
  Sweep(const proto::Plan &plan, const proto::Role &role, const proto::Program &program,
        const plan::ProgramLives &lives, const Timeline &timeline)
      : plan_(plan), role_(role), program_(program), lives_(lives), timeline_(timeline),
        instances_(size_t(lives.instants())) {
    for (size_t i = 0; i < timeline.instances.size(); ++i)
      instances_[size_t(lives.instantOf(int(timeline.instances[i].call), int(timeline.instances[i].index)))] = i;
  }

  /// Goes over time with the addresses that are taken.
  void run(const std::vector<Live> &copies) {
    struct Moment {
      int64_t when;
      bool isDeath; // after the births of its instant
      const Live *copy;
    };
    std::vector<Moment> moments;
    for (const Live &copy : copies)
      if (copy.bytes > 0 && copy.first <= copy.last) {
        moments.push_back({copy.first, false, &copy});
        moments.push_back({copy.last, true, &copy});
      }
    std::ranges::stable_sort(moments, {}, [](const Moment &one) { return std::pair(one.when, one.isDeath); });
    taken_ = {};
    ended_ = {};
    for (const auto &[when, isDeath, copy] : moments) {
      const uint64_t begin = copy->address, end = begin + copy->bytes;
      if (isDeath) {
        taken_.erase(begin, end);
        if (copy->first >= 0 && copy->last < lives_.instants() &&
            isOrdered(copy->first, copy->last)) // else none uses it
          ended_.assign(begin, end, copy);
        continue;
      }
      taken_.touching(begin, end, [&](uint64_t, uint64_t, const Live *other) { refuse(*copy, *other); });
      taken_.assign(begin, end, copy);
      // Lives of the same bytes that end and begin on two queues follow each other by events, not by luck: ds-run
      // --check-memory writes over what dies.
      if (copy->first >= 0)
        ended_.touching(begin, end, [&](uint64_t, uint64_t, const Live *earlier) { requireOrder(*earlier, *copy); });
    }
  }

private:
  const Instance &instanceAt(int64_t instant) const { return timeline_.instances[instances_[size_t(instant)]]; }

  /// Whether what is issued at one instant has surely finished when what is issued at a later one starts.
  bool isOrdered(int64_t earlier, int64_t later) const {
    const Instance &first = instanceAt(earlier), &second = instanceAt(later);
    return first.queue == second.queue || timeline_.isBefore(first.queue, first.position, instances_[size_t(later)]);
  }

  void requireOrder(const Live &earlier, const Live &later) const {
    if (isOrdered(earlier.last, later.first))
      return;
    const Instance &death = instanceAt(earlier.last), &birth = instanceAt(later.first);
    throw Refusal{"race",
                  placeOf(plan_, program_.name(), birth) + ": begins the life of " + nameOf(later) + " at byte " +
                      std::to_string(later.address) + " on queue " + role_.queues(int(birth.queue)).name() +
                      ", and may do so before that of " + nameOf(earlier) + " ends there",
                  placeOf(plan_, program_.name(), death) + " is where it ends, on queue " +
                      role_.queues(int(death.queue)).name()};
  }

  std::string nameOf(const Live &copy) const {
    return "buffer " + std::to_string(copy.buffer) + " (" + role_.buffers(int(copy.buffer)).name() + ")";
  }

  std::string lifeOf(const Live &copy) const {
    if (copy.first < 0)
      return "always";
    const auto text = [&](int64_t instant) {
      const auto [call, command] = lives_.placeOf(instant);
      return "call " + std::to_string(call) + ", command " + std::to_string(command);
    };
    return "from " + text(copy.first) + " to " +
           (copy.last == lives_.instants() ? "the end of the program" : text(copy.last));
  }

  [[noreturn]] void refuse(const Live &copy, const Live &other) const {
    throw Refusal{"memory",
                  "role " + role_.name() + ", program " + program_.name() + ": " + nameOf(copy) + " at byte " +
                      std::to_string(copy.address) + " takes bytes of " + nameOf(other) + " at byte " +
                      std::to_string(other.address) + ", which is alive too",
                  nameOf(copy) + " lives " + lifeOf(copy) + ", " + nameOf(other) + " " + lifeOf(other)};
  }

  const proto::Plan &plan_;
  const proto::Role &role_;
  const proto::Program &program_;
  const plan::ProgramLives &lives_;
  const Timeline &timeline_;
  std::vector<size_t> instances_;   // by instant
  IntervalMap<const Live *> taken_; // by address
  IntervalMap<const Live *> ended_; // by address: the last that lived in these bytes
};

} // namespace

void checkLives(const proto::Plan &plan, const std::string &name, const JointTimeline &joint) {
  for (int r = 0; r < plan.roles_size(); ++r) {
    const proto::Role &role = plan.roles(r);
    std::set<std::string> spaces;
    for (const proto::Arena &arena : role.arenas())
      spaces.insert(arena.space());
    for (int program = 0; program < role.programs_size(); ++program)
      if (role.programs(program).name() == name)
        for (const std::string &space : spaces) {
          const plan::ProgramLives lives(role, program, space);
          Sweep sweep(plan, role, role.programs(program), lives, joint.timelines[size_t(r)]);
          for (const auto &[arena, copies] : liveCopies(role, lives, program, space))
            sweep.run(copies);
        }
  }
}

} // namespace ds::check
