//===- MovementProblem.h - how few bytes must leave a memory and come back ---===//
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ds::scheduling {

/// Commands run in a given order in a memory that is too small for all that lives. What a command uses must be there
/// while it runs; between two uses a tensor may be absent, in part or as a whole. What absences cost is known, and the
/// cheapest are sought that leave room at every moment: paging with sizes (L. Belady, 1966, has the optimum for pages
/// of one size, cost and way), its fractional relaxation.
struct MovementProblem {
  /// One byte of it costs `cost` if it is away during the moments [begin, end).
  struct Absence {
    int64_t begin = 0, end = 0;
    int64_t bytes = 0; // at most
    int64_t cost = 0;  // bytes moved for a byte that is away
  };
  std::vector<int64_t> live; // bytes in memory if nothing were away, by moment
  int64_t capacity = 0;
  std::vector<Absence> absences;

  /// Why the input makes no sense, or nothing. Run before any algorithm.
  std::optional<std::string> check() const;
};

/// The cheapest absences, and a proof of it: prices that a byte of room has at each moment.
struct LeastMovement {
  int64_t bytes = 0;           // moved
  std::vector<int64_t> away;   // bytes, by absence
  std::vector<int64_t> prices; // by moment

  bool operator==(const LeastMovement &) const = default;
};

/// Why an answer is wrong, or nothing. The absences leave room at every moment, and no others cost less: by duality of
/// linear programs any prices bound the cost from below, and these bound it by what is paid. Knows no algorithm.
std::optional<std::string> verify(const MovementProblem &problem, const LeastMovement &least);

/// Nothing where even all absences leave too little room. Needs check() to have passed. The moments are a path and each
/// absence is an edge beside a stretch of it, so this is a flow of least cost: A. Arkin and E. Silverberg, "Scheduling
/// jobs with fixed start and end times", 1987; by the primal-dual algorithm of L. Ford and D. Fulkerson.
std::optional<LeastMovement> leastMovement(const MovementProblem &problem);

} // namespace ds::scheduling
