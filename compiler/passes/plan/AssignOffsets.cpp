//===- AssignOffsets.cpp - give every buffer its place in the arena ---------===//
//
// The time axis of a role is that of its programs laid end to end; a program's is that of the routines it calls, in the
// order of their first calls, one instant a command. On it
//   scope plan   lives always;
//   scope step   from its first to its last use in a program; whole routines where one is called more than once;
//   scope slot   from its first to its last use; with several slots, the whole program, for then micro-batches overlap,
//                and likewise where other routines run between the first use and the last one than do on the axis;
//   scope call   from its first to its last use;
// and a buffer of a metric, or of what a tail asks for, to the end of its program: the host reads it. Time is the order
// of the compute queue (BufferUses.h). What copy-in writes has slots, and messages of micro-batches, which are under
// way between calls, live in no bytes but their own.
//
// Where micro-batches overlap and much is lost on that axis, places are found on the axis of all calls (SlotLayout.h).
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/BufferUses.h"
#include "compiler/analysis/Routines.h"
#include "compiler/passes/plan/Passes.h"
#include "compiler/passes/plan/RoleSteps.h"
#include "compiler/passes/plan/SlotLayout.h"
#include "compiler/scheduling/OffsetProblem.h"
#include "core/FilePage.h"
#include "dialects/Plan/Plan.h"

#include "mlir/IR/Builders.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

#include <optional>
#include <tuple>

namespace ds {
#define GEN_PASS_DEF_ASSIGNOFFSETS
#include "compiler/passes/plan/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// One routine on the time axis of one program.
struct Segment {
  plan::RoutineOp routine;
  int64_t begin, commands;     // instants [begin, begin + commands)
  int64_t firstCall, lastCall; // of the program's calls

  int64_t end() const { return begin + commands; }
  bool repeated() const { return firstCall < lastCall; }
};

/// One program on the time axis of its role.
struct Axis {
  plan::ProgramOp program;
  int64_t begin, end;
  SmallVector<Segment> segments;
  std::vector<std::pair<size_t, int64_t>> calls; // segment and micro-batch
  // Segments that a micro-batch runs, ascending: of each kind of micro-batch, of which there are few.
  SmallVector<SmallVector<size_t>> kinds;
  std::vector<size_t> kindOf; // by micro-batch
};

struct Use {
  const Segment *segment;
  int64_t command;
  int64_t time() const { return segment->begin + command; }
};

/// First and last use of a buffer in one program.
struct Span {
  Use first, last;  // on the axis, which has every routine once
  int64_t lastCall; // that uses it
};

void findKinds(Axis &axis) {
  std::vector<SmallVector<size_t>> segments; // by micro-batch
  for (const auto &[segment, microbatch] : axis.calls) {
    if (segments.size() <= size_t(microbatch))
      segments.resize(size_t(microbatch) + 1);
    if (!llvm::is_contained(segments[size_t(microbatch)], segment))
      segments[size_t(microbatch)].push_back(segment);
  }
  for (SmallVector<size_t> &own : segments) {
    llvm::sort(own);
    auto known = llvm::find(axis.kinds, own);
    if (known == axis.kinds.end()) {
      axis.kinds.push_back(std::move(own));
      known = std::prev(axis.kinds.end());
    }
    axis.kindOf.push_back(size_t(known - axis.kinds.begin()));
  }
}

SmallVector<Axis> layOut(plan::RoleOp role) {
  SmallVector<Axis> axes;
  const Routines routines(role);
  int64_t time = 0;
  for (auto program : role.getOps<plan::ProgramOp>()) {
    Axis axis{program, time, time, {}, {}};
    llvm::MapVector<StringAttr, std::pair<int64_t, int64_t>> calls; // the first and the last
    for (auto [number, call] : llvm::enumerate(program.getOps<plan::CallOp>())) {
      auto it = calls.try_emplace(call.getRoutineAttr().getAttr(), number, number).first;
      it->second.second = int64_t(number);
      axis.calls.push_back({size_t(it - calls.begin()), int64_t(call.getMicrobatch())});
    }
    for (auto &[name, span] : calls) {
      plan::RoutineOp routine = routines.named(name);
      const int64_t commands = llvm::range_size(routine.getBody().front());
      axis.segments.push_back({routine, time, commands, span.first, span.second});
      time += commands;
    }
    axis.end = time = std::max(time, axis.begin + 1);
    findKinds(axis);
    axes.push_back(std::move(axis));
  }
  return axes;
}

class RoleOffsets {
public:
  RoleOffsets(plan::RoleOp role, int64_t alignment)
      : role_(role), axes_(layOut(role)), alignment_(alignment), commands_(role) {
    for (auto buffer : role.getOps<plan::BufferOp>())
      uses_.try_emplace(buffer);
    for (auto [index, axis] : llvm::enumerate(axes_))
      for (Segment &segment : axis.segments)
        noteUses(index, segment);
  }

  /// Where a device arena of at most `enough` bytes is found, none smaller is looked for.
  LogicalResult find(int64_t enough, KnownSolutions &known) {
    overlapping_ = false;
    for (auto arena : role_.getOps<plan::ArenaOp>()) {
      FailureOr<ArenaLayout> layout =
          place(arena, arena.getSpace() == plan::MemorySpace::Device ? enough & -alignmentOf(arena) : 0, known);
      if (failed(layout))
        return failure();
      layouts_.emplace_back(arena, *std::move(layout));
    }
    return success();
  }

  RoleBytes bytes() const {
    RoleBytes bytes;
    for (const auto &[arena, layout] : layouts_)
      add(arena, layout.bytes, bytes);
    return bytes;
  }

  /// What is alive at once at most: no layout needs less.
  FailureOr<RoleBytes> leastBytes() {
    overlapping_ = false;
    RoleBytes bytes;
    const bool stateFirst = keepsStateFirst();
    for (auto arena : role_.getOps<plan::ArenaOp>()) {
      const FailureOr<Parts> parts = partsOf(arena, stateFirst);
      if (failed(parts))
        return failure();
      int64_t least = parts->state.bytes + parts->problem.lowerBound();
      if (overlapping_ && !stateFirst)
        least = std::min(least, SlotLayout(role_, commands_, arena, alignmentOf(arena)).peakBytes());
      add(arena, least, bytes);
    }
    return bytes;
  }

  void set() {
    for (auto &[arena, layout] : layouts_) {
      Builder builder(arena.getContext());
      for (auto &[buffer, offsets] : layout.offsets)
        setOffsets(buffer, offsets, builder);
      arena.setBytesAttr(builder.getI64IntegerAttr(layout.bytes));
      arena.setPeakLiveBytesAttr(builder.getI64IntegerAttr(layout.peak));
    }
    setLives();
  }

private:
  using Spans = llvm::MapVector<int64_t, Span>; // by program

  /// An arena on the axis that has every routine once.
  struct Parts {
    ArenaLayout state; // what lies at the start
    scheduling::OffsetProblem problem;
    SmallVector<plan::BufferOp> buffers; // of the problem
  };

  static void add(plan::ArenaOp arena, int64_t bytes, RoleBytes &sum) {
    sum.all += bytes;
    if (arena.getSpace() == plan::MemorySpace::Device)
      sum.device += bytes;
  }

  bool keepsStateFirst() const { return role_->getParentOp()->hasAttr(stateFirstAttribute); }

  void noteUses(int64_t program, Segment &segment) {
    for (const auto &[buffer, span] : commands_.of(segment.routine))
      for (int64_t at : {span.first, span.last})
        note(cast<plan::BufferOp>(buffer), program, {&segment, at});
  }

  void note(plan::BufferOp buffer, int64_t program, Use use) {
    auto [it, inserted] = uses_[buffer].try_emplace(program, Span{use, use, use.segment->lastCall});
    if (inserted)
      return;
    it->second.lastCall = std::max(it->second.lastCall, use.segment->lastCall);
    if (use.time() < it->second.first.time())
      it->second.first = use;
    if (use.time() > it->second.last.time())
      it->second.last = use;
  }

  /// No two buffers of a file share a page, which is read and written whole.
  int64_t alignmentOf(plan::ArenaOp arena) const {
    return arena.getSpace() == plan::MemorySpace::Nvme ? std::max(alignment_, filePage) : alignment_;
  }

  static int64_t strideOf(plan::BufferOp buffer, int64_t alignment) {
    return buffer.getSlots() > 1 ? llvm::alignTo(buffer.getBytes(), alignment) : 0;
  }

  FailureOr<ArenaLayout> place(plan::ArenaOp arena, int64_t enough, KnownSolutions &known) {
    const bool stateFirst = keepsStateFirst();
    FailureOr<ArenaLayout> layout = layOutRoutines(arena, stateFirst, enough, known);
    if (succeeded(layout) && overlapping_ && !stateFirst)
      if (std::optional<ArenaLayout> bySlot =
              SlotLayout(role_, commands_, arena, alignmentOf(arena)).find(layout->bytes, enough, known))
        layout = std::move(*bySlot);
    return layout;
  }

  static void setOffsets(plan::BufferOp buffer, ArrayRef<int64_t> offsets, Builder &builder) {
    if (offsets.size() > 1)
      buffer.setScope(plan::Scope::Slot); // of a routine's scratch, too
    buffer.setSlots(offsets.size());
    buffer.setOffsetAttr(builder.getI64IntegerAttr(offsets.front()));
    buffer.setSlotOffsetsAttr(offsets.size() > 1 ? builder.getDenseI64ArrayAttr(offsets.drop_front())
                                                 : DenseI64ArrayAttr());
  }

  /// One behind another, by name: all constants last.
  ArenaLayout layOutState(plan::ArenaOp arena) {
    SmallVector<plan::BufferOp> state;
    for (auto &[op, spans] : uses_)
      if (auto buffer = cast<plan::BufferOp>(op);
          buffer.getScope() == plan::Scope::Plan && buffer.getArenaAttr().getAttr() == arena.getSymNameAttr())
        state.push_back(buffer);
    llvm::sort(state, [](plan::BufferOp a, plan::BufferOp b) {
      const auto rank = [](plan::BufferOp one) {
        return std::tuple(one.getCategory() == plan::Category::Constants, one.getName(), one.getNext());
      };
      return rank(a) < rank(b);
    });
    ArenaLayout layout{};
    for (plan::BufferOp buffer : state) {
      layout.offsets[buffer].push_back(layout.bytes);
      layout.bytes += int64_t(llvm::alignTo(buffer.getBytes(), uint64_t(alignmentOf(arena))));
      layout.peak += int64_t(buffer.getBytes());
    }
    return layout;
  }

  /// Slots lie side by side. `stateFirst`: see stateFirstAttribute.
  FailureOr<Parts> partsOf(plan::ArenaOp arena, bool stateFirst) {
    Parts parts{stateFirst ? layOutState(arena) : ArenaLayout{}, {}, {}};
    scheduling::OffsetProblem &problem = parts.problem;
    problem.alignment = alignmentOf(arena);
    for (auto &[op, spans] : uses_) {
      auto buffer = cast<plan::BufferOp>(op);
      if (buffer.getArenaAttr().getAttr() != arena.getSymNameAttr() || parts.state.offsets.contains(buffer))
        continue;
      const int64_t bytes =
          buffer.getSlots() > 1 ? strideOf(buffer, problem.alignment) * int64_t(buffer.getSlots()) : buffer.getBytes();
      auto [begin, end] = lifeOf(buffer, spans);
      problem.buffers.push_back({bytes, begin, end});
      parts.buffers.push_back(buffer);
    }
    if (auto reason = problem.check())
      return arena.emitOpError() << "cannot be laid out: " << *reason;
    return parts;
  }

  static std::vector<int64_t> solve(const scheduling::OffsetProblem &problem, int64_t enough, KnownSolutions &known) {
    std::vector<int64_t> numbers = {0, problem.alignment, problem.capacity};
    numbers.reserve(numbers.size() + 3 * problem.buffers.size());
    for (const auto &[bytes, begin, end] : problem.buffers)
      llvm::append_values(numbers, bytes, begin, end);
    return known.of(numbers, enough, [&](int64_t enough) { return scheduling::assignOffsets(problem, enough); });
  }

  FailureOr<ArenaLayout> layOutRoutines(plan::ArenaOp arena, bool stateFirst, int64_t enough, KnownSolutions &known) {
    FailureOr<Parts> parts = partsOf(arena, stateFirst);
    if (failed(parts))
      return failure();
    auto &[layout, problem, buffers] = *parts;
    const int64_t stateBytes = layout.bytes;
    const std::vector<int64_t> offsets = solve(problem, std::max<int64_t>(0, enough - stateBytes), known);
    if (auto reason = problem.verify(offsets))
      return arena.emitOpError() << "was laid out wrongly: " << *reason;
    layout.bytes += int64_t(llvm::alignTo(problem.arenaBytes(offsets), problem.alignment));
    layout.peak += problem.lowerBound();
    for (auto [buffer, offset] : llvm::zip(buffers, offsets))
      for (int64_t slot = 0; slot < int64_t(buffer.getSlots()); ++slot)
        layout.offsets[buffer].push_back(stateBytes + offset + slot * strideOf(buffer, problem.alignment));
    return std::move(layout);
  }

  /// [begin, end) on the role's time axis.
  std::pair<int64_t, int64_t> lifeOf(plan::BufferOp buffer, const Spans &spans) {
    const int64_t whole = axes_.empty() ? 1 : axes_.back().end;
    if (buffer.getScope() == plan::Scope::Plan || spans.empty())
      return {0, whole};
    int64_t begin = whole, end = 0;
    for (auto &[program, span] : spans) {
      const Axis &axis = axes_[program];
      int64_t first = span.first.time(), last = span.last.time() + 1;
      if (buffer.getScope() == plan::Scope::Step)
        std::tie(first, last) = stepLife(axis, span);
      const bool overlaps =
          buffer.getScope() == plan::Scope::Slot && (buffer.getSlots() > 1 || isInterleaved(buffer, axis));
      overlapping_ |= (overlaps || endsOf(buffer, axis, span).size() > 1) && !commands_.isMessage(buffer) &&
                      !commands_.isFed(buffer);
      if (overlaps || commands_.isMessage(buffer)) {
        first = axis.begin;
        last = axis.end;
      }
      if (isReadByHost(buffer, axis.program))
        last = axis.end;
      begin = std::min(begin, first);
      end = std::max(end, last);
    }
    return {begin, end};
  }

  /// First and last use of a buffer in a micro-batch of a kind; nothing where none of its routines uses it.
  std::optional<std::pair<Use, Use>> usesIn(plan::BufferOp buffer, const Axis &axis, size_t kind) const {
    std::optional<std::pair<Use, Use>> uses;
    for (const size_t number : axis.kinds[kind]) {
      const Segment &segment = axis.segments[number];
      const auto span = commands_.of(segment.routine).find(buffer);
      if (span == commands_.of(segment.routine).end())
        continue;
      if (!uses)
        uses.emplace(Use{&segment, span->second.first}, Use{});
      uses->second = {&segment, span->second.last};
    }
    return uses;
  }

  /// Whether compute that stands elsewhere on the axis runs between the first use of a micro-batch's buffer and the
  /// last one.
  bool isInterleaved(plan::BufferOp buffer, const Axis &axis) const {
    SmallVector<std::pair<size_t, size_t>> ends; // by kind: the first segment that uses it and the last
    for (size_t kind = 0; kind < axis.kinds.size(); ++kind) {
      const auto uses = usesIn(buffer, axis, kind);
      ends.push_back(uses ? std::pair(size_t(uses->first.segment - axis.segments.begin()),
                                      size_t(uses->second.segment - axis.segments.begin()))
                          : std::pair(SIZE_MAX, SIZE_MAX));
    }
    llvm::SmallDenseMap<int64_t, std::pair<size_t, size_t>> open; // micro-batches between the two
    for (const auto &[segment, microbatch] : axis.calls) {
      const auto &[first, last] = ends[axis.kindOf[size_t(microbatch)]];
      if (first == last)
        continue;
      if (segment == first)
        open[microbatch] = {first, last};
      if (computes(axis.segments[segment].routine) && llvm::any_of(open, [&, segment = segment](const auto &one) {
            return segment < one.second.first || segment > one.second.second;
          }))
        return true;
      if (segment == last)
        open.erase(microbatch);
    }
    return false;
  }

  static bool computes(plan::RoutineOp routine) {
    return llvm::any_of(routine.getBody().front(), [](Operation &op) { return isa<plan::KernelOp, plan::FillOp>(op); });
  }

  /// [begin, end) of what is alive between calls: all of a routine that runs again meanwhile.
  static std::pair<int64_t, int64_t> stepLife(const Axis &axis, const Span &span) {
    const int64_t firstCall = span.first.segment->firstCall;
    std::pair<int64_t, int64_t> life(span.first.time(), span.last.time() + 1);
    for (const Segment &segment : axis.segments) {
      if (segment.lastCall < firstCall || segment.firstCall > span.lastCall)
        continue;
      if (segment.repeated() || &segment != span.first.segment)
        life.first = std::min(life.first, segment.begin);
      if (segment.repeated() || &segment != span.last.segment)
        life.second = std::max(life.second, segment.end());
    }
    return life;
  }

  /// Whether the host reads it when a program, or what comes before its tail, has ended.
  static bool isReadByHost(plan::BufferOp buffer, plan::ProgramOp program) {
    return llvm::any_of(buffer->getUsers(), [&](Operation *user) {
      return isa<plan::MetricOp, plan::TailOp>(user) && user->getParentOp() == program.getOperation();
    });
  }

  /// The last command of a program in which a buffer is used, and which therefore has one.
  static Use lastCommand(const Axis &axis) {
    const Segment *last = &axis.segments.back();
    while (last->commands == 0)
      --last;
    return {last, last->commands - 1};
  }

  /// Where the lives of a buffer begin and end in a program. Where micro-batches do not run the same routines, as with
  /// ds-peel-backward, there are several.
  SmallVector<std::pair<Use, Use>> endsOf(plan::BufferOp buffer, const Axis &axis, const Span &span) const {
    if (isReadByHost(buffer, axis.program))
      return {{span.first, lastCommand(axis)}};
    SmallVector<std::pair<Use, Use>> ends;
    for (size_t kind = 0; buffer.getScope() == plan::Scope::Slot && kind < axis.kinds.size(); ++kind)
      if (const auto uses = usesIn(buffer, axis, kind))
        if (llvm::none_of(ends, [&](const auto &known) {
              return known.first.time() == uses->first.time() && known.second.time() == uses->second.time();
            }))
          ends.push_back(*uses);
    if (ends.size() < 2)
      return {{span.first, span.last}};
    return ends;
  }

  /// Writes births and deaths as (program, routine, command, routine, command).
  void setLives() {
    llvm::DenseMap<Operation *, int64_t> numbers;
    for (auto [index, routine] : llvm::enumerate(role_.getOps<plan::RoutineOp>()))
      numbers[routine] = index;
    for (auto &[op, spans] : uses_) {
      auto buffer = cast<plan::BufferOp>(op);
      if (buffer.getScope() == plan::Scope::Plan)
        continue;
      SmallVector<int64_t> lives;
      for (auto &[program, span] : spans)
        for (const auto &[first, last] : endsOf(buffer, axes_[program], span))
          lives.append(
              {program, numbers[first.segment->routine], first.command, numbers[last.segment->routine], last.command});
      buffer.setLives(lives);
    }
  }

  plan::RoleOp role_;
  SmallVector<Axis> axes_;
  int64_t alignment_;
  llvm::MapVector<Operation *, Spans> uses_;
  BufferUses commands_;
  SmallVector<std::pair<plan::ArenaOp, ArenaLayout>> layouts_;
  // Whether values of several micro-batches are held at once, or not all end in one routine, in an arena that was
  // looked at since `find` or `leastBytes` began.
  bool overlapping_ = false;
};

} // namespace

FailureOr<RoleBytes> ds::leastBytes(plan::RoleOp role, int64_t alignment) {
  return RoleOffsets(role, alignment).leastBytes();
}

int64_t ds::stateBytes(plan::RoleOp role) {
  int64_t bytes = 0;
  const BufferUses uses(role);
  for (auto arena : role.getOps<plan::ArenaOp>())
    if (arena.getSpace() == plan::MemorySpace::Device)
      bytes += SlotLayout(role, uses, arena, /*alignment=*/1).peakBytes([](plan::BufferOp buffer) {
        return buffer.getScope() == plan::Scope::Plan || buffer.getScope() == plan::Scope::Step;
      });
  return bytes;
}

FailureOr<bool> ds::assignOffsets(plan::RoleOp role, const Placing &placing, int64_t below) {
  RoleOffsets offsets(role, placing.alignment);
  if (below < std::numeric_limits<int64_t>::max()) {
    const FailureOr<RoleBytes> least = offsets.leastBytes();
    if (failed(least))
      return failure();
    if (least->all >= below)
      return false;
  }
  if (failed(offsets.find(placing.enough, placing.known)))
    return failure();
  assert(offsets.leastBytes()->all <= offsets.bytes().all && "an arena of less than what is alive at once");
  if (offsets.bytes().all >= below)
    return false;
  offsets.set();
  return true;
}

namespace {
struct AssignOffsets : ds::impl::AssignOffsetsBase<AssignOffsets> {
  using AssignOffsetsBase::AssignOffsetsBase;

  void runOnOperation() override {
    if (alignment < 1 || !llvm::isPowerOf2_64(alignment)) {
      getOperation().emitError() << "alignment " << alignment.getValue() << " is not a power of two";
      return signalPassFailure();
    }
    const Placing placing{alignment, getAnalysis<KnownSolutions>()};
    for (auto role : getOperation().getOps<plan::RoleOp>())
      if (failed(assignOffsets(role, placing)))
        return signalPassFailure();
  }
};

} // namespace
