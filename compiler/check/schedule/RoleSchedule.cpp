//===- RoleSchedule.cpp - what a role runs when, for all of its ranks -----===//
#include "compiler/check/schedule/RoleSchedule.h"

#include <set>

namespace ds::check {

namespace {

/// From where a copy leads to where, if `forth`, or the other way round, until all that copies reach is known.
void followCopies(const Timeline &timeline, bool forth, std::map<uint32_t, uint32_t> &bucketOf) {
  for (size_t before = SIZE_MAX; before != bucketOf.size();) {
    before = bucketOf.size();
    for (const Instance &instance : timeline.instances)
      if (const proto::CopyCommand &copy = instance.command->copy(); instance.command->has_copy()) {
        const proto::Operand &from = forth ? copy.source() : copy.target(), &to = forth ? copy.target() : copy.source();
        if (const auto known = bucketOf.find(from.buffer()); known != bucketOf.end())
          bucketOf.try_emplace(to.buffer(), known->second);
      }
  }
}

/// By buffer of gradients, or where they pass on their way to an update: the bucket that they update.
std::map<uint32_t, uint32_t> bucketsOfGradients(const proto::Role &role, const Timeline &timeline) {
  std::map<uint32_t, uint32_t> parameters, gradients;
  for (int b = 0; b < role.buffers_size(); ++b)
    if (role.buffers(b).has_bucket())
      parameters[uint32_t(b)] = role.buffers(b).bucket();
  followCopies(timeline, /*forth=*/true, parameters);
  for (const Instance &instance : timeline.instances)
    if (isOptimizer(*instance.command)) {
      const auto &operands = instance.command->kernel().operands();
      if (const auto bucket = parameters.find(operands[0].buffer()); bucket != parameters.end())
        gradients[operands[1].buffer()] = bucket->second;
    }
  followCopies(timeline, /*forth=*/false, gradients);
  return gradients;
}

/// By buffer of sums of squares: the bucket that the squared gradients update.
std::map<uint32_t, uint32_t> bucketsOfSquares(const Timeline &timeline, const std::map<uint32_t, uint32_t> &gradients) {
  std::map<uint32_t, uint32_t> squares;
  for (const Instance &instance : timeline.instances)
    if (const auto &kernel = instance.command->kernel(); kernel.kernel() == "block_sum_squares")
      if (const auto bucket = gradients.find(kernel.operands(0).buffer()); bucket != gradients.end())
        squares[kernel.operands(1).buffer()] = bucket->second;
  followCopies(timeline, /*forth=*/true, squares);
  return squares;
}

std::map<uint32_t, uint32_t> writtenNexts(const proto::Role &role, const proto::Program &program) {
  std::set<uint32_t> routines;
  for (const proto::Call &call : program.calls())
    routines.insert(call.routine());
  std::map<uint32_t, uint32_t> nexts;
  for (const uint32_t routine : routines)
    for (const proto::Command &command : role.routines(int(routine)).commands())
      for (const Effect &effect : effectsOf(command))
        if (const proto::Buffer &buffer = role.buffers(int(effect.operand->buffer()));
            effect.writes && buffer.has_next_of())
          nexts[buffer.next_of()] = effect.operand->buffer();
  return nexts;
}

} // namespace

RoleSchedule::RoleSchedule(const proto::Role &role, const proto::Program &program, const Timeline &timeline)
    : bucketOf(bucketsOfGradients(role, timeline)), squaredBucketOf(bucketsOfSquares(timeline, bucketOf)),
      nexts(writtenNexts(role, program)) {
  for (int c = 0; c < program.calls_size(); ++c) {
    const uint32_t routine = program.calls(c).routine();
    firstCall.try_emplace(routine, uint32_t(c));
    calls.try_emplace({routine, program.calls(c).microbatch()}, uint32_t(c), uint32_t(c)).first->second.second =
        uint32_t(c);
    lastCall[routine] = uint32_t(c);
    instanceOf.emplace_back(size_t(role.routines(int(routine)).commands_size()));
  }
  effects.reserve(timeline.instances.size());
  for (size_t i = 0; i < timeline.instances.size(); ++i) {
    instanceOf[timeline.instances[i].call][timeline.instances[i].index] = i;
    effects.push_back(effectsOf(*timeline.instances[i].command));
  }
}

} // namespace ds::check
