//===- ShortenSchedule.cpp - the same schedule, fewer micro-batches -------===//
#include "compiler/check/schedule/ShortenSchedule.h"

#include "compiler/check/schedule/Effects.h"
#include "compiler/check/schedule/Timeline.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace ds::check {

namespace {

/// Calls [begin, end), which call the same routines again after each `length` of them, for micro-batches `advance`
/// higher.
struct Repetition {
  size_t begin = 0, end = 0, length = 0;
  uint64_t advance = 0;

  size_t repeated() const { return end - begin - length; }
  size_t periods() const { return (end - begin) / length; }
  uint64_t microbatches() const { return periods() * advance; }
};

/// A routine that is called more often is called for every micro-batch, or for all but the last.
constexpr size_t seldom = 4;
/// How many micro-batches a period may take together.
constexpr size_t longestPeriod = 128;

/// A role's program `step`.
class RoleStep {
public:
  RoleStep(const proto::Role &role, const proto::Program &program)
      : role_(role), program_(program), calls_(size_t(role.routines_size())), callOf_(calls_.size()) {
    for (size_t c = 0; c < size_t(program.calls_size()); ++c) {
      const proto::Call &call = program.calls(int(c));
      calls_[call.routine()].push_back(c);
      std::vector<size_t> &own = callOf_[call.routine()];
      own.resize(std::max<size_t>(own.size(), call.microbatch() + 1), SIZE_MAX);
      own[call.microbatch()] = c;
    }
  }

  /// Whether each routine that is called often takes micro-batches 0, 1, ... of `microbatches` in this order; for the
  /// last of them another may be called instead. The others are called for the first and the last alone.
  bool isInOrder(uint64_t microbatches) const {
    return std::ranges::all_of(calls_, [&](const std::vector<size_t> &calls) {
      for (const size_t call : calls)
        if (const uint64_t own = program_.calls(int(call)).microbatch();
            calls.size() <= seldom && own != 0 && own + 1 != microbatches)
          return false;
      for (size_t i = 0; calls.size() > seldom && i < calls.size(); ++i)
        if (program_.calls(int(calls[i])).microbatch() != i)
          return false;
      return calls.size() <= seldom || calls.size() == microbatches || calls.size() + 1 == microbatches;
    });
  }

  /// Whether what calls use of scope SLOT is alive then, in their own micro-batch.
  bool usesWhatLives() const {
    std::map<std::pair<uint32_t, uint32_t>, std::pair<uint32_t, uint32_t>> uses; // by routine and buffer: commands
    forEachCommand([&](uint32_t routine, uint32_t index, const proto::Command &command) {
      for (const Effect &effect : effectsOf(command))
        uses.try_emplace({routine, effect.operand->buffer()}, index, index).first->second.second = index;
    });
    return std::ranges::all_of(uses, [&](const auto &use) {
      const auto &[routine, buffer] = use.first;
      return role_.buffers(int(buffer)).scope() != proto::Buffer::SLOT ||
             std::ranges::all_of(calls_[routine], [&](size_t call) {
               return isAlive(role_.buffers(int(buffer)), call, use.second.first, use.second.second);
             });
    });
  }

  /// How many micro-batches back waits reach.
  uint64_t longestDelay(uint64_t microbatches) const {
    uint64_t delay = 0;
    forEachCommand([&](uint32_t, uint32_t, const proto::Command &command) {
      for (const proto::Wait &wait : command.waits())
        delay = std::max<uint64_t>(delay, wait.delay() < microbatches ? wait.delay() : 0); // else it never holds
    });
    return delay;
  }

  /// Repetitions that together have all routines that are called often, each of these in one of them and there as often
  /// as the others; nothing where there are none, or a tail begins in one.
  std::vector<Repetition> repetitions() const {
    std::vector<Repetition> found;
    std::set<uint32_t> covered;
    for (uint32_t routine = 0; routine < calls_.size(); ++routine)
      if (calls_[routine].size() > seldom && !covered.contains(routine)) {
        found.push_back(around(calls_[routine]));
        if (!cover(found.back(), covered))
          return {};
      }
    return found;
  }

  /// How many micro-batches a routine of a repetition is ahead of another: so long what one leaves waits for the other.
  uint64_t spread(const Repetition &one) const {
    uint32_t least = UINT32_MAX, most = 0;
    for (size_t c = one.begin; c < one.begin + one.length; ++c) {
      least = std::min(least, program_.calls(int(c)).microbatch());
      most = std::max(most, program_.calls(int(c)).microbatch());
    }
    return most - least;
  }

private:
  uint32_t routineOf(size_t call) const { return program_.calls(int(call)).routine(); }

  void forEachCommand(auto &&visit) const {
    for (uint32_t routine = 0; routine < calls_.size(); ++routine)
      if (!calls_[routine].empty())
        for (uint32_t index = 0; index < uint32_t(role_.routines(int(routine)).commands_size()); ++index)
          visit(routine, index, role_.routines(int(routine)).commands(int(index)));
  }

  /// Whether a buffer has a life of a call's micro-batch that holds the call's commands `first` to `last`.
  bool isAlive(const proto::Buffer &buffer, size_t call, uint32_t first, uint32_t last) const {
    const uint32_t microbatch = program_.calls(int(call)).microbatch();
    const auto callOf = [&](uint32_t routine) {
      return microbatch < callOf_[routine].size() ? callOf_[routine][microbatch] : SIZE_MAX;
    };
    return std::ranges::any_of(buffer.lives(), [&](const proto::Life &life) {
      const size_t birth = callOf(life.birth_routine()), death = callOf(life.death_routine());
      return &role_.programs(int(life.program())) == &program_ && death != SIZE_MAX &&
             std::pair(birth, life.birth_command()) <= std::pair(call, first) &&
             std::pair(call, last) <= std::pair(death, life.death_command());
    });
  }

  /// The longest repetition that goes through the middle one of a routine's calls.
  Repetition around(const std::vector<size_t> &calls) const {
    Repetition best;
    const size_t middle = calls.size() / 2;
    for (size_t advance = 1; advance <= longestPeriod && middle + advance < calls.size(); ++advance) {
      const size_t next = calls[middle + advance];
      Repetition one{calls[middle], next, next - calls[middle], advance};
      while (one.end < size_t(program_.calls_size()) && routineOf(one.end) == routineOf(one.end - one.length))
        ++one.end;
      while (one.begin > 0 && routineOf(one.begin - 1) == routineOf(one.begin - 1 + one.length))
        --one.begin;
      if (one.repeated() > best.repeated())
        best = one;
    }
    return best;
  }

  bool cover(const Repetition &one, std::set<uint32_t> &covered) const {
    std::map<uint32_t, uint64_t> times;
    for (size_t c = one.begin; c < one.begin + one.length; ++c)
      ++times[routineOf(c)];
    return one.length > 0 && !(program_.has_tail() && one.end > program_.tail().first_call()) &&
           std::ranges::all_of(times, [&](const auto &entry) {
             return entry.second == one.advance && covered.insert(entry.first).second;
           });
  }

  const proto::Role &role_;
  const proto::Program &program_;
  std::vector<std::vector<size_t>> calls_;  // by routine
  std::vector<std::vector<size_t>> callOf_; // by routine and micro-batch; SIZE_MAX: none
};

/// Leaves the last `left` micro-batches out of every repetition. What comes behind moves up.
void shorten(proto::Program &program, const std::vector<Repetition> &repetitions, uint64_t left) {
  std::set<size_t> gone;
  std::map<uint32_t, uint64_t> lastGone; // micro-batch, by routine of a repetition
  for (const Repetition &one : repetitions) {
    const size_t end = one.begin + one.periods() * one.length;
    for (size_t c = end - left / one.advance * one.length; c < end; ++c) {
      gone.insert(c);
      lastGone[program.calls(int(c)).routine()] = program.calls(int(c)).microbatch();
    }
  }
  google::protobuf::RepeatedPtrField<proto::Call> calls;
  for (size_t c = 0; c < size_t(program.calls_size()); ++c)
    if (!gone.contains(c)) {
      proto::Call &call = *calls.Add() = program.calls(int(c));
      if (call.microbatch() > lastGone.try_emplace(call.routine(), left).first->second)
        call.set_microbatch(uint32_t(call.microbatch() - left));
    }
  program.mutable_calls()->Swap(&calls);
  if (program.has_tail())
    program.mutable_tail()->set_first_call(uint32_t(program.tail().first_call() - gone.size()));
}

} // namespace

std::optional<proto::Plan> shortenSchedule(const proto::Plan &plan) {
  const uint64_t microbatches = plan.training().accumulation_steps();
  uint64_t left = microbatches, together = 1;
  std::vector<std::vector<Repetition>> repetitions;
  for (const proto::Role &role : plan.roles()) {
    const proto::Program *program = programNamed(role, "step");
    if (!program)
      return std::nullopt;
    const RoleStep step(role, *program);
    repetitions.push_back(step.repetitions());
    if (repetitions.back().empty() || !step.isInOrder(microbatches) || !step.usesWhatLives())
      return std::nullopt;
    const uint64_t needed = step.longestDelay(microbatches) + 4; // so every wait reaches back into what stays
    for (const Repetition &one : repetitions.back()) {
      const uint64_t stay = needed + one.advance + step.spread(one);
      left = std::min(left, one.microbatches() - std::min(one.microbatches(), stay));
      together = together > microbatches ? together : std::lcm(together, one.advance);
    }
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
      if (program.name() == "step")
        shorten(program, repetitions[size_t(r)], left);
  return shorter;
}

} // namespace ds::check
