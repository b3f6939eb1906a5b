//===- CommandRing.h - the last commands of a queue, and where it stands --===//
//
// Always on, so that a run which hangs after a week still tells what it did last: a few stores a command, no locks, no
// allocation, and a clock of milliseconds that costs no system call.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <memory>
#include <vector>

namespace ds::runtime {

/// How often this rank has entered a communicator or channel since the beginning. The k-th time on one rank belongs to
/// the k-th on the others, whatever they do between.
using Entrances = std::atomic<uint64_t>;

/// Which run of a program a rank is in; written by the host before it submits anything.
struct RunMark {
  std::atomic<uint64_t> step = 0; ///< optimizer steps done before it
  std::atomic<uint32_t> program = 0;
};

/// Since the machine has started. Cf. CLOCK_MONOTONIC_COARSE: some 1 to 4 ms apart.
inline int64_t coarseMs() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return int64_t(now.tv_sec) * 1000 + now.tv_nsec / 1000000;
}

enum class CommandState : uint32_t { Waiting, Running, Done };

/// One execution of one command.
struct CommandEntry {
  uint64_t step = 0;     ///< optimizer steps done before it
  uint64_t entrance = 0; ///< its place among the entrances of its communicator or channel, from 1; 0: it has none
  uint32_t program = 0, call = 0, command = 0; ///< indices; commands count through all routines of the role
  CommandState state = CommandState::Waiting;
  uint32_t wait = 0;                          ///< Waiting: which of the command's waits
  int64_t waitMs = 0, beginMs = 0, endMs = 0; ///< coarseMs; 0: not yet
};

/// Written by the queue's thread alone, read by any: a reader gets whole entries, of which the last may be half a
/// command old.
class CommandRing {
public:
  static constexpr uint64_t capacity = 1024;

  explicit CommandRing(const RunMark &run) : run_(run), slots_(std::make_unique<Slots>()) {}

  /// Before the first wait of a command, or before it begins.
  void next(uint32_t command, uint32_t call) noexcept {
    Slot &slot = current();
    store(slot.step, run_.step.load(relaxed));
    store(slot.program, run_.program.load(relaxed));
    store(slot.command, command);
    store(slot.call, call);
    store(slot.entrance, 0);
    store(slot.wait, 0);
    store(slot.state, uint32_t(CommandState::Waiting));
    store(slot.waitMs, coarseMs());
    store(slot.beginMs, 0);
    store(slot.endMs, 0);
    added_.store(added_.load(relaxed) + 1, std::memory_order_release);
  }
  void waits(uint32_t wait) noexcept { store(last().wait, wait); }
  void begins(Entrances *entrances) noexcept {
    if (entrances != nullptr) {
      const uint64_t entrance = entrances->load(relaxed) + 1;
      entrances->store(entrance, relaxed);
      store(last().entrance, entrance);
    }
    store(last().beginMs, coarseMs());
    store(last().state, uint32_t(CommandState::Running));
  }
  void ends() noexcept {
    store(last().endMs, coarseMs());
    store(last().state, uint32_t(CommandState::Done));
  }

  /// The oldest first.
  std::vector<CommandEntry> entries() const;

private:
  static constexpr auto relaxed = std::memory_order_relaxed;

  struct Slot {
    std::atomic<uint64_t> step, entrance;
    std::atomic<uint32_t> program, command, call, state, wait;
    std::atomic<int64_t> waitMs, beginMs, endMs;
  };
  using Slots = std::array<Slot, capacity>;

  template <typename T, typename Value> static void store(std::atomic<T> &field, Value value) noexcept {
    field.store(T(value), relaxed);
  }
  Slot &current() noexcept { return (*slots_)[added_.load(relaxed) % capacity]; }
  Slot &last() noexcept { return (*slots_)[(added_.load(relaxed) - 1) % capacity]; }

  const RunMark &run_;
  const std::unique_ptr<Slots> slots_;
  std::atomic<uint64_t> added_ = 0;
};

inline std::vector<CommandEntry> CommandRing::entries() const {
  const uint64_t end = added_.load(std::memory_order_acquire);
  uint64_t first = end - std::min(end, capacity);
  std::vector<CommandEntry> entries;
  for (uint64_t i = first; i < end; ++i) {
    const Slot &slot = (*slots_)[i % capacity];
    entries.push_back({.step = slot.step,
                       .entrance = slot.entrance,
                       .program = slot.program,
                       .call = slot.call,
                       .command = slot.command,
                       .state = CommandState(slot.state.load()),
                       .wait = slot.wait,
                       .waitMs = slot.waitMs,
                       .beginMs = slot.beginMs,
                       .endMs = slot.endMs});
  }
  // What the queue has written over meanwhile; one more, since it may be about to.
  const uint64_t now = added_.load(std::memory_order_acquire) + 1;
  const uint64_t overwritten = now > capacity + first ? std::min(now - capacity - first, end - first) : 0;
  entries.erase(entries.begin(), entries.begin() + int64_t(overwritten));
  return entries;
}

} // namespace ds::runtime
