//===- Primitives.h - what stands for <atomic>, <mutex>, <thread>, ... ----===//
//
// simulated_sources.py puts these in place of the standard library's in a copy of the runtime. Memory order is not
// simulated: every access is sequentially consistent, whatever its argument says. Outside of Scheduler::run they are
// plain variables.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "test/simulation/Scheduler.h"

#include <chrono>
#include <exception>
#include <mutex>
#include <type_traits>
#include <utility>

namespace ds::sim {

inline void point() noexcept {
  if (Scheduler *scheduler = Scheduler::current())
    scheduler->point();
}

enum class order { relaxed, acquire, release, acq_rel, seq_cst };
inline constexpr order memory_order_relaxed = order::relaxed, memory_order_acquire = order::acquire,
                       memory_order_release = order::release, memory_order_acq_rel = order::acq_rel,
                       memory_order_seq_cst = order::seq_cst;

/// A point before each access, and one after each that writes: what a thread writes to plain memory next comes later.
template <typename T> class atomic {
public:
  atomic() noexcept : value_() {}
  atomic(T value) noexcept : value_(value) {}
  atomic(const atomic &) = delete;
  atomic &operator=(const atomic &) = delete;

  T load(order = order::seq_cst) const noexcept {
    point();
    return value_;
  }
  operator T() const noexcept { return load(); }
  void store(T value, order = order::seq_cst) noexcept {
    change([&] { value_ = value; });
  }
  T operator=(T value) noexcept {
    store(value);
    return value;
  }
  T exchange(T value, order = order::seq_cst) noexcept {
    return change([&] { return std::exchange(value_, value); });
  }
  bool compare_exchange_strong(T &expected, T value, order = order::seq_cst, order = order::seq_cst) noexcept {
    return change([&] {
      const bool same = value_ == expected;
      (same ? value_ : expected) = same ? value : value_;
      return same;
    });
  }
  /// Fails now and then though the value is as expected.
  bool compare_exchange_weak(T &expected, T value, order = order::seq_cst, order = order::seq_cst) noexcept {
    if (Scheduler *scheduler = Scheduler::current(); scheduler != nullptr && scheduler->random().oneIn(8)) {
      expected = load();
      return false;
    }
    return compare_exchange_strong(expected, value);
  }
  T fetch_add(T value, order = order::seq_cst) noexcept {
    return change([&] { return std::exchange(value_, T(value_ + value)); });
  }
  T fetch_sub(T value, order = order::seq_cst) noexcept {
    return change([&] { return std::exchange(value_, T(value_ - value)); });
  }
  T operator+=(T value) noexcept { return T(fetch_add(value) + value); }
  T operator-=(T value) noexcept { return T(fetch_sub(value) - value); }
  T operator++() noexcept { return *this += T(1); }
  T operator--() noexcept { return *this -= T(1); }

private:
  template <typename Change> auto change(Change what) noexcept {
    point();
    if constexpr (std::is_void_v<decltype(what())>) {
      what();
      point();
    } else {
      const auto result = what();
      point();
      return result;
    }
  }
  T value_;
};

class mutex {
public:
  mutex() = default;
  mutex(const mutex &) = delete;
  mutex &operator=(const mutex &) = delete;

  void lock() {
    point();
    while (std::exchange(held_, true))
      if (Scheduler *scheduler = Scheduler::current())
        scheduler->block(this, "a mutex");
  }
  bool try_lock() {
    point();
    return !std::exchange(held_, true);
  }
  void unlock() {
    held_ = false;
    if (Scheduler *scheduler = Scheduler::current()) {
      scheduler->wakeAll(this); // one of them gets it, whichever comes first
      scheduler->point();
    }
  }

private:
  friend class condition_variable;
  bool held_ = false;
};

/// Wakes spuriously, too (Scheduler::point).
class condition_variable {
public:
  condition_variable() = default;
  condition_variable(const condition_variable &) = delete;
  condition_variable &operator=(const condition_variable &) = delete;

  void notify_one() noexcept { notify(&Scheduler::wakeOne); }
  void notify_all() noexcept { notify(&Scheduler::wakeAll); }

  void wait(std::unique_lock<mutex> &lock) { (void)sleep(this, lock, Scheduler::never); }
  template <typename Predicate> void wait(std::unique_lock<mutex> &lock, Predicate predicate) {
    while (!predicate())
      wait(lock);
  }
  template <typename Rep, typename Period, typename Predicate>
  bool wait_for(std::unique_lock<mutex> &lock, std::chrono::duration<Rep, Period> duration, Predicate predicate) {
    const Scheduler::Time until = Scheduler::current()->now() + duration;
    while (!predicate())
      if (!sleep(this, lock, until))
        return predicate();
    return true;
  }

private:
  void notify(void (Scheduler::*wake)(const void *) noexcept) noexcept {
    point();
    if (Scheduler *scheduler = Scheduler::current())
      (scheduler->*wake)(this);
    point();
  }
  /// Lets go of the lock and sleeps at once; nobody comes between.
  static bool sleep(const void *object, std::unique_lock<mutex> &lock, Scheduler::Time until) {
    Scheduler &scheduler = *Scheduler::current();
    lock.mutex()->held_ = false;
    scheduler.wakeAll(lock.mutex());
    const bool woken = scheduler.block(object, "a condition", until);
    lock.mutex()->lock();
    return woken;
  }
};

class thread {
public:
  thread() = default;
  template <typename Body> explicit thread(Body body) : fiber_(Scheduler::current()->start(std::move(body))) {
    point();
  }
  thread(thread &&other) noexcept : fiber_(std::exchange(other.fiber_, nullptr)) {}
  thread &operator=(thread &&other) noexcept {
    std::swap(fiber_, other.fiber_);
    return *this;
  }
  ~thread() {
    if (fiber_ != nullptr)
      std::terminate();
  }
  bool joinable() const noexcept { return fiber_ != nullptr; }
  void join() {
    point();
    Scheduler::current()->join(std::exchange(fiber_, nullptr));
  }
  Fiber *native_handle() noexcept { return fiber_; }

private:
  Fiber *fiber_ = nullptr;
};

inline void pthread_setname_np(Fiber *fiber, const char *name) { Scheduler::current()->name(fiber, name); }

struct steady_clock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<steady_clock>;
  static constexpr bool is_steady = true;
  static time_point now() noexcept {
    point();
    return time_point(Scheduler::current() != nullptr ? Scheduler::current()->now() : duration());
  }
};

namespace this_thread {
template <typename Rep, typename Period> void sleep_for(std::chrono::duration<Rep, Period> duration) {
  Scheduler::current()->sleep(duration);
}
} // namespace this_thread

} // namespace ds::sim
