//===- PlanChecks.h - the parts of validatePlan ---------------------------===//
//
// One function per part of a plan, each in the file that its line names. A later one relies on what the earlier ones
// checked.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/DType.h"
#include "core/Error.h"
#include "runtime/plan/format/PlanReader.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace ds::plan {

class RolePeers;

void checkSetup(const proto::Plan &plan);           // CheckSetup.cpp: machine, world, training, files
void checkVariables(const proto::Plan &plan);       // CheckVariables.cpp: variables and inputs
void checkReference(const proto::Plan &plan);       // CheckReference.cpp
void checkCodes(const proto::Plan &plan);           // CheckSetup.cpp
void checkTuning(const proto::Plan &plan);          // CheckSetup.cpp
void checkInputPlacements(const proto::Plan &plan); // CheckPlacements.cpp
void checkBuckets(const proto::Plan &plan);         // CheckBuckets.cpp: communicators, placements, buckets
void checkHeldBuckets(const proto::Plan &plan, const proto::Role &); // CheckBuckets.cpp
void checkSlices(const proto::Plan &plan, RolePeers &peers);         // CheckBuckets.cpp
void checkChannels(const proto::Plan &plan);                         // CheckMessages.cpp
void checkPipeline(const proto::Plan &plan);                         // CheckPipeline.cpp: what is said of stages
void checkStorage(const proto::Plan &plan, const proto::Role &);     // CheckStorage.cpp: arenas, buffers
void checkCommands(const proto::Plan &plan, const proto::Role &);    // CheckCommands.cpp: queues, events, routines
void checkPhases(const proto::Plan &plan, const proto::Role &);      // CheckPipeline.cpp: what routines are for
void checkPrograms(const proto::Plan &plan, const proto::Role &);    // CheckPrograms.cpp: calls, metrics, lives

// Of all roles together.
void checkSamePrograms(const proto::Plan &plan);                      // CheckPrograms.cpp
void checkCollectiveOrder(const proto::Plan &plan, RolePeers &peers); // CheckCollectives.cpp
void checkMessagesAgree(const proto::Plan &plan, RolePeers &peers);   // CheckMessages.cpp
void checkProgress(const proto::Plan &plan, RolePeers &peers);        // CheckProgress.cpp

// Helpers that several of them share.

/// Most bytes of a name; of a note or path.
inline constexpr size_t maxNameBytes = 4096;
/// Most dimensions of a shape.
inline constexpr int maxRank = 16;

/// "buffer 3 (h.0.attn)".
std::string describe(const char *kind, int64_t index, const std::string &name);

/// Names of one kind of thing, and which has each of them.
class OwnNames {
public:
  explicit OwnNames(const char *kind) : kind_(kind) {}
  /// Refuses a name that is empty or that an earlier thing has. `index`: of this one.
  void add(const std::string &name, int index, const std::string &place);

private:
  const char *kind_;
  std::map<std::string, int> first_;
};

/// Refuses names that are too long or hold control characters, which would spoil one-line errors.
void checkName(const std::string &name, const std::string &place);

/// The type behind a number of the file; refuses numbers that are none.
DType checkDType(int number, const std::string &place);

template <typename Shape> std::string shapeText(const Shape &shape) {
  std::string text = "[";
  for (int i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

/// Bytes of a dense tensor; refuses negative dimensions, more than maxRank of them and more than 2^62 bytes.
uint64_t checkTensorBytes(int dtype, const google::protobuf::RepeatedField<int64_t> &shape, const std::string &place);

void checkAttribute(const proto::Attribute &attribute, const std::string &place);

/// Refuses an index that is not below `count` things called `what`.
void checkIndex(uint64_t index, int64_t count, const char *what, const std::string &place);

/// Index, access, bounds for every rank, alignment and memory space of an operand of the role (CheckCommands.cpp).
void checkOperand(const proto::Plan &plan, const proto::Role &role, const proto::Operand &operand,
                  const std::string &place);

/// Counts the ranks of a world; refuses one that is too large, and axes of other names (CheckSetup.cpp).
uint64_t checkWorld(const proto::World &world, const std::string &place);

/// CheckPlacements.cpp: what a tensor, variable or bucket says of ranks' parts of it. World and communicators are
/// checked.
void checkPlacement(const proto::World &world, const proto::Placement &placement, std::span<const int64_t> shape,
                    const std::string &place);
void checkPlacement(const proto::Plan &plan, const proto::Variable &variable, const std::string &place);
void checkPlacement(const proto::Plan &plan, const proto::Bucket &bucket, const std::string &place);

/// CheckCollectives.cpp: a collective; the queues of all of a role's.
void checkCollectiveQueues(const proto::Plan &plan, const proto::Role &role);
void checkCollective(const proto::Plan &plan, const proto::Role &role, const proto::CollectiveCommand &collective,
                     const std::string &place);

/// CheckMessages.cpp: a send or receive; the queues and ends of all of a role's.
void checkMessage(const proto::Plan &plan, const proto::Role &role, const proto::Command &command,
                  const std::string &place);
void checkMessageQueues(const proto::Plan &plan, const proto::Role &role);

/// "program step, call 3 (routine 1 (forward), micro-batch 1), command 7", and of which role where there are several.
std::string placeInRun(const proto::Plan &plan, const proto::Role &role, const proto::Program &program, int call,
                       int command);

/// A second place, as a line below a sentence.
inline std::string note(const std::string &text) { return "\n  note: " + text; }

/// `place` and `sentence` as one error.
[[noreturn]] inline void refuse(const std::string &place, const std::string &sentence) {
  throw Error(place + ": " + sentence);
}

/// The same of a limit.
[[noreturn]] inline void refuseSize(const std::string &place, const std::string &sentence) {
  throw TooLarge(place + ": " + sentence);
}

} // namespace ds::plan
