//===- Faults.cpp - what goes wrong, by seed ------------------------------===//
#include "test/simulation/Faults.h"

namespace ds::sim {

Faults *Faults::current = nullptr;
std::string plantedBug;
int64_t tasksUnderWay = 0;

const char *name(Place place) {
  constexpr std::array<const char *, places> names = {"begin_run", "submit", "wait",   "task", "task_end",
                                                      "signal",    "arrive", "follow", "move", "finish"};
  return names[size_t(place)];
}

int looks() noexcept {
  Scheduler *scheduler = Scheduler::current();
  return scheduler != nullptr ? 1 + int(scheduler->random().below(3)) : 1;
}

Status Faults::visit(Place place, uint32_t rank, const char *what) noexcept {
  Scheduler &scheduler = *Scheduler::current();
  const uint64_t occurrence = visits_[{place, rank}]++;
  const std::string where = std::string(name(place)) + " of " + what + ", rank " + std::to_string(rank);
  scheduler.note(where.c_str(), "");
  scheduler.log("%s, time %llu", where.c_str(), static_cast<unsigned long long>(occurrence));
  for (const Fault &fault : faults_) {
    if (fault.place != place || fault.rank != rank || fault.occurrence != occurrence)
      continue;
    if (fault.kind == FaultKind::Delay) {
      scheduler.log("DELAY of %.6f s", double(fault.delay.count()) * 1e-9);
      delayed_ += fault.delay;
      scheduler.sleep(fault.delay);
      continue;
    }
    taken_ = &fault;
    if (fault.kind == FaultKind::Fail) {
      scheduler.log("FAILURE");
      const Status status =
          Status::failure("planted failure: %s, time %llu", where.c_str(), static_cast<unsigned long long>(occurrence));
      sentence_ = status.message();
      return status;
    }
    scheduler.log("STALL");
    sentence_ = what;
    while (!released_)
      scheduler.block(this, "nothing: it was made to stall");
    scheduler.log("goes on");
  }
  return Status::success();
}

void Faults::release() noexcept {
  released_ = true;
  Scheduler::current()->wakeAll(this);
}

} // namespace ds::sim
