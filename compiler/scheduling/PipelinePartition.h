//===- PipelinePartition.h - where a model is cut into pipeline stages ----===//
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ds::scheduling {

/// Cuts a sequence of units into consecutive stages, none of them empty, such that the slowest is as fast as can be.
struct PartitionProblem {
  /// An op of the forward, in program order, and the part of the backward that belongs to it.
  struct Unit {
    double seconds;          // forward and backward of one micro-batch
    int64_t stateBytes;      // of parameters, with all that is kept for each
    int64_t activationBytes; // kept for the backward, for each micro-batch in flight
    uint64_t signature;      // equal for the same operation on the same shapes
  };
  std::vector<Unit> units;
  std::vector<int64_t> crossing; // by position 0..units: bytes that a cut before unit i sends, each micro-batch; its
                                 // ends count as 0, for nothing is cut there
  std::vector<uint8_t> mayCut;   // by position; empty: everywhere
  int64_t stages = 1;
  std::vector<int64_t> inFlight; // by stage, micro-batches that wait for their backward at once; empty: 1
  int64_t memoryBytes = 0;       // of a stage; 0: no limit
  double secondsPerByte = 0;     // of what a stage receives and sends

  /// Why the input makes no sense, or nothing. Run before anything else here.
  std::optional<std::string> check() const;
};

struct Partition {
  std::vector<int64_t> cuts; // positions, ascending: stage k begins with unit cuts[k - 1]
  double bottleneck = 0;     // seconds of the slowest stage

  bool operator==(const Partition &) const = default;
};

/// What a stage [begin, end) costs.
double stageSeconds(const PartitionProblem &problem, int64_t begin, int64_t end);
int64_t stageBytes(const PartitionProblem &problem, int64_t stage, int64_t begin, int64_t end);

/// The best partition: the least bottleneck, then the fewest bytes sent, then the smallest positions. Times count in
/// steps of 2^-43 of their sum. Nothing if no cut meets the memory limit or there are too few positions.
std::optional<Partition> partition(const PartitionProblem &problem);

/// Why `partition` is wrong, or nothing: allowed positions, no empty stage, within memory, a true bottleneck. Knows no
/// algorithm; whether it is the best it does not say.
std::optional<std::string> verify(const PartitionProblem &problem, const Partition &partition);

/// By position, whether a cut there is worth considering: it sends few bytes for its neighbourhood, and where the model
/// repeats a block it lies between two blocks. Gives way, down to all that may be cut, where that leaves no partition,
/// where cuts inside of blocks would make the slowest stage 5 % faster, or where few bytes would make it a quarter
/// slower than the best.
std::vector<uint8_t> candidateCuts(const PartitionProblem &problem);

} // namespace ds::scheduling
