//===- AccessRules.cpp - races, and values that are still there -----------===//
//
// Every byte carries its last writer and its readers since then. An access races with another of the same bytes unless
// the vector clocks say that one of the two has surely finished when the other starts.
//
//===----------------------------------------------------------------------===//
#include "compiler/check/AccessRules.h"

#include "compiler/check/EndRules.h"
#include "kernels/KernelTable.h"
#include "runtime/plan/run/Invocations.h"

#include <algorithm>
#include <string>
#include <utility>

namespace ds::check {

namespace {

bool isDone(const RankMemory &memory, const Access &access, size_t index) {
  return memory.timeline().isBefore(access.queue, access.position, index);
}

std::string noWait(const RankMemory &memory, const Access &other, size_t index) {
  return "nothing makes queue " + memory.queueName(memory.instance(index).queue) + " wait for queue " +
         memory.queueName(other.queue);
}

std::string generationName(const proto::Buffer &buffer, uint64_t generation) {
  return (buffer.scope() == proto::Buffer::CALL ? "call " : "micro-batch ") + std::to_string(generation);
}

void requireValue(const RankMemory &memory, const proto::Operand &operand, const Segment &segment, size_t index) {
  const Content &content = segment.content;
  const proto::Buffer &buffer = memory.bufferOf(operand);
  const uint64_t generation = RankMemory::generationOf(buffer, memory.instance(index));
  const bool isThere = content.kind != Content::Undefined && content.kind != Content::Reduced;
  const bool carried = memory.isCarried(buffer);
  const uint64_t before = memory.instance(index).microbatch; // micro-batches that have left something to this one
  const bool isOfThis = carried ? content.generation == before || content.generation == before + 1
                                : content.generation == generation || !memory.isBound(buffer, content);
  if (isThere && content.buffer == operand.buffer() && isOfThis)
    return;
  const std::string name = memory.nameOf(operand.buffer());
  const std::string note = segment.written ? memory.placeOf(segment.writer.instance) + " wrote it" : "";
  if (content.kind == Content::Undefined)
    memory.refuse("value", index,
                  "reads " + name + ", parts of which " +
                      (segment.written ? "are what a kernel left in its workspace" : "nothing has written"),
                  note);
  if (content.kind == Content::Reduced)
    memory.refuse("value", index,
                  "reads of " + name + " what is this rank's part alone of sums that other ranks hold by now", note);
  if (content.buffer != operand.buffer())
    memory.refuse("value", index, "reads " + name + ", whose bytes " + memory.nameOf(content.buffer) + " has taken",
                  note);
  if (carried)
    memory.refuse("value", index,
                  "reads " + name + " for micro-batch " + std::to_string(before) + ", but it holds what " +
                      (content.generation == 0 ? "was there before the step"
                                               : "micro-batch " + std::to_string(content.generation - 1) + " left"),
                  note);
  memory.refuse("value", index,
                "reads " + name + " for " + generationName(buffer, generation) + ", but it holds that of " +
                    generationName(buffer, content.generation),
                note);
}

/// Of each queue the last read counts.
void addReader(Segment &segment, const Access &access) {
  for (Access &reader : segment.readers)
    if (reader.queue == access.queue) {
      reader = access;
      return;
    }
  segment.readers.push_back(access);
}

void requireNotUsed(const RankMemory &memory, const proto::Operand &operand, const Access &other, const char *verb,
                    size_t index) {
  if (other.instance == index || isDone(memory, other, index))
    return;
  memory.refuse("race", index,
                "writes " + memory.nameOf(operand.buffer()) + " while queue " + memory.queueName(other.queue) +
                    " may still " + verb + " these bytes; " + noWait(memory, other, index),
                memory.placeOf(other.instance) + " " + verb + "s them", other.instance);
}

/// Parts of a collective are carried out one after another: each has bytes of its own to write.
bool areOfOnePart(const proto::CollectiveCommand &collective, const proto::Operand &a, const proto::Operand &b) {
  return std::ranges::any_of(collective.parts(), [&](const proto::CollectivePart &part) {
    const auto has = [&](const proto::Operand &operand) {
      return &operand == &part.source() || &operand == &part.target() || &operand == &part.scratch();
    };
    return has(a) && has(b);
  });
}

} // namespace

void requireNoOverlap(const RankMemory &memory, const std::vector<Effect> &effects, size_t index) {
  const Instance &instance = memory.instance(index);
  std::vector<Range> ranges;
  ranges.reserve(effects.size());
  for (const Effect &effect : effects)
    ranges.push_back(memory.rangeOf(*effect.operand, instance.microbatch));
  for (size_t w = 0; w < effects.size(); ++w)
    for (size_t o = 0; o < effects.size() && (effects[w].writes || effects[w].scratch); ++o) {
      const proto::Operand &written = *effects[w].operand, &other = *effects[o].operand;
      const Range &a = ranges[w], &b = ranges[o];
      if (o == w || !a.overlaps(b))
        continue;
      if (effects[w].scratch && effects[o].scratch && instance.command->has_collective())
        continue; // its parts are carried out one after another
      const bool inPlace = written.buffer() == other.buffer() && !effects[w].scratch && !effects[o].scratch;
      if (!inPlace || (!instance.command->has_collective() && a != b))
        memory.refuse("race", index,
                      "writes " + memory.nameOf(written.buffer()) + " where its operand in " +
                          memory.nameOf(other.buffer()) + " lies");
      if (instance.command->has_collective() && !areOfOnePart(instance.command->collective(), written, other))
        memory.refuse("coverage", index,
                      "writes to " + memory.nameOf(written.buffer()) + " what another of its parts has in " +
                          memory.nameOf(other.buffer()));
      if (instance.command->has_kernel() &&
          !kernels::mayOverwrite(plan::invocationOf(instance.command->kernel()), o, w))
        memory.refuse("race", index,
                      "writes operand " + std::to_string(w) + " over operand " + std::to_string(o) + " in " +
                          memory.nameOf(other.buffer()) + ", which kernel \"" + instance.command->kernel().kernel() +
                          "\" may still read then");
    }
}

void read(RankMemory &memory, const proto::Operand &operand, size_t index) {
  const Instance &instance = memory.instance(index);
  const Range range = memory.rangeOf(operand, instance.microbatch);
  ShadowMemory &shadow = memory.shadow(range.arena);
  for (const Stretch &stretch : memory.stretchesOf(range)) {
    if (range.ranks > 1)
      shadow.claim(stretch.begin, stretch.end, range.slices);
    shadow.histories(stretch.begin, stretch.end, [&](const Segment &segment) {
      if (segment.written && !isDone(memory, segment.writer, index))
        memory.refuse("race", index,
                      "reads " + memory.nameOf(operand.buffer()) + " while queue " +
                          memory.queueName(segment.writer.queue) + " may still write it; " +
                          noWait(memory, segment.writer, index),
                      memory.placeOf(segment.writer.instance) + " writes it", segment.writer.instance);
    });
    shadow.over(stretch.begin, stretch.end, range.ranks > 1, [&](uint64_t, uint64_t, Segment &segment) {
      requireValue(memory, operand, segment, index);
      addReader(segment, {instance.queue, instance.position, index});
    });
    if (range.ranks == 1)
      shadow.own.touching(stretch.begin, stretch.end, [&](uint64_t, uint64_t, const OwnSegment &segment) {
        if (segment.changed)
          requireValue(memory, operand, segment, index);
      });
  }
}

void write(RankMemory &memory, const proto::Operand &operand, const Contents &contents, size_t index) {
  const Instance &instance = memory.instance(index);
  const Range range = memory.rangeOf(operand, instance.microbatch);
  requireKept(memory, operand, index);
  ShadowMemory &shadow = memory.shadow(range.arena);
  for (const Stretch &stretch : memory.stretchesOf(range)) {
    if (range.ranks > 1)
      shadow.claim(stretch.begin, stretch.end, range.slices);
    shadow.histories(stretch.begin, stretch.end, [&](const Segment &segment) {
      if (segment.written)
        requireNotUsed(memory, operand, segment.writer, "write", index);
      for (const Access &reader : segment.readers)
        requireNotUsed(memory, operand, reader, "read", index);
    });
  }
  const proto::Buffer &buffer = memory.bufferOf(operand);
  const bool isScratch = operand.access() == proto::Operand::SCRATCH;
  Segment written{{}, true, {instance.queue, instance.position, index}, {}};
  written.content.kind = isScratch ? Content::Undefined : Content::Written;
  written.content.buffer = operand.buffer();
  written.content.generation =
      memory.isCarried(buffer) ? instance.microbatch + 1 : RankMemory::generationOf(buffer, instance);
  const uint64_t bytes = range.end - range.begin, ranks = memory.coordinates(contents.along).count;
  if (isScratch)
    return memory.put(range, written, {{{0, bytes}}});
  const bool isWhole = !contents.segments.empty() && contents.segments.back().end == bytes * ranks;
  memory.put(range, written, isWhole ? contents : Contents{{{0, bytes, {.value = Values::other}}}});
}

} // namespace ds::check
