//===- Faults.h - what goes wrong, by seed --------------------------------===//
//
// simulated_sources.py puts calls of fault() and planted() into its copy of the runtime; edits.py says where.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/Status.h"
#include "test/simulation/Scheduler.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ds::sim {

/// Where a fault can happen.
enum class Place : uint8_t {
  BeginRun, ///< the host, before it submits a run
  Submit,   ///< the host, a call to one queue
  Wait,     ///< a queue, before it waits for an event
  Task,     ///< a queue, before a command
  TaskEnd,  ///< a queue, after one
  Signal,   ///< a queue, before it raises an event
  Arrive,   ///< a collective or message, before the others can see this rank
  Follow,   ///< a collective or message, after the others have come
  Move,     ///< a collective or message, before bytes are copied or summed
  Finish,   ///< the host, when a run's queues have nothing left
};
inline constexpr size_t places = 10;
const char *name(Place place);
constexpr bool isOnHost(Place place) { return place <= Place::Submit || place == Place::Finish; }

enum class FaultKind : uint8_t {
  Delay, ///< goes on after a while
  Fail,  ///< returns an error
  Stall, ///< stands still until the run has failed; then goes on, as a process that is ended by force goes away
};

/// The `occurrence`-th time, from 0, that `rank` comes to the place.
struct Fault {
  FaultKind kind;
  Place place;
  uint32_t rank;
  uint64_t occurrence;
  std::chrono::nanoseconds delay{};
};

/// How often each rank came to each place.
using Visits = std::map<std::pair<Place, uint32_t>, uint64_t>;

/// The faults of one run, taken as they come up.
class Faults {
public:
  explicit Faults(std::vector<Fault> faults) : faults_(std::move(faults)) {}

  Status visit(Place place, uint32_t rank, const char *what) noexcept;
  /// The run has failed: what stalls goes on.
  void release() noexcept;

  const Visits &visits() const { return visits_; }
  /// The first failure or stall that came up, if any: the culprit's.
  const Fault *taken() const { return taken_; }
  /// The failure's sentence, or how errors call the command that stalls.
  const std::string &sentence() const { return sentence_; }
  /// All delays that came up, together.
  std::chrono::nanoseconds delayed() const { return delayed_; }

  /// Of the run under way; nullptr: none.
  static Faults *current;

private:
  std::vector<Fault> faults_;
  Visits visits_;
  const Fault *taken_ = nullptr;
  std::string sentence_;
  std::chrono::nanoseconds delayed_{};
  bool released_ = false;
};

inline Status fault(Place place, uint32_t rank, const char *what) noexcept {
  return Faults::current != nullptr ? Faults::current->visit(place, rank, what) : Status::success();
}
/// `action`, unless a fault comes before it.
template <typename Action> Status after(Place place, uint32_t rank, const char *what, Action action) noexcept {
  const Status status = fault(place, rank, what);
  return status.ok() ? action() : status;
}

/// Tasks that are under way, whose number must be 0 when a run has been finished.
extern int64_t tasksUnderWay;
template <typename Action> Status task(uint32_t rank, const char *what, Action action) noexcept {
  tasksUnderWay += 1;
  Status status = after(Place::Task, rank, what, action);
  if (status.ok())
    status = fault(Place::TaskEnd, rank, what);
  tasksUnderWay -= 1;
  return status;
}

/// How often a wait looks before it sleeps: 1 to 3 times.
int looks() noexcept;

/// The bug of edits.py that this process was asked to have, or "".
extern std::string plantedBug;
inline bool planted(const char *bug) noexcept { return plantedBug == bug; }

} // namespace ds::sim
