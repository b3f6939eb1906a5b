//===- ShortenSchedule.cpp - the same schedule, fewer micro-batches -------===//
#include "compiler/check/schedule/ShortenSchedule.h"

#include "compiler/check/schedule/Effects.h"
#include "runtime/plan/run/ProgramLives.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace ds::check {

namespace {

/// Calls [begin, begin + length * count) repeat the first `length` of them, each time for micro-batches `advance`
/// higher.
struct Repetition {
  size_t begin = 0, length = 0, count = 0;
  uint64_t advance = 0;
  uint64_t microbatches() const { return count * advance; }
};

/// How far a routine's next calls are looked at for the end of a period: micro-batches that schedules take together.
constexpr size_t longestPeriod = 128;

/// What repeats in a program.
class Repetitions {
public:
  explicit Repetitions(const proto::Program &program) : program_(program) {
    for (int c = 0; c < program.calls_size(); ++c)
      calls_[program.calls(c).routine()].push_back(size_t(c));
  }

  /// Repetitions in the order of calls, together of all routines that are called often; nothing where some such routine
  /// is in none of them, in two, or not once a micro-batch in its own.
  std::optional<std::vector<Repetition>> find() const {
    std::vector<Repetition> found;
    std::set<uint32_t> covered;
    for (const auto &[routine, calls] : calls_)
      if (calls.size() > 4 && !covered.contains(routine)) {
        const Repetition longest = around(calls);
        if (longest.count < 4 || !cover(longest, covered))
          return std::nullopt;
        found.push_back(longest);
      }
    std::ranges::sort(found, {}, &Repetition::begin);
    return found;
  }

private:
  bool repeats(size_t call, const Repetition &one) const {
    if (call + one.length >= size_t(program_.calls_size()))
      return false;
    const proto::Call &a = program_.calls(int(call)), &b = program_.calls(int(call + one.length));
    return a.routine() == b.routine() && a.microbatch() + one.advance == b.microbatch();
  }

  /// The one of most micro-batches that goes through the middle of a routine's calls.
  Repetition around(const std::vector<size_t> &calls) const {
    Repetition best;
    const size_t middle = calls[calls.size() / 2];
    for (size_t i = calls.size() / 2 + 1; i < std::min(calls.size(), calls.size() / 2 + 1 + longestPeriod); ++i) {
      Repetition one{middle, calls[i] - middle, 0, 0};
      const uint64_t from = program_.calls(int(middle)).microbatch(), to = program_.calls(int(calls[i])).microbatch();
      one.advance = to > from ? to - from : 0;
      size_t end = middle;
      while (repeats(end, one))
        ++end;
      while (one.begin > 0 && repeats(one.begin - 1, one))
        --one.begin;
      one.count = one.advance > 0 && end > one.begin ? (end - one.begin) / one.length + 1 : 0;
      if (one.microbatches() > best.microbatches())
        best = one;
    }
    return best;
  }

  /// Whether its routines were not covered before and each is called once a micro-batch.
  bool cover(const Repetition &one, std::set<uint32_t> &covered) const {
    std::map<uint32_t, uint64_t> times;
    for (size_t c = one.begin; c < one.begin + one.length; ++c)
      ++times[program_.calls(int(c)).routine()];
    return std::ranges::all_of(
        times, [&](const auto &entry) { return entry.second == one.advance && covered.insert(entry.first).second; });
  }

  const proto::Program &program_;
  std::map<uint32_t, std::vector<size_t>> calls_; // by routine
};

const proto::Program *stepOf(const proto::Role &role) {
  for (const proto::Program &program : role.programs())
    if (program.name() == "step")
      return &program;
  return nullptr;
}

/// By buffer of several slots, how many slots those have with which it has bytes in common; its own, if two of its
/// slots do.
std::map<uint32_t, std::set<uint32_t>> sharedSlots(const proto::Role &role) {
  struct Slot {
    uint32_t arena;
    uint64_t begin, end;
    uint32_t buffer, slots;
  };
  std::vector<Slot> slots;
  for (uint32_t index = 0; index < uint32_t(role.buffers_size()); ++index) {
    const proto::Buffer &buffer = role.buffers(int(index));
    for (uint32_t slot = 0; slot < buffer.slots() && buffer.bytes() > 0; ++slot)
      slots.push_back({buffer.arena(), plan::slotOffset(buffer, slot), plan::slotOffset(buffer, slot) + buffer.bytes(),
                       index, buffer.slots()});
  }
  std::ranges::sort(slots, {}, [](const Slot &one) { return std::tuple(one.arena, one.begin, one.end, one.buffer); });
  std::map<uint32_t, std::set<uint32_t>> shared;
  std::vector<Slot> open;
  for (const Slot &slot : slots) {
    std::erase_if(open, [&](const Slot &one) { return one.arena != slot.arena || one.end <= slot.begin; });
    for (const Slot &one : open) {
      if (one.slots > 1)
        shared[one.buffer].insert(slot.slots);
      if (slot.slots > 1)
        shared[slot.buffer].insert(one.slots);
    }
    open.push_back(slot);
  }
  return shared;
}

/// The commands that a program repeats.
std::vector<const proto::Command *> repeated(const proto::Role &role, const proto::Program &program,
                                             const std::vector<Repetition> &repetitions) {
  std::set<uint32_t> routines;
  for (const Repetition &one : repetitions)
    for (size_t c = one.begin; c < one.begin + one.length; ++c)
      routines.insert(program.calls(int(c)).routine());
  std::vector<const proto::Command *> commands;
  for (uint32_t routine : routines)
    for (const proto::Command &command : role.routines(int(routine)).commands())
      commands.push_back(&command);
  return commands;
}

/// How far back waits of a program reach.
uint64_t longestDelay(const proto::Role &role, const proto::Program &program, uint64_t microbatches) {
  std::set<uint32_t> routines;
  for (const proto::Call &call : program.calls())
    routines.insert(call.routine());
  uint64_t delay = 0;
  for (uint32_t routine : routines)
    for (const proto::Command &command : role.routines(int(routine)).commands())
      for (const proto::Wait &wait : command.waits())
        delay = std::max<uint64_t>(delay, wait.delay() < microbatches ? wait.delay() : 0); // else it never holds
  return delay;
}

/// Micro-batches of a repetition after which the role has seen all that can happen in it: every wait, of what is
/// repeated or comes behind it, reaches back to one of them, and every slot has been used again. Where slots share
/// bytes with other buffers, so has every slot beside every one of theirs, whether these are of the repetition or what
/// begins or ends the step.
uint64_t neededMicrobatches(const proto::Role &role, const std::vector<const proto::Command *> &commands,
                            uint64_t microbatches, uint64_t delay) {
  uint64_t needed = 0;
  std::set<uint32_t> buffers;
  for (const proto::Command *command : commands)
    for (const Effect &effect : effectsOf(*command))
      buffers.insert(effect.operand->buffer());
  std::map<uint32_t, std::set<uint32_t>> shared = sharedSlots(role);
  for (uint32_t index : buffers) {
    const proto::Buffer &buffer = role.buffers(int(index));
    if (buffer.slots() < 2)
      continue;
    uint64_t turns = 1, period = buffer.slots();
    for (uint32_t slots : shared[index]) {
      if (period < microbatches)
        period = std::lcm(period, slots);
      turns = 2;
    }
    if (turns == 2 || period < microbatches) // slots that no two micro-batches share need no turn
      needed = std::max(needed, turns * period);
  }
  return std::max(needed, delay) + 4;
}

/// The program without `left` micro-batches of every repetition. Its tail, if it has one, stands behind them all.
void shorten(proto::Program &program, const std::vector<Repetition> &repetitions, uint64_t left) {
  const uint64_t half = (std::ranges::max(program.calls(), {}, &proto::Call::microbatch).microbatch() + 1) / 2;
  std::map<uint32_t, size_t> behind; // by routine of a repetition: the call from which its micro-batches move up
  std::vector<std::pair<size_t, size_t>> gone;
  for (const Repetition &one : repetitions) {
    const size_t end = one.begin + one.count * one.length, begin = end - left / one.advance * one.length;
    gone.emplace_back(begin, end);
    for (size_t c = one.begin; c < one.begin + one.length; ++c)
      behind[program.calls(int(c)).routine()] = end;
  }
  google::protobuf::RepeatedPtrField<proto::Call> calls;
  int first = 0; // of the tail
  for (size_t c = 0; c < size_t(program.calls_size()); ++c) {
    if (program.has_tail() && c == program.tail().first_call())
      first = calls.size();
    if (std::ranges::any_of(gone, [&](const auto &range) { return c >= range.first && c < range.second; }))
      continue;
    proto::Call call = program.calls(int(c));
    const auto known = behind.find(call.routine());
    if (known == behind.end() ? call.microbatch() >= half : c >= known->second)
      call.set_microbatch(uint32_t(call.microbatch() - std::min<uint64_t>(left, call.microbatch())));
    *calls.Add() = call;
  }
  program.mutable_calls()->Swap(&calls);
  if (program.has_tail())
    program.mutable_tail()->set_first_call(uint32_t(first));
}

/// Whether every routine that is called often is called for micro-batches 0, 1, ... of `microbatches`, in this order;
/// for the last of them another routine may be called instead.
bool isWhole(const proto::Program &program, uint64_t microbatches) {
  std::map<uint32_t, uint64_t> next;
  std::map<uint32_t, uint64_t> times;
  for (const proto::Call &call : program.calls())
    ++times[call.routine()];
  for (const proto::Call &call : program.calls())
    if (times[call.routine()] > 4 && call.microbatch() != next[call.routine()]++)
      return false;
  return std::ranges::all_of(times, [&](const auto &one) {
    return one.second <= 4 || one.second == microbatches || one.second == microbatches - 1;
  });
}

} // namespace

std::optional<proto::Plan> turnSlots(const proto::Plan &plan, const proto::Plan &shorter) {
  const uint64_t left = plan.training().accumulation_steps() - shorter.training().accumulation_steps();
  proto::Plan turned = shorter;
  bool differs = false;
  for (proto::Role &role : *turned.mutable_roles())
    for (proto::Buffer &buffer : *role.mutable_buffers()) {
      if (buffer.slots() < 2 || left % buffer.slots() == 0)
        continue;
      const proto::Buffer old = buffer;
      buffer.set_offset(plan::slotOffset(old, left));
      for (uint32_t slot = 1; slot < buffer.slots(); ++slot)
        buffer.set_slot_offsets(int(slot - 1), plan::slotOffset(old, slot + left));
      differs = true;
    }
  return differs ? std::optional(std::move(turned)) : std::nullopt;
}

std::optional<proto::Plan> shortenSchedule(const proto::Plan &plan) {
  const uint64_t microbatches = plan.training().accumulation_steps();
  uint64_t left = microbatches, together = 1;
  std::vector<std::vector<Repetition>> repetitions;
  for (const proto::Role &role : plan.roles()) {
    const proto::Program *step = stepOf(role);
    if (!step || !isWhole(*step, microbatches))
      return std::nullopt;
    const auto found = Repetitions(*step).find();
    if (!found || found->empty())
      return std::nullopt;
    const uint64_t needed =
        neededMicrobatches(role, repeated(role, *step, *found), microbatches, longestDelay(role, *step, microbatches));
    for (const Repetition &one : *found) {
      if (step->has_tail() && one.begin + one.length * one.count > step->tail().first_call())
        return std::nullopt;
      left = std::min(left, one.microbatches() - std::min(one.microbatches(), needed + one.advance));
      together = together > microbatches ? together : std::lcm(together, one.advance);
    }
    repetitions.push_back(*found);
  }
  left -= left % together;
  if (left < microbatches / 4 || left == 0)
    return std::nullopt;
  proto::Plan shorter = plan;
  shorter.mutable_training()->set_accumulation_steps(microbatches - left);
  shorter.mutable_training()->set_train_batch_size(plan.training().train_batch_size() / microbatches *
                                                   (microbatches - left));
  for (int r = 0; r < plan.roles_size(); ++r)
    for (proto::Program &program : *shorter.mutable_roles(r)->mutable_programs())
      if (program.name() == "step") {
        shorten(program, repetitions[size_t(r)], left);
        if (!isWhole(program, microbatches - left))
          return std::nullopt;
      }
  return shorter;
}

} // namespace ds::check
