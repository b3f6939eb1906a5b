//===- Lives.cpp - no two live buffers share bytes ------------------------===//
#include "compiler/check/schedule/Lives.h"

#include "compiler/check/schedule/Refusal.h"
#include "core/IntervalMap.h"
#include "runtime/plan/run/ProgramLives.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ds::check {

namespace {

using plan::Stretch;

/// The lives of a run that lie in one space.
class Sweep {
public:
  Sweep(const proto::Plan &plan, const proto::Role &role, int program, const std::string &space,
        const Timeline &timeline)
      : plan_(plan), role_(role), program_(role.programs(program)), lives_(role, program, space), timeline_(timeline),
        instances_(size_t(lives_.instants())) {
    for (size_t i = 0; i < timeline.instances.size(); ++i)
      instances_[size_t(lives_.instantOf(int(timeline.instances[i].call), int(timeline.instances[i].index)))] = i;
    for (int b = 0; b < role.buffers_size(); ++b)
      if (role.buffers(b).scope() == proto::Buffer::PLAN && plan::isIn(role, role.buffers(b), space))
        stretches_.push_back({b, 0, -1, lives_.instants()});
    std::set<int> readByHost; // which stay alive to the end
    for (const proto::Metric &metric : program_.metrics())
      readByHost.insert(int(metric.source().buffer()));
    if (program_.has_tail())
      readByHost.insert(int(program_.tail().unless_one().buffer()));
    lives_.forEachStretch([&](Stretch life) {
      life.last = readByHost.contains(life.buffer) ? lives_.instants() : life.last;
      stretches_.push_back(life);
    });
  }

  /// Goes over lives as they begin, with what was the last to live at each address.
  void run() {
    std::ranges::stable_sort(stretches_, {}, &Stretch::first);
    IntervalMap<const Stretch *> arena; // the only one of its space
    for (const Stretch &life : stretches_) {
      const uint64_t begin = addressOf(life), end = begin + role_.buffers(life.buffer).bytes();
      if (life.first > life.last)
        continue;
      arena.touching(begin, end, [&](uint64_t, uint64_t, const Stretch *earlier) {
        earlier->last >= life.first ? refuse(life, *earlier) : requireOrder(*earlier, life);
      });
      arena.assign(begin, end, &life);
    }
  }

private:
  uint64_t addressOf(const Stretch &life) const { return plan::slotOffset(role_.buffers(life.buffer), life.slot); }
  const Instance &instanceAt(int64_t instant) const { return timeline_.instances[instances_[size_t(instant)]]; }

  /// Whether what is issued at one instant has surely finished when what is issued at a later one starts.
  bool isOrdered(int64_t earlier, int64_t later) const {
    const Instance &first = instanceAt(earlier), &second = instanceAt(later);
    return first.queue == second.queue || timeline_.isBefore(first.queue, first.position, instances_[size_t(later)]);
  }

  /// Lives of the same bytes on two queues follow each other by events, not by luck: ds-run --check-memory writes over
  /// what dies. Of one that nothing uses, its begin may come behind its end.
  void requireOrder(const Stretch &earlier, const Stretch &later) const {
    if (isOrdered(earlier.first, later.first) && isOrdered(earlier.last, later.first))
      return;
    const Instance &death = instanceAt(earlier.last), &birth = instanceAt(later.first);
    throw Refusal{"race",
                  placeOf(plan_, program_.name(), birth) + ": begins the life of " + nameOf(later) + " at byte " +
                      std::to_string(addressOf(later)) + " on queue " + role_.queues(int(birth.queue)).name() +
                      ", and may do so before that of " + nameOf(earlier) + " ends there",
                  placeOf(plan_, program_.name(), death) + " is where it ends, on queue " +
                      role_.queues(int(death.queue)).name()};
  }

  std::string nameOf(const Stretch &copy) const {
    return "buffer " + std::to_string(copy.buffer) + " (" + role_.buffers(copy.buffer).name() + ")";
  }

  std::string lifeOf(const Stretch &copy) const {
    if (copy.first < 0)
      return "always";
    const auto text = [&](int64_t instant) {
      const auto [call, command] = lives_.placeOf(instant);
      return "call " + std::to_string(call) + ", command " + std::to_string(command);
    };
    return "from " + text(copy.first) + " to " +
           (copy.last == lives_.instants() ? "the end of the program" : text(copy.last));
  }

  [[noreturn]] void refuse(const Stretch &copy, const Stretch &other) const {
    throw Refusal{"memory",
                  "role " + role_.name() + ", program " + program_.name() + ": " + nameOf(copy) + " at byte " +
                      std::to_string(addressOf(copy)) + " takes bytes of " + nameOf(other) + " at byte " +
                      std::to_string(addressOf(other)) + ", which is alive too",
                  nameOf(copy) + " lives " + lifeOf(copy) + ", " + nameOf(other) + " " + lifeOf(other)};
  }

  const proto::Plan &plan_;
  const proto::Role &role_;
  const proto::Program &program_;
  const plan::ProgramLives lives_;
  const Timeline &timeline_;
  std::vector<size_t> instances_; // by instant
  std::vector<Stretch> stretches_;
};

} // namespace

void checkLives(const proto::Plan &plan, const std::string &name, const JointTimeline &joint) {
  for (int r = 0; r < plan.roles_size(); ++r) {
    const proto::Role &role = plan.roles(r);
    for (int program = 0; program < role.programs_size(); ++program)
      if (role.programs(program).name() == name)
        for (const proto::Arena &arena : role.arenas())
          Sweep(plan, role, program, arena.space(), joint.timelines[size_t(r)]).run();
  }
}

} // namespace ds::check
