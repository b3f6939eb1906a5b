//===- Replay.cpp - what a run does to memory --------------------------------===//
#include "compiler/check/Replay.h"

#include "compiler/check/Effects.h"
#include "compiler/check/Layout.h"
#include "compiler/check/Shadow.h"
#include "runtime/plan/Groups.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace ds::check {

namespace {

/// Bytes of an arena.
struct Range {
  uint32_t arena;
  uint64_t begin, end;
};

class Run {
public:
  /// `only`: bytes to follow, if not all.
  Run(const proto::Plan &plan, const proto::Role &role, const proto::Program &program, const Timeline &timeline,
      uint32_t rank, const Range *only)
      : plan_(plan), role_(role), program_(program), timeline_(timeline), rank_(rank), only_(only) {
    for (const proto::Arena &arena : role.arenas())
      shadows_.emplace_back(arena.bytes());
    for (int b = 0; b < role.buffers_size(); ++b)
      if (role.buffers(b).has_variable() || role.buffers(b).has_bucket())
        setInitial(uint32_t(b));
    for (int c = 0; c < program.calls_size(); ++c) {
      const uint32_t routine = program.calls(c).routine();
      if (!firstCall_.contains(routine))
        firstCall_[routine] = uint32_t(c);
      lastCall_[routine] = uint32_t(c);
    }
  }

  /// `instances`: ascending, all that touch what is followed.
  void play(const std::vector<size_t> &instances) {
    for (size_t i : instances)
      execute(i);
    for (const proto::Metric &metric : program_.metrics())
      readMetric(metric);
    if (program_.name() == "step")
      requireUpdated();
  }

private:
  //===-- addresses -----------------------------------------------------------===//

  const proto::Buffer &bufferOf(const proto::Operand &operand) const { return role_.buffers(int(operand.buffer())); }

  /// Where the operand begins within its buffer, for this rank.
  uint64_t offsetIn(const proto::Operand &operand) const {
    const uint64_t coordinate =
        operand.rank_stride() == 0 ? 0 : plan::groupCoordinate(plan_, operand.communicator(), rank_);
    return operand.byte_offset() + coordinate * operand.rank_stride();
  }

  Range rangeOf(const proto::Operand &operand, uint64_t microbatch) const {
    const proto::Buffer &buffer = bufferOf(operand);
    const uint64_t begin = buffer.offset() + microbatch % buffer.slots() * buffer.slot_stride() + offsetIn(operand);
    return {buffer.arena(), begin, begin + byteCount(operand)};
  }

  bool isFollowed(const Range &range) const {
    return !only_ || (range.arena == only_->arena && range.begin < only_->end && only_->begin < range.end);
  }

  void setInitial(uint32_t index) {
    const proto::Buffer &buffer = role_.buffers(int(index));
    Content content;
    content.kind = Content::Initial;
    content.buffer = index;
    shadows_[buffer.arena()].over(buffer.offset(), buffer.offset() + buffer.bytes(),
                                  [&](uint64_t, Segment &segment) { segment.content = content; });
  }

  /// Which value of a buffer a call means: that of its micro-batch, of itself, or the only one.
  static uint64_t generationOf(const proto::Buffer &buffer, const Instance &instance) {
    switch (buffer.scope()) {
    case proto::Buffer::SLOT:
      return instance.microbatch;
    case proto::Buffer::CALL:
      return instance.call;
    default:
      return 0;
    }
  }

  //===-- one command ---------------------------------------------------------===//

  void execute(size_t index) {
    const Instance &instance = timeline_.instances[index];
    const std::vector<Effect> effects = effectsOf(*instance.command);
    for (const Effect &effect : effects)
      requireAlive(*effect.operand, instance);
    for (const Effect &effect : effects)
      if (effect.reads)
        read(*effect.operand, index);
    if (isOptimizer(*instance.command))
      requireGradient(*instance.command, index);
    // Values are known before anything is overwritten: an operand may be read and written in one place.
    std::vector<std::vector<Piece>> written;
    written.reserve(effects.size());
    for (const Effect &effect : effects)
      written.push_back(effect.writes ? valueOf(*effect.operand, effects, index) : std::vector<Piece>());
    for (size_t e = 0; e < effects.size(); ++e)
      if (effects[e].writes || effects[e].scratch)
        write(*effects[e].operand, written[e], index);
  }

  [[noreturn]] void refuse(const char *rule, size_t index, const std::string &sentence) const {
    const std::string rank = plan_.roles_size() > 1 || role_.ranks_size() != 2 || role_.ranks(0) != role_.ranks(1)
                                 ? ", rank " + std::to_string(rank_)
                                 : "";
    throw Refusal{rule, place(index) + rank + ": " + sentence};
  }
  std::string place(size_t index) const { return placeOf(plan_, role_, program_.name(), timeline_.instances[index]); }
  std::string nameOf(uint32_t buffer) const {
    return "buffer " + std::to_string(buffer) + " (" + role_.buffers(int(buffer)).name() + ")";
  }

  void read(const proto::Operand &operand, size_t index) {
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

  void requireValue(const proto::Operand &operand, const Segment &segment, uint64_t generation, size_t index) const {
    const Content &content = segment.content;
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

  std::string generationName(const proto::Operand &operand, uint64_t generation) const {
    return (bufferOf(operand).scope() == proto::Buffer::CALL ? "call " : "micro-batch ") + std::to_string(generation);
  }
  const std::string &queueName(uint32_t queue) const { return role_.queues(int(queue)).name(); }

  static void note(Segment &segment, const Instance &instance, size_t index) {
    for (Access &reader : segment.readers)
      if (reader.queue == instance.queue) {
        reader = {instance.queue, instance.position, index};
        return;
      }
    segment.readers.push_back({instance.queue, instance.position, index});
  }

  //===-- what is written -----------------------------------------------------===//

  /// Part of what an operand is given, relative to its begin.
  struct Piece {
    uint64_t begin, end;
    std::vector<Term> terms;
    bool updated;
  };

  /// The pieces that lie in an operand now.
  std::vector<Piece> piecesOf(const proto::Operand &operand, uint64_t skip, uint64_t bytes, uint64_t microbatch) {
    const Range range = rangeOf(operand, microbatch);
    std::vector<Piece> pieces;
    if (isFollowed(range))
      shadows_[range.arena].over(range.begin + skip, range.begin + skip + bytes, [&](uint64_t begin, Segment &segment) {
        pieces.push_back({begin - range.begin - skip, segment.end - range.begin - skip, segment.content.terms,
                          segment.content.updated});
      });
    return pieces;
  }

  /// Gradients are followed as sums of micro-batches; of other values only matters whether an optimizer made them.
  std::vector<Piece> valueOf(const proto::Operand &target, const std::vector<Effect> &effects, size_t index) {
    const Instance &instance = timeline_.instances[index];
    const proto::Command &command = *instance.command;
    const uint64_t bytes = byteCount(target);
    if (command.has_collective())
      return valueOfCollective(command.collective(), target, index);
    if (command.has_copy())
      return piecesOf(command.copy().source(), 0, bytes, instance.microbatch);
    if (!command.has_kernel() || !isSum(bufferOf(target)))
      return {{0, bytes, {}, isOptimizer(command)}};
    std::vector<Piece> pieces = {{0, bytes, {}, false}};
    const Range range = rangeOf(target, instance.microbatch);
    for (const Effect &effect : effects)
      if (const Range other = rangeOf(*effect.operand, instance.microbatch);
          effect.reads && other.arena == range.arena && other.begin == range.begin && other.end == range.end)
        pieces = piecesOf(target, 0, bytes, instance.microbatch); // adds to what is there
    for (Piece &piece : pieces)
      add(piece.terms, {instance.microbatch, false});
    return pieces;
  }

  static bool isSum(const proto::Buffer &buffer) {
    return buffer.category() == proto::Buffer::GRADIENTS || buffer.category() == proto::Buffer::COMMUNICATION;
  }

  static void add(std::vector<Term> &terms, Term term) {
    terms.insert(std::upper_bound(terms.begin(), terms.end(), term), term);
  }

  const proto::CollectivePart &partOf(const proto::CollectiveCommand &collective, const proto::Operand &target) const {
    for (const proto::CollectivePart &part : collective.parts())
      if (&part.target() == &target)
        return part;
    return collective.parts(0);
  }

  std::vector<Piece> valueOfCollective(const proto::CollectiveCommand &collective, const proto::Operand &target,
                                       size_t index) {
    const uint64_t microbatch = timeline_.instances[index].microbatch;
    const proto::CollectivePart &part = partOf(collective, target);
    const uint64_t bytes = byteCount(target), sourceBytes = byteCount(part.source());
    if (collective.kind() == proto::CollectiveCommand::ALL_GATHER) { // other ranks' slices are as this one's
      const std::vector<Piece> own = piecesOf(part.source(), 0, sourceBytes, microbatch);
      return {{0, bytes, {}, !own.empty() && std::ranges::all_of(own, [](const Piece &p) { return p.updated; })}};
    }
    const bool scatters = collective.kind() == proto::CollectiveCommand::REDUCE_SCATTER;
    const uint64_t skip = scatters ? plan::groupCoordinate(plan_, collective.communicator(), rank_) * bytes : 0;
    std::vector<Piece> pieces = piecesOf(part.source(), skip, bytes, microbatch);
    if (collective.kind() == proto::CollectiveCommand::BROADCAST)
      return pieces;
    for (Piece &piece : pieces)
      for (Term &term : piece.terms) {
        if (term.allRanks && isSum(bufferOf(part.source())))
          refuse("coverage", index,
                 "sums over the ranks what is such a sum already: micro-batch " + std::to_string(term.microbatch) +
                     " in " + nameOf(part.source().buffer()));
        term.allRanks = true;
      }
    return part.accumulate() ? sumOf(pieces, piecesOf(target, 0, bytes, microbatch)) : pieces;
  }

  /// Both lists cut where either is, terms together.
  static std::vector<Piece> sumOf(const std::vector<Piece> &a, const std::vector<Piece> &b) {
    std::vector<Piece> result;
    for (const Piece &x : a)
      for (const Piece &y : b) {
        const uint64_t begin = std::max(x.begin, y.begin), end = std::min(x.end, y.end);
        if (begin >= end)
          continue;
        Piece piece{begin, end, y.terms, false};
        for (const Term &term : x.terms)
          add(piece.terms, term);
        result.push_back(std::move(piece));
      }
    return result;
  }

  void write(const proto::Operand &operand, const std::vector<Piece> &pieces, size_t index) {
    const Instance &instance = timeline_.instances[index];
    const Range range = rangeOf(operand, instance.microbatch);
    if (!isFollowed(range))
      return;
    const proto::Buffer &buffer = bufferOf(operand);
    requireWritable(operand, index);
    const Access access{instance.queue, instance.position, index};
    shadows_[range.arena].over(range.begin, range.end, [&](uint64_t, const Segment &segment) {
      if (segment.written && !timeline_.isBefore(segment.writer.queue, segment.writer.position, index))
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
      shadows_[range.arena].write(range.begin + piece.begin, range.begin + piece.end, content, access);
    }
  }

  [[noreturn]] void refuseOverwrite(const proto::Operand &operand, const Access &other, const char *verb,
                                    size_t index) const {
    refuse("race", index,
           "writes " + nameOf(operand.buffer()) + " while " + place(other.instance) + " may still " + verb +
               " these bytes; nothing makes queue " + queueName(timeline_.instances[index].queue) + " wait for queue " +
               queueName(other.queue));
  }

  //===-- lives ---------------------------------------------------------------===//

  void requireAlive(const proto::Operand &operand, const Instance &instance) const {
    const proto::Buffer &buffer = bufferOf(operand);
    if (buffer.scope() == proto::Buffer::PLAN)
      return;
    for (const proto::Life &life : buffer.lives())
      if (role_.programs(int(life.program())).name() == program_.name() && isWithin(buffer, life, instance))
        return;
    throw Refusal{"value", placeOf(plan_, role_, program_.name(), instance) + ": uses " + nameOf(operand.buffer()) +
                               " outside the life that the plan gives it"};
  }

  bool isWithin(const proto::Buffer &buffer, const proto::Life &life, const Instance &instance) const {
    const bool step = buffer.scope() == proto::Buffer::STEP;
    if (!firstCall_.contains(life.birth_routine()) || !lastCall_.contains(life.death_routine()))
      return false;
    if (instance.routine == life.birth_routine() && (!step || instance.call == firstCall_.at(instance.routine)) &&
        instance.index < life.birth_command())
      return false;
    if (instance.routine == life.death_routine() && (!step || instance.call == lastCall_.at(instance.routine)) &&
        instance.index > life.death_command())
      return false;
    if (buffer.scope() == proto::Buffer::CALL)
      return instance.routine == life.birth_routine();
    return instance.call >= firstCall_.at(life.birth_routine()) && instance.call <= lastCall_.at(life.death_routine());
  }

  //===-- parameters and gradients ----------------------------------------------===//

  /// A parameter changes in a step, and there once.
  void requireWritable(const proto::Operand &operand, size_t index) {
    if (program_.name() != "evaluate" || bufferOf(operand).scope() != proto::Buffer::PLAN ||
        bufferOf(operand).category() != proto::Buffer::WEIGHTS)
      return;
    refuse("coverage", index, "changes " + nameOf(operand.buffer()) + "; an evaluation leaves weights as they are");
  }

  /// The gradient of each element of a parameter holds each micro-batch of each rank once.
  void requireGradient(const proto::Command &command, size_t index) {
    const proto::Operand &parameter = command.kernel().operands(0), &gradient = command.kernel().operands(1);
    const uint64_t microbatch = timeline_.instances[index].microbatch;
    const Layout layout(plan_, bufferOf(parameter), rank_);
    for (const Member &member : layout.within(offsetIn(parameter), byteCount(parameter))) {
      const uint64_t skip = member.begin - offsetIn(parameter), bytes = member.end - member.begin;
      for (const Piece &piece : piecesOf(parameter, skip, bytes, microbatch))
        if (piece.updated)
          refuse("coverage", index,
                 "updates parameter " + plan_.variables(int(member.variable)).name() + " a second time in one step");
      for (const Piece &piece : piecesOf(gradient, skip, bytes, microbatch))
        if (const std::string why = whyNoGradient(piece.terms); !why.empty())
          refuse("coverage", index,
                 "the gradient of " + plan_.variables(int(member.variable)).name() + " in " +
                     nameOf(gradient.buffer()) + " " + why);
    }
  }

  std::string whyNoGradient(const std::vector<Term> &terms) const {
    const proto::Training &training = plan_.training();
    const bool several = training.train_batch_size() > training.micro_batch_size() * training.accumulation_steps();
    for (uint64_t k = 0; k < training.accumulation_steps(); ++k) {
      const auto count = std::ranges::count_if(terms, [&](const Term &term) { return term.microbatch == k; });
      const std::string number = "micro-batch " + std::to_string(k);
      if (count != 1)
        return count == 0 ? "lacks " + number : "holds " + number + " " + std::to_string(count) + " times";
      const auto term = std::ranges::find_if(terms, [&](const Term &t) { return t.microbatch == k; });
      if (several && !term->allRanks)
        return "holds " + number + " of this rank alone; it was not summed over the ranks";
    }
    return {};
  }

  /// At the end of a step every trained element that this rank holds is new.
  void requireUpdated() {
    const std::set<std::string> trained = trainedParameters(plan_);
    for (int b = 0; b < role_.buffers_size(); ++b) {
      const proto::Buffer &buffer = role_.buffers(b);
      if (buffer.scope() != proto::Buffer::PLAN ||
          !isFollowed({buffer.arena(), buffer.offset(), buffer.offset() + buffer.bytes()}))
        continue;
      for (const Member &member : Layout(plan_, buffer, rank_).within(0, buffer.bytes()))
        if (const std::string &name = plan_.variables(int(member.variable)).name(); trained.contains(name))
          shadows_[buffer.arena()].over(
              buffer.offset() + member.begin, buffer.offset() + member.end,
              [&](uint64_t, const Segment &segment) { requireNew(segment, uint32_t(b), name); });
    }
  }

  void requireNew(const Segment &segment, uint32_t buffer, const std::string &parameter) const {
    if (segment.content.updated && segment.content.buffer == buffer)
      return;
    throw Refusal{"coverage", "program step, rank " + std::to_string(rank_) + ": at its end " + nameOf(buffer) +
                                  " holds elements of " + parameter + " that no optimizer has updated"};
  }

  void readMetric(const proto::Metric &metric) {
    const Range range = rangeOf(metric.source(), 0);
    if (isFollowed(range))
      shadows_[range.arena].over(range.begin, range.end, [&](uint64_t, const Segment &segment) {
        if (segment.content.kind == Content::Undefined || segment.content.buffer != metric.source().buffer())
          throw Refusal{"value", "program " + program_.name() + ": metric " + metric.name() + " is read from " +
                                     nameOf(metric.source().buffer()) + ", which does not hold it at the end"};
      });
  }

  const proto::Plan &plan_;
  const proto::Role &role_;
  const proto::Program &program_;
  const Timeline &timeline_;
  uint32_t rank_;
  const Range *only_;
  std::vector<Shadow> shadows_;                       // by arena
  std::map<uint32_t, uint32_t> firstCall_, lastCall_; // by routine
};

/// Coordinates at which a slice of `stride` bytes meets the ends of other ranges of the buffer in a way of its own, and
/// one between each two of them: every other coordinate is as one of these (docs/checker.md).
std::set<uint64_t> tellingCoordinates(const std::set<uint64_t> &ends, uint64_t stride, uint64_t ranks) {
  std::set<uint64_t> telling = {0, ranks - 1};
  for (uint64_t end : ends)
    for (uint64_t c : {end / stride, end / stride - (end % stride == 0 && end >= stride ? 1 : 0)})
      telling.insert(std::min(c, ranks - 1));
  std::set<uint64_t> between;
  for (auto it = telling.begin(); std::next(it) != telling.end(); ++it)
    if (*std::next(it) > *it + 1)
      between.insert(*it + 1);
  telling.merge(between);
  return telling;
}

struct Slices {
  uint64_t stride = 0;
  uint32_t communicator = 0;
  std::set<uint64_t> ends; ///< of all operands in the buffer
};

/// Buffers that ranks reach by slices.
std::map<uint32_t, Slices> slicedBuffers(const proto::Plan &plan, const proto::Role &role) {
  std::map<uint32_t, Slices> buffers;
  std::map<uint32_t, std::set<uint64_t>> ends;
  for (const proto::Routine &routine : role.routines())
    for (const proto::Command &command : routine.commands())
      for (const Effect &effect : effectsOf(command)) {
        const proto::Operand &operand = *effect.operand;
        if (operand.rank_stride() > 0)
          buffers[operand.buffer()] = {operand.rank_stride(), operand.communicator(), {}};
        else
          ends[operand.buffer()].insert({operand.byte_offset(), operand.byte_offset() + byteCount(operand)});
      }
  for (auto &[index, slices] : buffers) {
    slices.ends = ends[index];
    for (const Member &member : Layout(plan, role.buffers(int(index)), 0).within(0, role.buffers(int(index)).bytes()))
      slices.ends.insert({member.begin, member.end});
  }
  return buffers;
}

Range rangeOf(const proto::Buffer &buffer) {
  return {buffer.arena(), buffer.offset(),
          buffer.offset() + (buffer.slots() - 1) * buffer.slot_stride() + buffer.bytes()};
}

/// The instances that use each buffer, so that following a few bytes costs no look at all commands.
std::vector<std::vector<size_t>> usersOf(const proto::Role &role, const Timeline &timeline) {
  std::vector<std::vector<size_t>> users(size_t(role.buffers_size()));
  for (size_t i = 0; i < timeline.instances.size(); ++i)
    for (const Effect &effect : effectsOf(*timeline.instances[i].command))
      if (std::vector<size_t> &known = users[effect.operand->buffer()]; known.empty() || known.back() != i)
        known.push_back(i);
  return users;
}

/// Those that use a buffer of which some bytes lie in `range`.
std::vector<size_t> usersOf(const Range &range, const proto::Role &role,
                            const std::vector<std::vector<size_t>> &users) {
  std::set<size_t> found;
  for (int b = 0; b < role.buffers_size(); ++b)
    if (const Range other = rangeOf(role.buffers(b));
        other.arena == range.arena && other.begin < range.end && range.begin < other.end)
      found.insert(users[size_t(b)].begin(), users[size_t(b)].end());
  return {found.begin(), found.end()};
}

} // namespace

void replay(const proto::Plan &plan, const proto::Role &role, const proto::Program &program, const Timeline &timeline) {
  std::vector<size_t> all(timeline.instances.size());
  std::iota(all.begin(), all.end(), size_t(0));
  Run(plan, role, program, timeline, role.ranks(0), nullptr).play(all);
  const std::vector<std::vector<size_t>> users = usersOf(role, timeline);
  for (const auto &[index, slices] : slicedBuffers(plan, role)) {
    const Range range = rangeOf(role.buffers(int(index)));
    const std::vector<size_t> some = usersOf(range, role, users);
    const uint64_t ranks = plan::groupSize(plan, slices.communicator);
    const std::set<uint64_t> telling = tellingCoordinates(slices.ends, slices.stride, ranks);
    for (uint32_t rank : plan::groupRanks(plan, slices.communicator, role.ranks(0)))
      if (const uint64_t c = plan::groupCoordinate(plan, slices.communicator, rank); c > 0 && telling.contains(c))
        Run(plan, role, program, timeline, rank, &range).play(some);
  }
}

} // namespace ds::check
