//===- Scheduler.h - threads of one seed, time included -------------------===//
#pragma once

#include <algorithm>
#include <chrono>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace ds::sim {

/// The one source of chance: what it draws depends on the seed alone, on every machine.
class Random {
public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 0x2545F4914F6CDD1Du) {}
  uint64_t next() noexcept { // splitmix64
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  /// 0 to n - 1.
  uint64_t below(uint64_t n) noexcept { return next() % n; }
  bool oneIn(uint64_t n) noexcept { return below(n) == 0; }

private:
  uint64_t state_;
};

/// Why a run ended.
enum class End { Done, Hang, TooManyTicks };

struct Outcome {
  End end = End::Done;
  std::string report; ///< where each thread stood; empty when done
  uint64_t ticks = 0; ///< scheduling points passed
  std::chrono::nanoseconds time{};
  uint64_t path = 0; ///< a hash of which thread ran when: two runs with the same one took the same way
};

struct Fiber;

/// Runs a function and the threads that it starts, one at a time, on the thread that calls run(). Whatever touches
/// another thread (an atomic, a lock, a wait, a clock) passes a point, where another one may go on; which one, the seed
/// says. Time passes by a microsecond a point and, when nothing can run, jumps to the next timer. "Nothing can run and
/// no timer is pending" is a hang, found at once.
///
/// Two ways of choosing, by seed: at each point with a probability of the run's; or by priorities that change at a few
/// points (Burckhardt et al., A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs, 2010).
class Scheduler {
public:
  using Time = std::chrono::nanoseconds;
  static constexpr Time never = Time::max();

  /// `inOrder`: each thread runs until it waits.
  Scheduler(uint64_t seed, bool inOrder, bool log);
  ~Scheduler();

  Outcome run(const std::function<void()> &body, uint64_t tickLimit);

  /// The one that is running, or nullptr outside of run().
  static Scheduler *current() noexcept { return current_; }

  // For Primitives.h.

  void point() noexcept;
  Fiber *start(std::function<void()> body);
  Fiber *startIn(uint32_t process, std::function<void()> body);
  void join(Fiber *fiber) noexcept;
  void name(Fiber *fiber, const char *text);
  /// Until wake(object) or the time; returns false when it is up. `what` is for the report.
  bool block(const void *object, const char *what, Time until = never) noexcept;
  void wakeOne(const void *object) noexcept;
  void wakeAll(const void *object) noexcept;
  void sleep(Time duration) noexcept { block(nullptr, "sleep", time_ + duration); }
  Time now() const noexcept { return time_; }

  // For processes: a number that threads have in common with the one that started them, 0 for the first.

  uint32_t process() const noexcept;
  /// None of its threads goes on until it is thawed, the caller included.
  void freeze(uint32_t process) noexcept;
  void thaw(uint32_t process) noexcept;

  // For faults and their log.

  Random &random() noexcept { return random_; }
  /// Where the running thread is, for the report of a hang.
  void note(const char *place, const char *what) noexcept;
  __attribute__((format(printf, 2, 3))) void log(const char *format, ...) noexcept;
  bool logs() const noexcept { return log_; }

private:
  static void enter() noexcept;
  void choose() noexcept;
  void switchTo(Fiber *next) noexcept;
  Fiber *pick() noexcept;
  void wakeTimers() noexcept;
  void makeRunnable(Fiber *fiber) noexcept;
  [[noreturn]] void leave(End end) noexcept;
  std::string describeFibers() const;

  static Scheduler *current_;
  Random random_;
  const bool inOrder_, log_;
  bool byPriority_ = false;
  uint64_t switchOneIn_ = 2, spuriousOneIn_ = 0;
  std::vector<uint64_t> changes_; // ticks at which the running thread becomes the least, latest first
  uint64_t lowest_ = uint64_t(1) << 32, alone_ = 0;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber *> runnable_, waiting_, frozen_; // frozen_: of a process that is frozen, and could run
  std::set<uint32_t> frozenProcesses_;
  Fiber *running_ = nullptr;
  Time time_{}, nextTimer_ = never;
  uint64_t tickLimit_ = 0;
  Outcome outcome_;
  std::jmp_buf outside_;
};

} // namespace ds::sim
