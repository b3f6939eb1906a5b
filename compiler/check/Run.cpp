//===- Run.cpp - accesses, races, what is there when it is read -----------===//
#include "compiler/check/Run.h"

#include "runtime/plan/Groups.h"

#include <algorithm>

namespace ds::check {

RoleOrder::RoleOrder(const proto::Plan &plan, const proto::Role &role, const proto::Program &program,
                     const Timeline &timeline)
    : trained(trainedParameters(plan)) {
  for (const Instance &instance : timeline.instances)
    if (isOptimizer(*instance.command)) {
      const auto &operands = instance.command->kernel().operands();
      if (const proto::Buffer &parameters = role.buffers(int(operands[0].buffer())); parameters.has_bucket())
        bucketOf[operands[1].buffer()] = parameters.bucket();
    }
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

Run::Run(const Part &part, const RoleOrder &order, uint32_t rank, const Range *only)
    : part_(part), plan_(part.plan), meaning_(part.meaning), role_(part.role()), program_(part.program),
      timeline_(part.timeline()), order_(order), rank_(rank), only_(only) {
  for (const proto::Arena &arena : role_.arenas())
    shadows_.emplace_back(arena.bytes());
  for (int b = 0; b < role_.buffers_size(); ++b)
    if (const proto::Buffer &buffer = role_.buffers(b);
        (buffer.has_variable() || buffer.has_bucket()) &&
        isFollowed({buffer.arena(), buffer.offset(), buffer.offset() + buffer.bytes()}))
      setInitial(uint32_t(b));
}

void Run::finish() {
  for (const proto::Metric &metric : program_.metrics())
    readMetric(metric);
  if (program_.name() == "step")
    requireUpdated();
  if (only_)
    return;
  if (program_.name() == "step")
    requireIncrements();
  for (size_t i = 0; i < timeline_.instances.size(); ++i)
    for (const Effect &effect : order_.effects[i])
      requireOrder(*effect.operand, i);
}

uint64_t Run::offsetIn(const proto::Operand &operand) const {
  const uint64_t coordinate =
      operand.rank_stride() == 0 ? 0 : plan::groupCoordinate(plan_, operand.communicator(), rank_);
  return operand.byte_offset() + coordinate * operand.rank_stride();
}

Range Run::rangeOf(const proto::Operand &operand, uint64_t microbatch) const {
  const proto::Buffer &buffer = bufferOf(operand);
  const uint64_t begin = offsetOf(buffer, microbatch) + offsetIn(operand);
  return {buffer.arena(), begin, begin + byteCount(operand)};
}

void Run::setInitial(uint32_t index) {
  const proto::Buffer &buffer = role_.buffers(int(index));
  Content content;
  content.kind = Content::Initial;
  content.buffer = index;
  content.value = meaning_.values().padding();
  Shadow &shadow = shadows_[buffer.arena()];
  shadow.over(buffer.offset(), buffer.offset() + buffer.bytes(),
              [&](uint64_t, Segment &segment) { segment.content = content; });
  for (const Member &member : Layout(plan_, buffer, rank_).within(0, buffer.bytes()))
    shadow.over(buffer.offset() + member.begin, buffer.offset() + member.end, [&](uint64_t, Segment &segment) {
      segment.content.value = meaning_.values().variable(member.variable);
      segment.content.valueByte = member.firstByte;
    });
}

uint64_t Run::generationOf(const proto::Buffer &buffer, const Instance &instance) {
  switch (buffer.scope()) {
  case proto::Buffer::SLOT:
    return instance.microbatch;
  case proto::Buffer::CALL:
    return instance.call;
  default:
    return 0;
  }
}

void Run::execute(size_t index) {
  const std::vector<Effect> &effects = order_.effects[index];
  for (const Effect &effect : effects)
    if (!only_) // lives are those of all ranks
      requireAlive(*effect.operand, index);
  for (const Effect &effect : effects)
    if (effect.reads)
      read(*effect.operand, index);
  requireApart(effects, index);
  const std::vector<Meaning::Result> results = resultsOf(effects, index);
  const proto::Command &command = *timeline_.instances[index].command;
  if (command.has_send() && !only_)
    for (const proto::Operand &source : command.send().sources())
      part_.mail.sent[{part_.index, index}].push_back(
          piecesOf(source, 0, byteCount(source), timeline_.instances[index].microbatch));
  // Values are known before anything is overwritten: an operand may be read and written in one place.
  std::vector<std::vector<Piece>> written;
  if (command.has_receive())
    written = received(index);
  written.reserve(effects.size());
  for (size_t e = written.size(); e < effects.size(); ++e)
    written.push_back(effects[e].writes ? valueOf(*effects[e].operand, effects, results[e], index)
                                        : std::vector<Piece>());
  for (size_t e = 0; e < effects.size(); ++e)
    if (effects[e].writes || effects[e].scratch)
      write(*effects[e].operand, written[e], index);
}

void Run::requireApart(const std::vector<Effect> &effects, size_t index) const {
  const Instance &instance = timeline_.instances[index];
  std::vector<Range> ranges;
  ranges.reserve(effects.size());
  for (const Effect &effect : effects)
    ranges.push_back(rangeOf(*effect.operand, instance.microbatch));
  for (size_t w = 0; w < effects.size(); ++w)
    for (size_t o = 0; o < effects.size() && (effects[w].writes || effects[w].scratch); ++o) {
      const proto::Operand &written = *effects[w].operand, &other = *effects[o].operand;
      const Range &a = ranges[w], &b = ranges[o];
      if (o == w || a.arena != b.arena || a.begin >= b.end || b.begin >= a.end)
        continue;
      if (effects[w].scratch && effects[o].scratch && instance.command->has_collective())
        continue; // its parts are carried out one after another
      const bool inPlace = written.buffer() == other.buffer() && !effects[w].scratch && !effects[o].scratch;
      if (!inPlace || (!instance.command->has_collective() && (a.begin != b.begin || a.end != b.end)))
        refuse("race", index,
               "writes " + nameOf(written.buffer()) + " where its operand in " + nameOf(other.buffer()) + " lies");
    }
}

void Run::refuse(const char *rule, size_t index, const std::string &sentence) const {
  const std::string rank = plan_.roles_size() > 1 || role_.ranks_size() != 2 || role_.ranks(0) != role_.ranks(1)
                               ? ", rank " + std::to_string(rank_)
                               : "";
  throw Refusal{rule, place(index) + rank + ": " + sentence};
}

void Run::read(const proto::Operand &operand, size_t index) {
  const Instance &instance = timeline_.instances[index];
  const Range range = rangeOf(operand, instance.microbatch);
  if (!isFollowed(range))
    return;
  const uint64_t generation = generationOf(bufferOf(operand), instance);
  shadows_[range.arena].over(range.begin, range.end, [&](uint64_t, Segment &segment) {
    if (segment.written && !timeline_.isBefore(segment.writer.queue, segment.writer.position, index))
      refuse("race", index,
             "reads " + nameOf(operand.buffer()) + " while " + place(segment.writer.instance) +
                 " may still write it; nothing makes queue " + queueName(instance.queue) + " wait for queue " +
                 queueName(segment.writer.queue));
    requireValue(operand, segment, generation, index);
    note(segment, instance, index);
  });
}

void Run::requireValue(const proto::Operand &operand, const Segment &segment, uint64_t generation, size_t index) const {
  const Content &content = segment.content;
  if (content.kind != Content::Undefined && content.buffer == operand.buffer() && content.generation == generation)
    return;
  const std::string writer = segment.written ? " at " + place(segment.writer.instance) : "";
  if (content.kind == Content::Undefined)
    refuse("value", index,
           "reads " + nameOf(operand.buffer()) + ", parts of which " +
               (segment.written ? "are what a kernel left in its workspace" + writer
                                : std::string("nothing has written")));
  if (content.buffer != operand.buffer())
    refuse("value", index,
           "reads " + nameOf(operand.buffer()) + ", whose bytes " + nameOf(content.buffer) + " has taken" + writer);
  if (content.generation != generation)
    refuse("value", index,
           "reads " + nameOf(operand.buffer()) + " for " + generationName(operand, generation) +
               ", but it holds that of " + generationName(operand, content.generation) + writer);
}

void Run::note(Segment &segment, const Instance &instance, size_t index) {
  for (Access &reader : segment.readers)
    if (reader.queue == instance.queue) {
      reader = {instance.queue, instance.position, index};
      return;
    }
  segment.readers.push_back({instance.queue, instance.position, index});
}

void Run::write(const proto::Operand &operand, const std::vector<Piece> &pieces, size_t index) {
  const Instance &instance = timeline_.instances[index];
  const Range range = rangeOf(operand, instance.microbatch);
  if (!isFollowed(range))
    return;
  const proto::Buffer &buffer = bufferOf(operand);
  requireWritable(operand, index);
  const Access access{instance.queue, instance.position, index};
  shadows_[range.arena].over(range.begin, range.end, [&](uint64_t, const Segment &segment) {
    if (segment.written && segment.writer.instance != index &&
        !timeline_.isBefore(segment.writer.queue, segment.writer.position, index))
      refuseOverwrite(operand, segment.writer, "write", index);
    for (const Access &reader : segment.readers)
      if (!timeline_.isBefore(reader.queue, reader.position, index) && reader.instance != index)
        refuseOverwrite(operand, reader, "read", index);
  });
  Content content;
  content.buffer = operand.buffer();
  content.generation = generationOf(buffer, instance);
  if (operand.access() == proto::Operand::SCRATCH)
    return shadows_[range.arena].write(range.begin, range.end, content, access);
  content.kind = Content::Written;
  for (const Piece &piece : pieces) {
    content.terms = piece.terms;
    content.updated = piece.updated;
    content.value = piece.value;
    content.valueByte = piece.valueByte;
    shadows_[range.arena].write(range.begin + piece.begin, range.begin + piece.end, content, access);
  }
}

void Run::refuseOverwrite(const proto::Operand &operand, const Access &other, const char *verb, size_t index) const {
  refuse("race", index,
         "writes " + nameOf(operand.buffer()) + " while " + place(other.instance) + " may still " + verb +
             " these bytes; nothing makes queue " + queueName(timeline_.instances[index].queue) + " wait for queue " +
             queueName(other.queue));
}

void Run::requireAlive(const proto::Operand &operand, size_t index) const {
  const Instance &instance = timeline_.instances[index];
  const proto::Buffer &buffer = bufferOf(operand);
  if (buffer.scope() == proto::Buffer::PLAN)
    return;
  for (const proto::Life &life : buffer.lives())
    if (&role_.programs(int(life.program())) == &program_ && isWithin(buffer, life, instance))
      return;
  refuse("value", index, "uses " + nameOf(operand.buffer()) + " outside the life that the plan gives it");
}

void Run::requireOrder(const proto::Operand &operand, size_t index) const {
  const Instance &instance = timeline_.instances[index];
  const proto::Buffer &buffer = bufferOf(operand);
  for (const proto::Life &life : buffer.lives())
    if (&role_.programs(int(life.program())) == &program_ && isWithin(buffer, life, instance)) {
      const Instance &birth = timeline_.instances[momentOf(buffer, life, instance, /*isBirth=*/true)];
      const size_t death = momentOf(buffer, life, instance, /*isBirth=*/false);
      if (birth.queue != instance.queue && !timeline_.isBefore(birth.queue, birth.position, index))
        refuse("race", index,
               "may use " + nameOf(operand.buffer()) + " before its life begins on queue " + queueName(birth.queue));
      if (timeline_.instances[death].queue != instance.queue &&
          !timeline_.isBefore(instance.queue, instance.position, death))
        refuse("race", index,
               "may still use " + nameOf(operand.buffer()) + " after its life has ended on queue " +
                   queueName(timeline_.instances[death].queue));
      return;
    }
}

/// When the life of a buffer that a command uses begins or ends: in the run, in its micro-batch or in its call.
size_t Run::momentOf(const proto::Buffer &buffer, const proto::Life &life, const Instance &instance,
                     bool isBirth) const {
  const uint32_t routine = isBirth ? life.birth_routine() : life.death_routine();
  uint32_t call = isBirth ? order_.firstCall.at(routine) : order_.lastCall.at(routine);
  if (buffer.scope() == proto::Buffer::CALL)
    call = instance.call;
  if (const auto own = order_.calls.find({routine, instance.microbatch});
      buffer.scope() == proto::Buffer::SLOT && own != order_.calls.end())
    call = isBirth ? own->second.first : own->second.second;
  const uint32_t command = isBirth ? life.birth_command() : life.death_command();
  return order_.instanceOf[call][std::min<size_t>(command, order_.instanceOf[call].size() - 1)];
}

bool Run::isWithin(const proto::Buffer &buffer, const proto::Life &life, const Instance &instance) const {
  const bool step = buffer.scope() == proto::Buffer::STEP;
  if (!order_.firstCall.contains(life.birth_routine()) || !order_.lastCall.contains(life.death_routine()))
    return false;
  if (instance.routine == life.birth_routine() && (!step || instance.call == order_.firstCall.at(instance.routine)) &&
      instance.index < life.birth_command())
    return false;
  if (instance.routine == life.death_routine() && (!step || instance.call == order_.lastCall.at(instance.routine)) &&
      instance.index > life.death_command())
    return false;
  if (buffer.scope() == proto::Buffer::CALL)
    return instance.routine == life.birth_routine();
  return instance.call >= order_.firstCall.at(life.birth_routine()) &&
         instance.call <= order_.lastCall.at(life.death_routine());
}

void Run::requireWritable(const proto::Operand &operand, size_t index) {
  if (program_.name() != "evaluate" || bufferOf(operand).scope() != proto::Buffer::PLAN ||
      bufferOf(operand).category() != proto::Buffer::WEIGHTS)
    return;
  refuse("coverage", index, "changes " + nameOf(operand.buffer()) + "; an evaluation leaves weights as they are");
}

} // namespace ds::check
