//===- Run.h - one rank's run of a program, followed byte by byte ----------===//
//
// Run.cpp: accesses, races, what is there when it is read. RunValues.cpp: what commands compute and sums hold.
// RunRules.cpp: gradients, updates, metrics.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/check/Effects.h"
#include "compiler/check/Layout.h"
#include "compiler/check/Meaning.h"
#include "compiler/check/Refusal.h"
#include "compiler/check/Shadow.h"
#include "compiler/check/Timeline.h"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ds::check {

/// Bytes of an arena.
struct Range {
  uint32_t arena;
  uint64_t begin, end;
};

/// What is the same for all ranks of a role in one program.
struct RoleOrder {
  RoleOrder(const proto::Plan &plan, const proto::Role &role, const proto::Program &program, const Timeline &timeline);

  std::set<std::string> trained;                    ///< parameters
  std::map<uint32_t, uint32_t> bucketOf;            ///< by buffer of gradients: the bucket that they update
  std::vector<std::vector<size_t>> instanceOf;      ///< by call and command
  std::vector<std::vector<Effect>> effects;         ///< by instance
  std::map<uint32_t, uint32_t> firstCall, lastCall; ///< by routine
  std::map<std::pair<uint32_t, uint64_t>, std::pair<uint32_t, uint32_t>>
      calls; ///< by routine and micro-batch: first, last
};

/// Part of what an operand is given, relative to its begin.
struct Piece {
  uint64_t begin, end;
  std::vector<Term> terms = {};
  bool updated = false;
  uint32_t value = Values::unknown;
  uint64_t valueByte = 0; ///< where it begins in the value
};

/// What roles have told each other so far in a run.
struct Mail {
  /// By send, the pieces of each of its operands. Also, for the runs of other ranks, what commands have made of sums.
  std::map<Step, std::vector<std::vector<Piece>>> sent;
  /// By role, call, command and part of an all_gather: the source, when the first role has gone on with it.
  std::map<std::array<uint32_t, 4>, std::vector<Piece>> gathered;
};

/// A role in a joint run, and what it shares with the others.
struct Part {
  const proto::Plan &plan;
  Meaning &meaning;
  const JointRun &joint;
  Mail &mail;
  const std::vector<std::unique_ptr<class Run>> &runs; ///< of the roles, in every byte
  uint32_t index;                                      ///< of the role
  const proto::Program &program;

  const proto::Role &role() const { return plan.roles(int(index)); }
  const Timeline &timeline() const { return joint.timelines[index]; }
};

class Run {
public:
  /// `only`: bytes to follow, if not all; then the roles have run before, and `mail` has all that they said.
  Run(const Part &part, const RoleOrder &order, uint32_t rank, const Range *only);

  /// Instances come in order, all that touch what is followed.
  void execute(size_t index);
  void finish();
  /// By reference op that accumulates: how often it was done.
  const std::map<uint32_t, uint64_t> &sums() const { return sums_; }

private:
  //===-- addresses -----------------------------------------------------------===//

  const proto::Buffer &bufferOf(const proto::Operand &operand) const { return role_.buffers(int(operand.buffer())); }
  /// Where the operand begins within its buffer, for this rank.
  uint64_t offsetIn(const proto::Operand &operand) const;
  Range rangeOf(const proto::Operand &operand, uint64_t microbatch) const;
  bool isFollowed(const Range &range) const {
    return !only_ || (range.arena == only_->arena && range.begin < only_->end && only_->begin < range.end);
  }
  void setInitial(uint32_t index);
  /// Which value of a buffer a call means: that of its micro-batch, of itself, or the only one.
  static uint64_t generationOf(const proto::Buffer &buffer, const Instance &instance);

  //===-- one command ---------------------------------------------------------===//

  /// A command may write where it reads only in place: a kernel the very bytes of one operand, a collective a slice.
  void requireApart(const std::vector<Effect> &effects, size_t index) const;
  [[noreturn]] void refuse(const char *rule, size_t index, const std::string &sentence) const;
  std::string place(size_t index) const { return placeOf(plan_, role_, program_.name(), timeline_.instances[index]); }
  std::string nameOf(uint32_t buffer) const {
    return "buffer " + std::to_string(buffer) + " (" + role_.buffers(int(buffer)).name() + ")";
  }
  void read(const proto::Operand &operand, size_t index);
  void requireValue(const proto::Operand &operand, const Segment &segment, uint64_t generation, size_t index) const;
  std::string generationName(const proto::Operand &operand, uint64_t generation) const {
    return (bufferOf(operand).scope() == proto::Buffer::CALL ? "call " : "micro-batch ") + std::to_string(generation);
  }
  const std::string &queueName(uint32_t queue) const { return role_.queues(int(queue)).name(); }
  static void note(Segment &segment, const Instance &instance, size_t index);

  //===-- what commands compute -------------------------------------------------===//

  /// The value that an operand holds from its first byte on.
  uint32_t held(const proto::Operand &operand, uint64_t microbatch);
  std::vector<Meaning::Result> resultsOf(const std::vector<Effect> &effects, size_t index);
  /// What a norm is the root of counts no bytes twice and, where that is known, every gradient.
  void requireEachPartOnce(const proto::KernelCommand &kernel, uint64_t microbatch) const;
  void requireEveryPart(const proto::Command &command, std::span<const uint32_t> values);
  void noteSums(const proto::Command &command);
  /// Of a sum whose slices the ranks share out, every rank's slice is of the right gradients: its optimizer looks at
  /// its own alone.
  void requireSlices(const proto::CollectivePart &part, size_t index);
  std::string whyNoPart(const Piece &piece, uint64_t microbatch, uint32_t expected, uint64_t expectedByte);
  /// Whether all ranks that have micro-batches take part.
  bool sumsAllRanks(const proto::CollectiveCommand &collective) const;
  /// A collective that is said to accumulate is a sum over all ranks that have micro-batches.
  void requireSum(const proto::Command &command, std::span<const uint32_t> values);

  //===-- what is written -----------------------------------------------------===//

  /// The pieces that lie in an operand now.
  std::vector<Piece> piecesOf(const proto::Operand &operand, uint64_t skip, uint64_t bytes, uint64_t microbatch);
  /// Gradients are followed as sums of micro-batches; of other values only matters whether an optimizer made them.
  std::vector<Piece> valueOf(const proto::Operand &target, const std::vector<Effect> &effects,
                             const Meaning::Result &result, size_t index);
  /// A parameter, or its state, stays what it is.
  static std::vector<Piece> updated(std::vector<Piece> pieces);
  static bool isSum(const proto::Buffer &buffer) {
    return buffer.category() == proto::Buffer::GRADIENTS || buffer.category() == proto::Buffer::COMMUNICATION;
  }
  static void add(std::vector<Term> &terms, Term term) {
    terms.insert(std::upper_bound(terms.begin(), terms.end(), term), term);
  }
  /// A bucket's parameters side by side, where a whole bucket is gathered.
  std::vector<Piece> gathered(const proto::CollectivePart &part, uint64_t bytes, bool updated);
  /// What ranks of several roles have, side by side; nothing where they are of one.
  std::optional<std::vector<Piece>> gatheredFromRoles(int part, size_t index);
  const std::vector<Piece> &sourceOf(int part, const Instance &gather);
  /// What the sum of a value over the ranks is: the variable that it is said to be summed into, or the value still.
  uint32_t sumOf(uint32_t value, const proto::Command &command);
  static int partOf(const proto::CollectiveCommand &collective, const proto::Operand &target);
  /// What a receive puts into its targets.
  std::vector<std::vector<Piece>> received(size_t index) const;
  static std::vector<std::vector<Piece>> elsewhere(std::vector<std::vector<Piece>> pieces);
  /// A message is of the micro-batch that its receiver takes it for.
  void requireSameMicrobatch(const Step &sender, size_t index) const;
  /// A sum of gradients again, or the sum of two, if the command makes that.
  std::optional<std::vector<Piece>> copyOrSumOfSums(const proto::Command &command, size_t index);
  std::vector<Piece> valueOfCollective(const proto::CollectiveCommand &collective, const proto::Operand &target,
                                       size_t index);
  /// Both lists cut where either is, terms together.
  static std::vector<Piece> sumOf(const std::vector<Piece> &a, const std::vector<Piece> &b);
  void write(const proto::Operand &operand, const std::vector<Piece> &pieces, size_t index);
  [[noreturn]] void refuseOverwrite(const proto::Operand &operand, const Access &other, const char *verb,
                                    size_t index) const;

  //===-- lives ---------------------------------------------------------------===//

  void requireAlive(const proto::Operand &operand, size_t index) const;
  /// Another queue's use of a buffer comes after its life's first command, and before its last, whatever the timing.
  void requireOrder(const proto::Operand &operand, size_t index) const;
  size_t momentOf(const proto::Buffer &buffer, const proto::Life &life, const Instance &instance, bool isBirth) const;
  bool isWithin(const proto::Buffer &buffer, const proto::Life &life, const Instance &instance) const;

  //===-- parameters and gradients ----------------------------------------------===//

  /// A parameter changes in a step, and there once.
  void requireWritable(const proto::Operand &operand, size_t index);
  /// The gradient of each element of a parameter holds each micro-batch of each rank once.
  void requireGradient(const proto::Command &command, std::span<const uint32_t> values, size_t index);
  /// What micro-batch `microbatch` adds is of other values, or of other elements of theirs. A tied parameter's parts
  /// come from several roles: they must add up to all that is expected, or, if not `whole`, be among it.
  std::string whyNotTheSum(const Piece &piece, uint64_t microbatch, uint32_t expected, uint64_t expectedByte,
                           bool whole);
  /// An optimizer's state lies as its parameter does.
  void requireState(const proto::Operand &operand, uint32_t variable, const Member &parameter, uint64_t skip) const;
  std::string whyNoGradient(const Piece &piece, uint32_t expected, uint64_t expectedByte);
  /// At the end of a step every trained element that this rank holds is new.
  void requireUpdated();
  void requireNew(const Segment &segment, uint32_t buffer, const std::string &parameter) const;
  /// What counts updates has counted one.
  void requireIncrements();
  void requireIncremented(uint32_t variable);
  /// What the reference program stores in the variable of a metric's name.
  uint32_t expectedOf(const proto::Metric &metric) const;
  void readMetric(const proto::Metric &metric);

  const Part part_;
  const proto::Plan &plan_;
  Meaning &meaning_;
  const proto::Role &role_;
  const proto::Program &program_;
  const Timeline &timeline_;
  const RoleOrder &order_;
  uint32_t rank_;
  const Range *only_;
  std::vector<Shadow> shadows_; // by arena
  std::map<uint32_t, uint64_t> sums_;
};

} // namespace ds::check
