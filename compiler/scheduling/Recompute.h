//===- Recompute.h - what a backward keeps and what it computes again -------===//
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ds::scheduling {

/// A layer of the forward as its backward sees it. Every value that the backward needs is kept, or the op that makes it
/// is repeated; so is every value that a repeated op reads.
struct RecomputeProblem {
  struct Value {
    int64_t bytes = 0;     // 0: kept anyway
    int32_t producer = -1; // ops; -1: none that may be repeated (made outside of the layer, or read outside of it)
    bool needed = false;   // by the backward

    bool operator==(const Value &) const = default;
  };
  struct Op {
    int64_t time = 0; // of doing it once more, in any unit
    bool mayRepeat = true;
    std::vector<int32_t> operands; // values

    bool operator==(const Op &) const = default;
  };
  std::vector<Value> values;
  std::vector<Op> ops; // in an order in which they can run

  bool operator==(const RecomputeProblem &) const = default;

  /// Why the input makes no sense, or nothing. Run before anything else here.
  std::optional<std::string> check() const;
};

/// What a user says of ops by their names.
struct RecomputeRule {
  std::string modules; // a regular expression
  bool again = false;  // else: kept
};

struct RecomputeChoice {
  std::vector<char> again; // by op, whether it is repeated
  int64_t bytes = 0;       // kept
  int64_t time = 0;        // spent again

  bool operator==(const RecomputeChoice &) const = default;
};

/// Bytes and time of repeating `again` and no more.
RecomputeChoice choiceOf(const RecomputeProblem &problem, std::vector<char> again);

/// Why a choice is wrong, or nothing: ops that may be repeated, every one of them for something, and true sums. Knows
/// no algorithm; whether the choice is a good one it does not say.
std::optional<std::string> verify(const RecomputeProblem &problem, const RecomputeChoice &choice);

/// From keeping all that the backward needs to keeping the fewest bytes: the choices that are best for some price of a
/// byte in time (the lower convex hull of all choices), each repeating all that the one before repeats. Each is a
/// minimum cut; as min-cut recomputation of one layer in H. He and S. Zachariah, "Min-cut optimal(*) recomputation",
/// 2022, with the time that recomputation costs in the cut.
std::vector<RecomputeChoice> recomputeFrontier(const RecomputeProblem &problem);

/// From one choice of a layer's frontier to the next.
struct RecomputeStep {
  int32_t layer;
  int32_t choice; // of the frontier, from 1 on

  bool operator==(const RecomputeStep &) const = default;
};

/// What a link to host memory has to do with a layer. What the backward needs and is not made again is kept in device
/// memory, or it is away in host memory, which is the same to whoever reads it. So what is made again is chosen for
/// both alike, and what is away follows.
struct LinkedLayer {
  int64_t fixedBytes = 0; // that the backward needs of the layer and its problem does not decide about
  int64_t linkBytes = 0; // that the link moves from the layer's begin to the end of the forward: no more than before it

  bool operator==(const LinkedLayer &) const = default;
};

/// Why so many bytes of each layer cannot be away by the end of the forward, if `provided` are not made again; or
/// nothing. Knows no algorithm.
std::optional<std::string> verifyAway(std::span<const LinkedLayer> layers, std::span<const int64_t> provided,
                                      std::span<const int64_t> away);

/// The least bytes that are kept at the end of the forward, if `provided`, by layer, are not made again.
int64_t keptBytes(std::span<const LinkedLayer> layers, std::span<const int64_t> provided);

/// The steps of all layers. The first k of them, for any k, need their `keptBytes` in the least time: of the layers
/// from which on most is kept, the step is taken that frees most bytes for its time, earlier layers before later ones.
/// Without a link that is a knapsack filled greedily, which is exact between its items since every frontier is convex
/// (G. Dantzig, "Discrete-variable extremum problems", 1957); with one it is so for every nested set of layers.
/// `links`: by layer; empty: there is none.
std::vector<RecomputeStep> recomputeSteps(std::span<const std::vector<RecomputeChoice>> frontiers,
                                          std::span<const LinkedLayer> links = {});

} // namespace ds::scheduling
