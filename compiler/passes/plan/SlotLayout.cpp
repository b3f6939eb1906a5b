//===- SlotLayout.cpp - an offset for every slot of every buffer ------------===//
#include "compiler/passes/plan/SlotLayout.h"

#include "compiler/analysis/Routines.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <limits>

using namespace mlir;
using namespace ds;

SlotLayout::SlotLayout(plan::RoleOp role, const BufferUses &uses, plan::ArenaOp arena, int64_t alignment)
    : uses_(uses), alignment_(alignment) {
  for (auto buffer : role.getOps<plan::BufferOp>())
    if (buffer.getArenaAttr().getAttr() == arena.getSymNameAttr()) {
      indexOf_[buffer] = copies_.size();
      copies_.push_back({buffer, {}});
      copies_.back().stage = indexOf_[buffer];
    }
  for (auto routine : role.getOps<plan::RoutineOp>())
    joinStage(uses_.of(routine));
  const Routines routines(role);
  for (auto program : role.getOps<plan::ProgramOp>())
    addProgram(program, routines);
}

/// Values of micro-batches that a routine uses are of one stage, as are those of routines that share one.
void SlotLayout::joinStage(const BufferUses::Spans &uses) {
  std::optional<size_t> stage;
  for (const auto &[op, span] : uses) {
    const auto index = indexOf_.find(op);
    auto buffer = cast<plan::BufferOp>(op);
    if (index == indexOf_.end() || livesThroughout(buffer) || buffer.getScope() != plan::Scope::Slot)
      continue;
    stage = stage.value_or(stageOf(index->second));
    copies_[stageOf(index->second)].stage = *stage;
  }
}

/// What stands for the stage: the end of a chain.
size_t SlotLayout::stageOf(size_t copies) const {
  while (copies_[copies].stage != copies)
    copies = copies_[copies].stage;
  return copies;
}

/// What lives on no axis of calls: state, and what other queues write or read at times of their own.
bool SlotLayout::livesThroughout(plan::BufferOp buffer) const {
  return buffer.getScope() == plan::Scope::Plan || uses_.isMessage(buffer) || uses_.isFed(buffer);
}

void SlotLayout::addProgram(plan::ProgramOp program, const Routines &routines) {
  const int64_t begin = end_;
  std::vector<std::vector<Life>> lives(copies_.size());
  for (auto call : program.getOps<plan::CallOp>()) {
    plan::RoutineOp routine = routines.of(call);
    for (const auto &[op, span] : uses_.of(routine)) {
      const auto index = indexOf_.find(op);
      auto buffer = cast<plan::BufferOp>(op);
      if (index == indexOf_.end() || livesThroughout(buffer))
        continue;
      const auto microbatch = int64_t(call.getMicrobatch());
      std::vector<Life> &own = lives[index->second];
      const size_t place = buffer.getScope() == plan::Scope::Step   ? 0
                           : buffer.getScope() == plan::Scope::Slot ? size_t(microbatch)
                                                                    : own.size();
      if (own.size() <= place)
        own.resize(place + 1);
      if (own[place].end == 0)
        own[place] = {microbatch, end_ + span.first, 0};
      own[place].end = end_ + span.last + 1;
    }
    end_ += int64_t(llvm::range_size(routine.getBody().front()));
  }
  end_ = std::max(end_, begin + 1);
  const auto livesOn = [&](Value readByHost) {
    if (const auto index = indexOf_.find(readByHost.getDefiningOp()); index != indexOf_.end())
      for (Life &life : lives[index->second])
        life.end = end_;
  };
  for (auto metric : program.getOps<plan::MetricOp>())
    livesOn(metric.getBuffer());
  for (auto tail : program.getOps<plan::TailOp>())
    livesOn(tail.getUnlessOne());
  for (auto [copies, own] : llvm::zip(copies_, lives)) {
    llvm::erase_if(own, [](const Life &life) { return life.end == 0; }); // micro-batches that do not have it
    addLives(copies, own);
  }
}

/// Adds the lives of one program.
void SlotLayout::addLives(Copies &copies, ArrayRef<Life> lives) {
  size_t next = 0; // the first that begins behind the end of this one
  for (size_t i = 0; i < lives.size(); ++i) {
    for (next = std::max(next, i + 1); next < lives.size() && lives[next].begin < lives[i].end;)
      ++next;
    copies.inFlight = std::max(copies.inFlight, lives[next - 1].microbatch - lives[i].microbatch + 1);
    copies.microbatches = std::max(copies.microbatches, lives[i].microbatch + 1);
  }
  copies.lives.insert(copies.lives.end(), lives.begin(), lives.end());
}

int64_t SlotLayout::slotsOf(const Copies &copies, const Choice &choice) const {
  plan::BufferOp buffer = copies.buffer;
  if (livesThroughout(buffer) || copies.lives.empty())
    return int64_t(buffer.getSlots());
  const bool inFlight = buffer.getScope() == plan::Scope::Slot ||
                        (buffer.getScope() == plan::Scope::Call && int64_t(buffer.getBytes()) >= choice.scratchBytes);
  return inFlight && copies.lives.size() > 1 ? std::min(choice.slots, copies.microbatches) : 1;
}

scheduling::RepeatedProblem SlotLayout::problemFor(const Choice &choice) const {
  scheduling::RepeatedProblem problem;
  problem.alignment = alignment_;
  for (const Copies &copies : copies_) {
    const int64_t slots = slotsOf(copies, choice);
    const size_t first = problem.buffers.size();
    const bool inBlock = choice.blocks && slots > 1 && slots == int64_t(copies.lives.size());
    const auto stage = int64_t(stageOf(size_t(&copies - copies_.data())));
    for (int64_t slot = 0; slot < slots; ++slot)
      problem.buffers.push_back({int64_t(plan::BufferOp(copies.buffer).getBytes()), slots > 1 ? slot + 1 : 0,
                                 inBlock ? stage * slots + slot + 1 : 0});
    for (int64_t slot = 0; copies.lives.empty() && slot < slots; ++slot)
      problem.lives.push_back({first + size_t(slot), 0, std::max<int64_t>(end_, 1)});
    for (const Life &life : copies.lives)
      problem.lives.push_back({first + size_t(life.microbatch % slots), life.begin, life.end});
  }
  return problem;
}

/// Fewer slots first, and those of values before those of scratch; with a slot a micro-batch, each by itself if there
/// are not too many.
std::vector<SlotLayout::Choice> SlotLayout::choices(int64_t bytes) const {
  constexpr int64_t scratchShare = 100; // scratch of less than a share of so many has one place
  constexpr auto never = std::numeric_limits<int64_t>::max();
  int64_t least = 1, most = 1;
  for (const Copies &copies : copies_)
    if (plan::BufferOp(copies.buffer).getScope() == plan::Scope::Slot) {
      least = std::max(least, copies.inFlight);
      most = std::max(most, copies.microbatches);
    }
  std::vector<Choice> all;
  for (int64_t slots : {least, most, 2 * least})
    if (slots >= least && slots <= most && llvm::none_of(all, [&](const Choice &one) { return one.slots == slots; }))
      for (int64_t scratch : {never, std::max<int64_t>(bytes / scratchShare, 1)})
        all.push_back({slots, scratch});
  all.push_back({most, never, /*blocks=*/true});
  return all;
}

int64_t SlotLayout::peakBytes(llvm::function_ref<bool(plan::BufferOp)> counted) const {
  std::vector<int64_t> changes(size_t(end_) + 1); // by time
  int64_t alive = 0, most = 0;
  for (const Copies &copies : copies_) {
    plan::BufferOp buffer = copies.buffer;
    if (!counted(buffer))
      continue;
    if (copies.lives.empty())
      alive += int64_t(buffer.getBytes()) * int64_t(buffer.getSlots());
    for (const Life &life : copies.lives) {
      changes[size_t(life.begin)] += int64_t(buffer.getBytes());
      changes[size_t(life.end)] -= int64_t(buffer.getBytes());
    }
  }
  for (int64_t change : changes)
    most = std::max(most, alive += change);
  return most;
}

static std::vector<int64_t> solve(const scheduling::RepeatedProblem &problem, bool blocks, scheduling::Wanted wanted,
                                  KnownSolutions &known) {
  std::vector<int64_t> numbers = {blocks ? 2 : 1, problem.alignment, wanted.below, int64_t(problem.buffers.size())};
  numbers.reserve(numbers.size() + 3 * (problem.buffers.size() + problem.lives.size()));
  for (const auto &[bytes, turn, block] : problem.buffers)
    llvm::append_values(numbers, bytes, turn, block);
  for (const auto &[buffer, begin, end] : problem.lives)
    llvm::append_values(numbers, int64_t(buffer), begin, end);
  return known.of(numbers, wanted.enough, [&](int64_t) {
    return blocks ? scheduling::assignInBlocks(problem, wanted) : scheduling::assignRepeated(problem, wanted);
  });
}

std::optional<ArenaLayout> SlotLayout::find(int64_t bytes, int64_t enough, KnownSolutions &known) const {
  constexpr int64_t unusedShare = 100;                       // room of less than a share of so many is left unused
  constexpr size_t maxBuffers = 6000, maxInBlocks = 1 << 16; // time grows with the square of what is placed
  const int64_t peak = peakBytes();
  std::optional<ArenaLayout> best;
  for (const Choice &choice : choices(bytes)) {
    if (bytes <= enough || bytes - peak <= peak / unusedShare)
      break;
    const scheduling::RepeatedProblem problem = problemFor(choice);
    if (problem.buffers.size() > (choice.blocks ? maxInBlocks : maxBuffers) || problem.check())
      continue;
    const std::vector<int64_t> offsets = solve(problem, choice.blocks, {enough, bytes}, known);
    const auto arena = int64_t(llvm::alignTo(uint64_t(problem.arenaBytes(offsets)), uint64_t(alignment_)));
    if (arena >= bytes || problem.verify(offsets))
      continue;
    bytes = arena;
    best = ArenaLayout{arena, peak, {}};
    size_t next = 0;
    for (const Copies &copies : copies_)
      for (int64_t slot = slotsOf(copies, choice); slot > 0; --slot)
        best->offsets[copies.buffer].push_back(offsets[next++]);
  }
  return best;
}
